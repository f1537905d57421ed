/* SPDX-License-Identifier: MIT */
/*
 * A real server for the tests of httpc: a child process on 127.0.0.1 with blocking OpenSSL or plain
 * sockets, one process per connection. What it does is the request's path. Certificates are made
 * per test. Nothing here sleeps; waiting is bounded by deadlines of 200 ms and below.
 */
#ifndef TESTS_HTTPC_TESTING_H
#define TESTS_HTTPC_TESTING_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/net/httpc.h"

/* ---- certificates ---- */

struct pair {
	X509 *cert;
	EVP_PKEY *key;
	char *cert_pem, *key_pem;
};

static inline char *bio_text(BIO *b)
{
	char *p;
	long n = BIO_get_mem_data(b, &p);
	char *s = xstrndup(p, (size_t)n);

	BIO_free(b);
	return s;
}

static inline void add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	cr_assert(e);
	X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
}

/* issuer NULL: a CA of its own. */
static inline struct pair make_pair(
	const char *cn, const struct pair *issuer, const char *san, long end_s)
{
	static long serial;
	struct pair p = {0};
	X509_NAME *name;
	BIO *b;

	p.key = EVP_EC_gen("P-256");
	p.cert = X509_new();
	X509_set_version(p.cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(p.cert), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(p.cert), -86400);
	X509_gmtime_adj(X509_getm_notAfter(p.cert), end_s);
	X509_set_pubkey(p.cert, p.key);
	name = X509_get_subject_name(p.cert);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(p.cert, issuer ? X509_get_subject_name(issuer->cert) : name);
	add_ext(p.cert, issuer ? issuer->cert : p.cert, NID_basic_constraints,
		issuer ? "CA:FALSE" : "critical,CA:TRUE");
	if (san)
		add_ext(p.cert, issuer->cert, NID_subject_alt_name, san);
	X509_sign(p.cert, issuer ? issuer->key : p.key, EVP_sha256());
	b = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(b, p.cert);
	p.cert_pem = bio_text(b);
	b = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(b, p.key, NULL, NULL, 0, NULL, NULL);
	p.key_pem = bio_text(b);
	return p;
}

static inline void pair_free(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	free(p->cert_pem);
	free(p->key_pem);
}

/* ---- the server ---- */

struct shared { /* between test, server and its children */
	atomic_int conns, open, max_open, reqs, certs;
	char head[4096], body[4096]; /* of the last request */
};

struct server {
	struct shared *sh;
	pid_t pid;
	int port;
	SSL_CTX *ctx; /* NULL: plain */
};

struct io {
	int fd;
	SSL *ssl;
};

static inline int io_read(struct io *io, char *buf, int len)
{
	return io->ssl ? SSL_read(io->ssl, buf, len) : (int)read(io->fd, buf, (size_t)len);
}

static inline void io_write(struct io *io, const char *s, size_t len)
{
	while (len) {
		ssize_t n = io->ssl ? SSL_write(io->ssl, s, (int)len) : write(io->fd, s, len);

		if (n <= 0)
			_exit(0);
		s += n;
		len -= (size_t)n;
	}
}

static inline void io_puts(struct io *io, const char *s)
{
	io_write(io, s, strlen(s));
}

static inline void reply(struct io *io, const char *head, const char *body)
{
	char buf[1024];

	snprintf(
		buf, sizeof(buf), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, strlen(body));
	io_puts(io, buf);
	io_puts(io, body);
}

/* Until the client goes away. */
static inline void hang(struct io *io)
{
	char c;

	while (io_read(io, &c, 1) > 0)
		;
	_exit(0);
}

/* The signal is lost when the parent died before prctl. */
static inline void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

static inline void fill(struct io *io, size_t n)
{
	char x[4096];

	memset(x, 'x', sizeof(x));
	for (; n > sizeof(x); n -= sizeof(x))
		io_write(io, x, sizeof(x));
	io_write(io, x, n);
}

static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

static const struct {
	const char *path, *text;
} raw_answers[] = {
	/* then the connection is closed */
	{"/half", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
	{"/close", ""},
	{"/cut-chunk",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nhal"},
	{"/junk", "this is not HTTP at all\r\n\r\n"},
	{"/junk-status", "HTTP/1.1 abc OK\r\n\r\n"},
	{"/junk-version", "HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"},
	{"/junk-header", "HTTP/1.1 200 OK\r\nno colon here\r\n \r\nContent-Length: -5\r\n\r\n"},
	{"/junk-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n"},
	{"/ok-close", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
};

static const struct {
	const char *path, *head;
	uint32_t ms;
} retry_answers[] = {
	{"/retry/7", "503 No\r\nRetry-After: 7", 7000},
	{"/retry/0", "503 No\r\nRetry-After: 0", 0},
	{"/retry/many", "429 No\r\nRetry-After: 999999", 3600000},
	{"/retry/huge", "429 No\r\nRetry-After: 99999999999999999999", 0},
	{"/retry/negative", "429 No\r\nRetry-After: -5", 0},
	{"/retry/junk", "429 No\r\nRetry-After: soon", 0},
	{"/retry/past", "503 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT", 0},
	{"/retry/none", "503 No\r\nX: y", 0},
};

/* What a test answers itself, set before server_start(); false: it does not know the path. */
static bool (*answer_first)(struct io *io, const char *path, const char *body);

/* false: close the connection. */
static inline bool answer(struct io *io, const char *path, const char *body)
{
	if (answer_first && answer_first(io, path, body))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(raw_answers); i++)
		if (strcmp(path, raw_answers[i].path) == 0) {
			io_puts(io, raw_answers[i].text);
			return false;
		}
	for (size_t i = 0; i < ARRAY_LEN(retry_answers); i++)
		if (strcmp(path, retry_answers[i].path) == 0) {
			reply(io, retry_answers[i].head, "later");
			return true;
		}
	if (strcmp(path, "/hang") == 0)
		hang(io);
	if (strcmp(path, "/head-hang") == 0) {
		io_puts(io, chunked);
		hang(io);
	}
	if (strcmp(path, "/body-hang") == 0) {
		io_puts(io, chunked);
		io_puts(io, "5\r\nhello\r\n");
		hang(io);
	}
	if (strcmp(path, "/chunks") == 0) {
		io_puts(io, chunked);
		for (int i = 0; i < 100; i++)
			io_puts(io, "6\r\nline \n\r\n");
		io_puts(io, "0\r\n\r\n");
		return true;
	}
	if (strcmp(path, "/endless-500") == 0 || strcmp(path, "/endless-200") == 0) {
		io_puts(io, strstr(path, "500") ? "HTTP/1.1 500 No\r\n\r\n"
						: "HTTP/1.1 200 OK\r\n\r\n");
		for (;;)
			fill(io, 65536);
	}
	if (strcmp(path, "/big") == 0) {
		io_puts(io, "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
		fill(io, 300000);
		return true;
	}
	if (strcmp(path, "/big-header") == 0) {
		io_puts(io, "HTTP/1.1 200 OK\r\nX: ");
		fill(io, 1000000);
		return false;
	}
	if (strcmp(path, "/redirect") == 0)
		reply(io, "302 Found\r\nLocation: /ok", "elsewhere");
	else if (strcmp(path, "/elsewhere") == 0)
		reply(io, "307 Found\r\nLocation: HTTPS://other.test:444/a?b=c#d", "");
	else if (strcmp(path, "/nowhere") == 0)
		reply(io, "302 Found\r\nX: y", "");
	else if (strcmp(path, "/challenge") == 0)
		reply(io,
			"401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nwww-authenticate: Bearer b",
			"no");
	else if (strcmp(path, "/big-challenge") == 0) {
		io_puts(io, "HTTP/1.1 401 No\r\nContent-Length: 0\r\nLocation: /");
		fill(io, 9000);
		io_puts(io, "\r\nWWW-Authenticate: ");
		fill(io, 9000);
		io_puts(io, "\r\n\r\n");
	} else if (strcmp(path, "/echo") == 0)
		reply(io, "201 Created\r\nContent-Type: application/json", body);
	else
		reply(io, "200 OK\r\nContent-Type: text/plain; charset=utf-8", "ok");
	return true;
}

static inline bool serve_one(struct io *io, struct shared *sh)
{
	char buf[8192];
	char path[256] = "";
	int n = 0;
	char *end = NULL, *length;
	size_t body_len = 0;

	while (!end) {
		int r = n < (int)sizeof(buf) - 1 ? io_read(io, buf + n, (int)sizeof(buf) - 1 - n)
						 : 0;

		if (r <= 0)
			return false;
		n += r;
		buf[n] = '\0';
		end = strstr(buf, "\r\n\r\n");
	}
	end[2] = '\0';
	end += 4;
	length = strstr(buf, "Content-Length: ");
	body_len = length ? strtoul(length + 16, NULL, 10) : 0;
	while ((size_t)(buf + n - end) < body_len) {
		int r = io_read(io, buf + n, (int)sizeof(buf) - 1 - n);

		if (r <= 0)
			return false;
		n += r;
		buf[n] = '\0';
	}
	sh->reqs++;
	snprintf(sh->head, sizeof(sh->head), "%.4000s", buf);
	snprintf(sh->body, sizeof(sh->body), "%.4000s", end);
	(void)sscanf(buf, "%*s %255s", path);
	return answer(io, path, end);
}

static inline void serve_conn(struct server *s, int fd)
{
	struct io io = {.fd = fd};
	struct shared *sh = s->sh;
	int open_now;

	if (s->ctx) {
		io.ssl = SSL_new(s->ctx);
		SSL_set_fd(io.ssl, fd);
		if (SSL_accept(io.ssl) != 1) {
			char rest[4096];

			/* Closing over unread data would be a reset, and the alert lost. */
			shutdown(fd, SHUT_WR);
			while (read(fd, rest, sizeof(rest)) > 0)
				;
			_exit(0);
		}
		if (SSL_get0_peer_certificate(io.ssl))
			sh->certs++;
	}
	sh->conns++;
	open_now = ++sh->open;
	if (open_now > sh->max_open)
		sh->max_open = open_now;
	while (serve_one(&io, sh))
		;
	sh->open--;
	if (io.ssl)
		SSL_shutdown(io.ssl);
	_exit(0);
}

static inline int listen_any(int *port, int backlog)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
		  listen(fd, backlog) == 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static inline SSL_CTX *server_ctx(const struct pair *leaf, const struct pair *client_ca)
{
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());

	cr_assert(SSL_CTX_use_certificate(c, leaf->cert) == 1 &&
		  SSL_CTX_use_PrivateKey(c, leaf->key) == 1);
	if (client_ca) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(c), client_ca->cert);
		SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	}
	return c;
}

/* leaf NULL: plain http. client_ca: a client certificate of it is required. */
static inline void server_start(
	struct server *s, const struct pair *leaf, const struct pair *client_ca)
{
	int fd = listen_any(&s->port, 128);

	s->sh = mmap(
		NULL, sizeof(*s->sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(s->sh, MAP_FAILED);
	s->ctx = leaf ? server_ctx(leaf, client_ca) : NULL;
	pid_t tests = getpid();

	s->pid = fork();
	cr_assert(s->pid >= 0);
	if (s->pid == 0) {
		pid_t self = getpid();

		die_with(tests);
		signal(SIGCHLD, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		for (;;) {
			int c = accept(fd, NULL, NULL);

			if (c >= 0 && fork() == 0) {
				die_with(self);
				close(fd);
				serve_conn(s, c);
			}
			close(c);
		}
	}
	close(fd);
}

static inline void server_stop(struct server *s)
{
	kill(s->pid, SIGKILL);
	SSL_CTX_free(s->ctx);
	munmap(s->sh, sizeof(*s->sh));
}

/* ---- the client side of a test ---- */

static struct loop *l;
static struct httpc *c;
static struct op_scope ops;
static struct server srv;

struct res {
	bool done;
	unsigned n_done;
	struct err err;
	int status;
	uint32_t retry_after_ms;
	char body[512], type[64], location[256], challenge[256];
	size_t body_len, data_len;
	size_t fail_at;   /* on_data fails with at least so many bytes; 0: never */
	struct op **kill; /* on_data cancels it */
	struct op *op;
	struct res *start_next; /* on_data or done starts this one */
};

static inline int on_data(void *arg, const void *data, size_t len, struct err *err);

static inline void on_done(void *arg, const struct err *err, const struct httpc_answer *a)
{
	struct res *r = arg;

	r->done = true;
	r->n_done++;
	r->err = *err;
	r->status = a->status;
	r->retry_after_ms = a->retry_after_ms;
	r->body_len = a->body_len;
	cr_assert_eq(strlen(a->body), a->body_len);
	snprintf(r->body, sizeof(r->body), "%s", a->body);
	snprintf(r->type, sizeof(r->type), "%s", a->content_type ? a->content_type : "");
	snprintf(r->location, sizeof(r->location), "%s", a->location ? a->location : "(none)");
	snprintf(r->challenge, sizeof(r->challenge), "%s",
		a->www_authenticate ? a->www_authenticate : "(none)");
}

static inline struct op *start_req(struct httpc_request *req, bool stream, struct res *r)
{
	struct op *op;

	req->stream = stream;
	if (!req->method)
		req->method = "GET";
	op = httpc_start(c, &ops, req, stream ? on_data : NULL, on_done, r);
	cr_assert_not(r->done, "done before the call returned");
	return op_hold(&r->op, op);
}

static inline char *url_of(const char *path)
{
	static char url[4][256];
	static unsigned n;
	char *u = url[n++ % 4];

	snprintf(u, sizeof(url[0]), "%s://127.0.0.1:%d%s", srv.ctx ? "https" : "http", srv.port,
		path);
	return u;
}

static inline void start(
	const char *path, struct httpc_tls *tls, bool stream, uint32_t deadline_ms, struct res *r)
{
	struct httpc_request req = {.url = url_of(path), .tls = tls, .deadline_ms = deadline_ms};

	(void)start_req(&req, stream, r);
}

static inline int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct res *r = arg;

	r->data_len += len;
	if (r->start_next && !r->start_next->op && !r->start_next->done)
		start("/ok", NULL, r->data_len % 2, 5000, r->start_next);
	if (r->kill)
		op_cancel(r->kill);
	if (r->fail_at && r->data_len >= r->fail_at)
		return err_set(err, ERR_GONE, "the line is bad");
	return 0;
}

static inline void wait_for(const bool *flag)
{
	uint64_t end = clock_boot_ms() + 10000;

	while (!*flag && clock_boot_ms() < end)
		loop_turn(l, 100);
	cr_assert(*flag, "nothing happened for 10 s");
}

static inline void fetch(const char *path, struct httpc_tls *tls, struct res *r)
{
	memset(r, 0, sizeof(*r));
	start(path, tls, false, 5000, r);
	wait_for(&r->done);
}

static inline void setup_client(void)
{
	loop_ignore_sigpipe();
	log_setup(LOG_ERROR, LOG_TEXT);
	l = loop_new();
	c = httpc_new(l);
}

static inline void teardown_client(void)
{
	op_scope_cancel(&ops);
	httpc_free(c);
	loop_free(l);
	metric_reset_all();
	cr_assert_eq(secret_count(), 0);
}

#endif
