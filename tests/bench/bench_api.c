/* SPDX-License-Identifier: MIT */
/*
 * bench_api HOW[:AT_ONCE] SERVER CA_FILE TOKEN_FILE WARM_UP PER_NODE < REQUESTS
 * What it costs just to send requests to the API server and to read the answers: no watch, no JSON.
 * HOW is openssl (blocking, a bare loop of SSL_write and SSL_read: the measure of the others),
 * curl (libcurl's easy interface) or h2c (ours, on our loop). The requests of a node, PER_NODE
 * lines, follow one another; h2c sends those of AT_ONCE nodes at a time.
 * Prints the processor time of one request in us, the first WARM_UP requests left out.
 * A request is a line: METHOD, path, content type and body, separated by tabs.
 */
#include "config.h"

#include <curl/curl.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/h2c.h"

#define FIELDS   4
#define FILE_MAX (64 * 1024)

enum { METHOD, PATH, TYPE, BODY };

static struct bench {
	char *(*requests)[FIELDS];
	size_t n, warm_up, per_node, at_once;
	const char *server, *ca_file;
	char ca[FILE_MAX], token[FILE_MAX];
	double start_us;
} b;

static void die(const char *what, const char *text)
{
	fprintf(stderr, "bench_api: %s: %s\n", what, text);
	exit(1);
}

static double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Before request i is sent. */
static void note_start(size_t i)
{
	if (i == b.warm_up)
		b.start_us = cpu_us();
}

static void check_status(long status, size_t i)
{
	if (status < 200 || status > 299)
		die("refused by the server", b.requests[i][PATH]);
}

/* ---- openssl */

static SSL *ssl_connect(void)
{
	char host[256] = "";
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char *port;
	int fd;
	SSL *ssl;

	snprintf(host, sizeof(host), "%s", b.server + strlen("https://"));
	port = strrchr(host, ':');
	if (!port)
		die("no port", b.server);
	*port++ = '\0';
	if (getaddrinfo(host, port, &hints, &ai) != 0)
		die("unknown host", host);
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) < 0)
		die("cannot connect", b.server);
	freeaddrinfo(ai);
	SSL_CTX_load_verify_locations(ctx, b.ca_file, NULL);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	SSL_set_fd(ssl, fd);
	if (SSL_connect(ssl) != 1)
		die("TLS", b.server);
	return ssl;
}

/* The whole answer, of known length or in chunks. */
static long read_answer(SSL *ssl, struct strbuf *in)
{
	size_t want = SIZE_MAX;
	char buf[16384];

	strbuf_reset(in);
	while (in->len < want) {
		int len = SSL_read(ssl, buf, sizeof(buf));
		const char *end, *length;

		if (len <= 0)
			die("no answer", b.server);
		strbuf_add(in, buf, (size_t)len);
		end = strstr(in->data, "\r\n\r\n");
		if (!end || want != SIZE_MAX)
			continue;
		length = strstr(in->data, "Content-Length: ");
		if (length && length < end)
			want = (size_t)(end + 4 - in->data) + strtoul(length + 16, NULL, 10);
		else if (str_ends(in->data, "\r\n0\r\n\r\n"))
			break;
	}
	return strtol(in->data + strlen("HTTP/1.1 "), NULL, 10);
}

static void run_openssl(void)
{
	struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;
	SSL *ssl = ssl_connect();

	for (size_t i = 0; i < b.n; i++) {
		char **r = b.requests[i];

		note_start(i);
		strbuf_reset(&out);
		strbuf_addf(&out,
			"%s %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\nAuthorization: "
			"Bearer %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
			r[METHOD], r[PATH], b.server + strlen("https://"), b.token, r[TYPE],
			strlen(r[BODY]), r[BODY]);
		if (SSL_write(ssl, out.data, (int)out.len) != (int)out.len)
			die("cannot send", r[PATH]);
		check_status(read_answer(ssl, &in), i);
	}
	strbuf_fini(&in);
	strbuf_fini(&out);
	SSL_free(ssl);
}

/* ---- curl */

static void check(CURLcode rc, const char *what)
{
	if (rc)
		die(what, curl_easy_strerror(rc));
}

static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	return size * n;
}

/* The request's own headers on top of those every request has. */
static struct curl_slist *headers(const char *type)
{
	cleanup_free char *bearer = xasprintf("Authorization: Bearer %s", b.token);
	cleanup_free char *content = xasprintf("Content-Type: %s", type);
	struct curl_slist *l = curl_slist_append(NULL, "Accept: application/json");

	l = curl_slist_append(l, bearer);
	l = curl_slist_append(l, content);
	l = curl_slist_append(l, "Expect:");
	if (!l)
		die("headers", "out of memory");
	return l;
}

static void run_curl(void)
{
	CURL *e = curl_easy_init();

	check(curl_easy_setopt(e, CURLOPT_CAINFO, b.ca_file), "CA");
	check(curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_write), "write function");
	check(curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1), "HTTP");
	check(curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 16384L), "buffer size");
	for (size_t i = 0; i < b.n; i++) {
		char **r = b.requests[i];
		cleanup_free char *url = xasprintf("%s%s", b.server, r[PATH]);
		struct curl_slist *l = headers(r[TYPE]);
		long status = 0;

		note_start(i);
		check(curl_easy_setopt(e, CURLOPT_URL, url), "url");
		check(curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r[METHOD]), "method");
		check(curl_easy_setopt(e, CURLOPT_POSTFIELDS, r[BODY]), "body");
		check(curl_easy_setopt(e, CURLOPT_HTTPHEADER, l), "headers");
		check(curl_easy_perform(e), r[PATH]);
		check(curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status), "status");
		check_status(status, i);
		curl_slist_free_all(l);
	}
	curl_easy_cleanup(e);
}

/* ---- h2c */

static struct h2 {
	struct loop *loop;
	struct h2c *h2;
	struct op_scope ops;
	struct httpc_tls *tls;
	size_t next_node, done;
} h2;

static void send_h2(size_t i);

static void on_done(void *arg, const struct err *err, const struct httpc_answer *a)
{
	size_t i = (size_t)((char *(*)[FIELDS])arg - b.requests);

	if (err_is_set(err))
		die("h2c", err->text);
	check_status(a->status, i);
	h2.done++;
	if ((i + 1) % b.per_node != 0)
		send_h2(i + 1);
	else if (h2.next_node < b.n)
		send_h2(h2.next_node);
}

static void send_h2(size_t i)
{
	char **r = b.requests[i];
	cleanup_free char *url = xasprintf("%s%s", b.server, r[PATH]);
	struct httpc_header head[] = {{"Accept", "application/json"}, {"Content-Type", r[TYPE]}};
	struct httpc_request req = {.method = r[METHOD],
		.url = url,
		.tls = h2.tls,
		.headers = head,
		.n_headers = ARRAY_LEN(head),
		.bearer = b.token,
		.body = r[BODY],
		.body_len = strlen(r[BODY]),
		.max_body = 4 << 20,
		.deadline_ms = 15000};

	if (i % b.per_node == 0)
		h2.next_node = i + b.per_node;
	note_start(h2.done);
	(void)h2c_start(h2.h2, &h2.ops, &req, NULL, on_done, b.requests[i]);
}

static void run_h2c(void)
{
	struct err err = ERR_INIT;
	struct httpc *http;

	h2.loop = loop_new();
	http = httpc_new(h2.loop);
	h2.h2 = h2c_new(h2.loop, http);
	h2.tls = httpc_tls_new(b.ca, strlen(b.ca), NULL, 0, NULL, 0, NULL, &err);
	if (!h2.tls)
		die("CA", err.text);
	for (size_t i = 0; i < b.at_once && h2.next_node < b.n; i++)
		send_h2(h2.next_node);
	while (h2.done < b.n)
		loop_turn(h2.loop, 1000);
	httpc_tls_unref(h2.tls);
	h2c_free(h2.h2);
	httpc_free(http);
	loop_free(h2.loop);
}

/* ---- what is sent */

static void read_file(const char *file, char text[FILE_MAX])
{
	FILE *f = fopen(file, "r");
	size_t len = f ? fread(text, 1, FILE_MAX - 1, f) : 0;

	if (!len)
		die("cannot read", file);
	text[len] = '\0';
	fclose(f);
}

static void read_requests(void)
{
	size_t cap = 0;
	char *line = NULL;
	ssize_t len;

	while ((len = getline(&line, &cap, stdin)) > 0) {
		char *rest = xstrndup(line, strcspn(line, "\n"));

		b.requests = xreallocarray(b.requests, b.n + 1, sizeof(*b.requests));
		for (int i = 0; i < FIELDS; i++)
			b.requests[b.n][i] = strsep(&rest, "\t");
		if (!b.requests[b.n][BODY])
			die("not a request", line);
		b.n++;
	}
	free(line);
	if (b.n <= b.warm_up || b.n % b.per_node != 0)
		die("requests", "none after warming up, or a node lacks some");
}

int main(int argc, char **argv)
{
	const char *at_once = argc > 1 ? strchr(argv[1], ':') : NULL;

	if (argc != 7)
		die("usage", "bench_api HOW SERVER CA_FILE TOKEN_FILE WARM_UP PER_NODE < REQUESTS");
	b.server = argv[2];
	b.ca_file = argv[3];
	b.warm_up = strtoul(argv[5], NULL, 10);
	b.per_node = strtoul(argv[6], NULL, 10);
	b.at_once = at_once ? strtoul(at_once + 1, NULL, 10) : 1;
	read_file(argv[3], b.ca);
	read_file(argv[4], b.token);
	b.token[strcspn(b.token, "\n")] = '\0';
	read_requests();
	if (str_eq(argv[1], "openssl"))
		run_openssl();
	else if (str_eq(argv[1], "curl"))
		run_curl();
	else if (str_starts(argv[1], "h2c"))
		run_h2c();
	else
		die("HOW", "openssl, curl or h2c[:AT_ONCE]");
	printf("%.2f\n", (cpu_us() - b.start_us) / (double)(b.n - b.warm_up));
	return 0;
}
