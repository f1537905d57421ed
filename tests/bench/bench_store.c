/* SPDX-License-Identifier: MIT */
/*
 * bench_store CERT KEY DATABASE ANSWER: the least that a durable create over HTTPS can be, for
 * bench_standalone.py to hold tec-operator --standalone against: blocking OpenSSL, one connection
 * after the other, and SQLite. A request is a head with a Content-Length and a body; its rows are
 * those the operator writes for it, with the bytes of the file ANSWER, in a transaction of its own;
 * its answer is that file. No JSON, no HTTP beyond the length. Prints its port.
 */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define ANSWER_MAX  65536
#define REQUEST_MAX 65536
#define META_LEN    150 /* what the operator keeps beside an object for its lists */
#define TAG_LEN     32

/* The operator's settings, tables and indexes; what a create does not touch is left out. */
static const char schema[] =
	"PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
	"PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-2048;"
	"CREATE TABLE version(rv INTEGER PRIMARY KEY, resource TEXT, ns TEXT, name TEXT, uid TEXT,"
	" meta TEXT, body BLOB, tag BLOB);"
	"CREATE INDEX version_of ON version(resource, ns, name);"
	"CREATE TABLE object(resource TEXT, ns TEXT, name TEXT, rv INTEGER, uid TEXT,"
	" PRIMARY KEY(resource, ns, name)) WITHOUT ROWID;"
	"CREATE INDEX object_uid ON object(uid);";
static const char insert_version[] =
	"INSERT INTO version(resource,ns,name,uid,rv,meta,body,tag) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)";
static const char insert_object[] =
	"INSERT INTO object(resource,ns,name,uid,rv) VALUES(?1,?2,?3,?4,?5)";

static struct {
	sqlite3 *db;
	sqlite3_stmt *begin, *version, *object, *commit;
	long long rv;
	char body[ANSWER_MAX];
	size_t body_len;
	struct strbuf answer;
} b;

static void die(const char *what)
{
	fprintf(stderr, "bench_store: %s\n", what);
	exit(1);
}

/* ---- the database */

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(b.db, sql, -1, &st, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(b.db));
	return st;
}

static void open_database(const char *path)
{
	if (sqlite3_open(path, &b.db) != SQLITE_OK ||
		sqlite3_exec(b.db, schema, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(b.db));
	b.begin = prepare("BEGIN IMMEDIATE");
	b.version = prepare(insert_version);
	b.object = prepare(insert_object);
	b.commit = prepare("COMMIT");
}

static void run(sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		die(sqlite3_errmsg(b.db));
	sqlite3_reset(st);
}

static void bind_key(sqlite3_stmt *st, const char *name)
{
	sqlite3_bind_text(st, 1, "trusted-execution-clusters.io/machines", -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, "default", -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, name, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 4, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 5, b.rv);
}

static void store(void)
{
	static const char zeros[META_LEN];
	char name[40];

	(void)snprintf(name, sizeof(name), "%08llx-0000-4000-8000-000000000000", ++b.rv);
	run(b.begin);
	bind_key(b.version, name);
	sqlite3_bind_text(b.version, 6, zeros, META_LEN, SQLITE_STATIC);
	sqlite3_bind_blob(b.version, 7, b.body, (int)b.body_len, SQLITE_STATIC);
	sqlite3_bind_blob(b.version, 8, zeros, TAG_LEN, SQLITE_STATIC);
	run(b.version);
	bind_key(b.object, name);
	run(b.object);
	run(b.commit);
}

/* ---- the connection */

/* false: the client has closed. */
static bool read_request(SSL *ssl)
{
	static char in[REQUEST_MAX];
	size_t len = 0, want = SIZE_MAX;

	while (len < want) {
		int n = SSL_read(ssl, in + len, (int)(sizeof(in) - 1 - len));
		const char *end, *length;

		if (n <= 0)
			return false;
		len += (size_t)n;
		in[len] = '\0';
		end = strstr(in, "\r\n\r\n");
		length = strcasestr(in, "content-length: ");
		if (end && length && length < end)
			want = (size_t)(end + 4 - in) + strtoul(length + 16, NULL, 10);
		else if (len == sizeof(in) - 1)
			die("a request that is too long");
	}
	return true;
}

static void serve(SSL_CTX *ctx, int listener)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL), on = 1;
		SSL *ssl = SSL_new(ctx);

		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		SSL_set_fd(ssl, fd);
		if (SSL_accept(ssl) == 1)
			while (read_request(ssl)) {
				store();
				if (SSL_write(ssl, b.answer.data, (int)b.answer.len) <= 0)
					break;
			}
		ERR_clear_error();
		SSL_free(ssl);
		close(fd);
	}
}

static int listen_loopback(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 16) < 0)
		die("cannot listen");
	getsockname(fd, (struct sockaddr *)&sa, &len);
	printf("%u\n", ntohs(sa.sin_port));
	fflush(stdout);
	return fd;
}

static void read_answer(const char *path)
{
	FILE *f = fopen(path, "r");

	b.body_len = f ? fread(b.body, 1, sizeof(b.body), f) : 0;
	if (!b.body_len || fclose(f) != 0)
		die("cannot read the answer");
	strbuf_addf(&b.answer,
		"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		"\r\n",
		b.body_len);
	strbuf_add(&b.answer, b.body, b.body_len);
}

int main(int argc, char **argv)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	if (argc != 5)
		die("usage: bench_store CERT KEY DATABASE ANSWER");
	if (SSL_CTX_use_certificate_chain_file(ctx, argv[1]) != 1 ||
		SSL_CTX_use_PrivateKey_file(ctx, argv[2], SSL_FILETYPE_PEM) != 1)
		die("certificate or key");
	open_database(argv[3]);
	read_answer(argv[4]);
	serve(ctx, listen_loopback());
}
