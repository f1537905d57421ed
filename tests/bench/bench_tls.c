/* SPDX-License-Identifier: MIT */
/*
 * bench_tls [connections [rounds]]
 * bench_tls answer CERT KEY LENGTH
 * bench_tls ask PORT COUNT
 * handshake: processor time of a server for one new TLS 1.3 connection (ECDSA P-256) with one GET:
 * httpd on its loop against a bare OpenSSL server on blocking sockets with the same context, in
 * turns. Client and servers are processes of their own; a server's time is what the kernel counted
 * for it from its first accept to its end. inflight: 2,000 requests that are all in their handlers
 * at the same moment, answered together; the server's peak memory.
 * For bench.py, answer: the bare server alone, which prints its port and answers LENGTH bytes until
 * it is ended; ask: the client alone, COUNT new connections with one GET /ignition each.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "../net/net_testing.h"

#include "tec/base/log.h"
#include "tec/loop/signal.h"
#include "tec/net/httpd.h"
#include "tec/net/tls.h"

#define ROUNDS_MAX 101
#define N_INFLIGHT 2000

static const char request[] = "GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
static const char get_hold[] = "GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct started {
	unsigned port;
	struct rusage usage; /* before the first accept */
};

struct child {
	pid_t pid;
	struct started started;
};

typedef void (*server_fn)(struct tls_ctx *tls, int report);

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void report_started(int fd, unsigned port)
{
	struct started s = {.port = port};

	getrusage(RUSAGE_SELF, &s.usage);
	if (write(fd, &s, sizeof(s)) != sizeof(s))
		die("write");
	close(fd);
}

/* ---- servers */

static int listen_loopback(unsigned *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, SOMAXCONN) < 0)
		die("listen");
	getsockname(fd, (struct sockaddr *)&sa, &len);
	*port = ntohs(sa.sin_port);
	return fd;
}

static void answer_all(SSL_CTX *ctx, int fd, const char *reply, size_t reply_len)
{
	for (;;) {
		int c = accept(fd, NULL, NULL);
		SSL *ssl = SSL_new(ctx);
		char buf[4096];

		SSL_set_fd(ssl, c);
		if (SSL_accept(ssl) == 1 && SSL_read(ssl, buf, sizeof(buf)) > 0)
			SSL_write(ssl, reply, (int)reply_len);
		SSL_shutdown(ssl);
		SSL_free(ssl);
		close(c);
	}
}

static void serve_blocking(SSL_CTX *ctx, int report)
{
	static const char reply[] =
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"
		"Connection: close\r\n\r\npong";
	unsigned port;
	int fd = listen_loopback(&port);

	report_started(report, port);
	answer_all(ctx, fd, reply, sizeof(reply) - 1);
}

static void serve_answer(const char *cert, const char *key, size_t len)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	cleanup_strbuf struct strbuf reply = STRBUF_INIT;
	unsigned port;
	int fd = listen_loopback(&port);

	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
		SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		die("certificate");
	strbuf_addf(&reply,
		"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.coreos.ignition+json\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n",
		len);
	while (len--)
		strbuf_addc(&reply, 'x');
	printf("%u\n", port);
	fflush(stdout);
	answer_all(ctx, fd, reply.data, reply.len);
}

static void serve_same(struct tls_ctx *tls, int report)
{
	serve_blocking(tls_ctx_ssl(tls), report);
}

static void serve_bare(struct tls_ctx *tls, int report)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, SSL_CTX_get0_certificate(tls_ctx_ssl(tls)));
	SSL_CTX_use_PrivateKey(ctx, SSL_CTX_get0_privatekey(tls_ctx_ssl(tls)));
	serve_blocking(ctx, report);
}

static void on_ping(struct httpd_req *req, void *arg)
{
	httpd_reply(req, 200, "text/plain", "pong", 4);
}

/* A call that ends when all the others have begun. */
struct held {
	struct op op;
	struct httpd_req *req;
	struct held *next;
};

static struct held *held;
static unsigned n_held;

static void abort_held(struct op *op)
{
	fprintf(stderr, "a request in flight was cancelled\n");
	exit(1);
}

static void on_hold(struct httpd_req *req, void *arg)
{
	struct held *c = xcalloc(1, sizeof(*c));

	c->req = req;
	c->next = held;
	op_begin(&c->op, httpd_req_ops(req), abort_held);
	held = c;
	if (++n_held < N_INFLIGHT)
		return;
	while ((c = held)) {
		held = c->next;
		op_finish(&c->op);
		httpd_reply(c->req, 200, "text/plain", "held", 4);
		free(c);
	}
	n_held = 0;
}

static void serve_httpd(struct tls_ctx *tls, int report)
{
	static const struct httpd_route routes[] = {
		{"/ping", HTTPD_GET, .fn = on_ping},
		{"/hold", HTTPD_GET, .fn = on_hold},
	};
	struct httpd_conf conf = httpd_conf_default;
	struct loop *loop = loop_new();
	struct err err = ERR_INIT;
	struct httpd *h;

	log_setup(LOG_WARN, LOG_TEXT);
	conf.name = "bench";
	conf.max_connections = N_INFLIGHT + 100;
	conf.request_ms = conf.idle_ms = 120000;
	conf.routes = routes;
	conf.n_routes = ARRAY_LEN(routes);
	h = httpd_new(loop, &conf);
	httpd_set_tls(h, tls);
	if (httpd_listen(h, "127.0.0.1:0", &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	report_started(report, httpd_port(h));
	loop_run(loop);
}

static struct child start(server_fn serve, struct tls_ctx *tls)
{
	struct child c;
	int fds[2];

	if (pipe(fds) < 0)
		die("pipe");
	c.pid = fork();
	if (c.pid < 0)
		die("fork");
	if (c.pid == 0) {
		close(fds[0]);
		serve(tls, fds[1]);
		exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &c.started, sizeof(c.started)) != sizeof(c.started))
		die("server");
	close(fds[0]);
	return c;
}

static void stop(struct child *c, struct rusage *usage)
{
	kill(c->pid, SIGTERM);
	if (wait4(c->pid, NULL, 0, usage) < 0)
		die("wait4");
}

static double cpu_us(const struct child *c)
{
	struct timespec ts;
	clockid_t id;

	if (clock_getcpuclockid(c->pid, &id) != 0 || clock_gettime(id, &ts) < 0)
		die("processor clock");
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* ---- client */

static SSL *client_connect(SSL_CTX *ctx, unsigned port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;
	SSL *ssl = SSL_new(ctx);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		die("connect");
	SSL_set_fd(ssl, fd);
	if (SSL_connect(ssl) != 1)
		die("SSL_connect");
	return ssl;
}

static void client_send(SSL *ssl, const char *text)
{
	if (SSL_write(ssl, text, (int)strlen(text)) <= 0)
		die("SSL_write");
}

static void client_expect(SSL *ssl, const char *body)
{
	char buf[4096];
	size_t len = 0, want = strlen(body);

	while (len == 0 || len < want || memcmp(buf + len - want, body, want) != 0) {
		int n = SSL_read(ssl, buf + len, (int)(sizeof(buf) - len));

		if (n <= 0) {
			fprintf(stderr, "the connection ended without its answer\n");
			exit(1);
		}
		len += (size_t)n;
	}
	if (memcmp(buf, "HTTP/1.1 200", 12) != 0) {
		fprintf(stderr, "not 200: %.*s\n", (int)len, buf);
		exit(1);
	}
}

static void client_close(SSL *ssl)
{
	int fd = SSL_get_fd(ssl);

	SSL_shutdown(ssl);
	SSL_free(ssl);
	close(fd);
}

static SSL_CTX *client_ctx(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	return ctx;
}

static void ask(unsigned port, unsigned long n)
{
	SSL_CTX *ctx = client_ctx();

	while (n--) {
		SSL *ssl = client_connect(ctx, port);

		client_send(ssl,
			"GET /ignition HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
		client_expect(ssl, "");
		while (SSL_read(ssl, (char[4096]){0}, 4096) > 0)
			continue;
		client_close(ssl);
	}
	SSL_CTX_free(ctx);
}

/* Processor microseconds of the server for one of n connections. */
static double one_block(const struct child *c, SSL_CTX *ctx, unsigned n)
{
	double before = cpu_us(c);

	for (unsigned i = 0; i < n; i++) {
		SSL *ssl = client_connect(ctx, c->started.port);
		char rest[64];

		client_send(ssl, request);
		client_expect(ssl, "pong");
		while (SSL_read(ssl, rest, sizeof(rest)) > 0)
			;
		client_close(ssl);
	}
	return (cpu_us(c) - before) / n;
}

static double median(double *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned j = i; j > 0 && v[j] < v[j - 1]; j--) {
			double t = v[j];

			v[j] = v[j - 1];
			v[j - 1] = t;
		}
	return v[n / 2];
}

static void bench_handshake(struct tls_ctx *tls, unsigned n, unsigned rounds)
{
	static const server_fn servers[] = {serve_bare, serve_same, serve_httpd};
	double us[ARRAY_LEN(servers)][ROUNDS_MAX], ratio[2][ROUNDS_MAX];
	struct child c[ARRAY_LEN(servers)];
	SSL_CTX *ctx = client_ctx();
	struct rusage usage;

	for (unsigned k = 0; k < ARRAY_LEN(servers); k++) {
		c[k] = start(servers[k], tls);
		one_block(&c[k], ctx, n); /* memory, caches */
	}
	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < ARRAY_LEN(servers); k++)
			us[k][i] = one_block(&c[k], ctx, n);
		for (unsigned k = 0; k < 2; k++) /* of neighbours: a busy machine slows both */
			ratio[k][i] = us[2][i] / us[k][i];
	}
	for (unsigned k = 0; k < ARRAY_LEN(servers); k++)
		stop(&c[k], &usage);
	SSL_CTX_free(ctx);
	printf("bench_tls handshake connections=%u rounds=%u bare_us=%.1f same_us=%.1f httpd_us=%.1f "
	       "ratio=%.3f limit=1.15 ratio_same=%.3f\n",
		n, rounds, median(us[0], rounds), median(us[1], rounds), median(us[2], rounds),
		median(ratio[0], rounds), median(ratio[1], rounds));
}

static void bench_inflight(struct tls_ctx *tls)
{
	static SSL *conns[N_INFLIGHT];
	SSL_CTX *ctx = client_ctx();
	struct child c = start(serve_httpd, tls);
	struct rusage usage;
	long grown;

	for (unsigned i = 0; i < N_INFLIGHT; i++) {
		conns[i] = client_connect(ctx, c.started.port);
		client_send(conns[i], get_hold);
	}
	for (unsigned i = 0; i < N_INFLIGHT; i++) {
		client_expect(conns[i], "held");
		client_close(conns[i]);
	}
	stop(&c, &usage);
	SSL_CTX_free(ctx);
	grown = usage.ru_maxrss - c.started.usage.ru_maxrss;
	printf("bench_tls inflight requests=%d all_answered=1 peak_rss_kib=%ld grown_kib=%ld "
	       "kib_per_connection=%.1f bound_kib=64\n",
		N_INFLIGHT, usage.ru_maxrss, grown, (double)grown / N_INFLIGHT);
}

static void raise_limit(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

int main(int argc, char **argv)
{
	bool answers = argc == 5 && strcmp(argv[1], "answer") == 0;
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 50;
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 101;
	struct testing_pem pem;
	struct err err = ERR_INIT;
	struct tls_ctx *tls;

	loop_ignore_sigpipe();
	if (answers)
		serve_answer(argv[2], argv[3], strtoul(argv[4], NULL, 10));
	if (argc == 4 && strcmp(argv[1], "ask") == 0) {
		ask((unsigned)strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
		return 0;
	}
	if (n == 0 || rounds == 0 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_tls [connections [rounds up to %d]]\n", ROUNDS_MAX);
		return 2;
	}
	pem = testing_make_pem(1, 3600);
	tls = tls_ctx_new(pem.cert, strlen(pem.cert), pem.key, strlen(pem.key), &err);
	if (!tls) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	raise_limit();
	bench_handshake(tls, n, rounds);
	bench_inflight(tls);
	tls_ctx_unref(tls);
	testing_pem_fini(&pem);
	return 0;
}
