/* SPDX-License-Identifier: MIT */
/*
 * For bench_guard.py, each a process of its own:
 * bench_guard trustee           plays Trustee over plain HTTP, prints its port
 * bench_guard relay PORT CERT KEY   the yardstick: TLS by bare OpenSSL on blocking sockets, bytes copied
 *                               to the Trustee at PORT and back; prints its port
 * bench_guard ask PORT COUNT    COUNT nodes one after the other: a TLS connection, auth, attest, resource
 * bench_guard nodes PORT COUNT  COUNT nodes at once, each from an address of its own; prints how many were
 *                               served, told to come later and neither, and the longest in milliseconds
 * bench_guard hold PORT COUNT   COUNT TLS connections that have sent one request; holds them until its
 *                               input ends
 * bench_guard begin PORT COUNT  COUNT handshakes begun and left, 500 of each address
 * For bench_handover.py:
 * bench_guard load RATE PCR4 PCR14 PORT...   prints its attestation key, reads the path of its disk key, then
 *                               attests RATE times a second at brokers that verify it, with a fresh quote each
 *                               time; each line of input is answered with how many got the key, how many did
 *                               not, and the longest in milliseconds, since the line before
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rats/fixture.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/loop/signal.h"

#define BUF       16384
#define PATIENCE  60 /* seconds: a node that waits longer for anything hangs */
#define AUTH_BODY "{\"version\":\"0.4.0\",\"tee\":\"tpm\",\"extra-params\":{}}"
#define PATH      "/kbs/v0/resource/default/11111111-2222-4333-8444-555555555555/root"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- sockets */

static int listen_loopback(void)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, SOMAXCONN) < 0)
		die("listen");
	getsockname(fd, (struct sockaddr *)&sa, &len);
	printf("%u\n", ntohs(sa.sin_port));
	fflush(stdout);
	return fd;
}

/* From 127.x.y.z; -1: not connected. */
static int connect_from(unsigned source, unsigned port)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
	struct timeval patience = {.tv_sec = PATIENCE};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256 + source);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons((uint16_t)port);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 &&
		connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* A connection that is read by bytes: SSL or, without it, plain. */
struct conn {
	SSL *ssl;
	int fd;
};

static int conn_read(const struct conn *c, char *buf, size_t size)
{
	return c->ssl ? SSL_read(c->ssl, buf, (int)size) : (int)read(c->fd, buf, size);
}

static int conn_write(const struct conn *c, const char *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		int n = c->ssl ? SSL_write(c->ssl, buf + done, (int)(len - done))
			       : (int)write(c->fd, buf + done, len - done);

		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

/* One message with its body, of a peer that sends no second one before the answer; its length, 0 at
 * the end. */
static size_t read_message(const struct conn *c, char buf[BUF])
{
	size_t len = 0;

	for (;;) {
		const char *end, *length;
		int n = conn_read(c, buf + len, BUF - 1 - len);

		if (n <= 0)
			return 0;
		len += (size_t)n;
		buf[len] = '\0';
		end = strstr(buf, "\r\n\r\n");
		if (!end)
			continue;
		length = strcasestr(buf, "\r\nContent-Length:");
		if (len >= (size_t)(end + 4 - buf) +
				   (length && length < end ? strtoul(length + 17, NULL, 10) : 0))
			return len;
	}
}

/* ---- Trustee */

static void *serve_upstream(void *arg)
{
	struct conn c = {NULL, (int)(intptr_t)arg};
	static unsigned cookie;
	char in[BUF];

	while (read_message(&c, in)) {
		char body[4000] = "", head[400];
		int n;

		head[0] = '\0';
		if (strstr(in, "/auth ")) {
			snprintf(body, sizeof(body), "{\"nonce\":\"%s\",\"extra-params\":\"\"}",
				FIXTURE_NONCE);
			snprintf(head, sizeof(head),
				"Set-Cookie: kbs-session-id=%032x; Expires=Wed, 21 Oct 2099 07:28:00 GMT\r\n",
				__atomic_add_fetch(&cookie, 1, __ATOMIC_RELAXED));
		} else if (strstr(in, "/attest ")) { /* as long as a token is */
			n = snprintf(body, sizeof(body), "{\"token\":\"%03500d\"}", 0);
		} else if (strstr(in, "/resource/")) {
			n = snprintf(body, sizeof(body), "{\"ciphertext\":\"%0500d\"}", 0);
		}
		n = snprintf(in, sizeof(in),
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
			head, strlen(body), body);
		if (conn_write(&c, in, (size_t)n) < 0)
			break;
	}
	close(c.fd);
	return NULL;
}

static void start_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 256 << 10);
	if (pthread_create(t, &a, fn, arg) != 0)
		die("thread");
	pthread_attr_destroy(&a);
}

static void play_trustee(void)
{
	int fd = listen_loopback(), on = 1;

	for (;;) {
		int c = accept(fd, NULL, NULL);
		pthread_t t;

		setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		start_thread(&t, serve_upstream, (void *)(intptr_t)c);
		pthread_detach(t);
	}
}

/* ---- the yardstick */

static void relay(unsigned port, const char *cert, const char *key)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	struct conn up = {NULL, connect_from(0, port)};
	int fd, on = 1;
	char buf[BUF];

	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
		SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 || up.fd < 0)
		die("relay");
	fd = listen_loopback();
	for (;;) {
		struct conn c = {SSL_new(ctx), accept(fd, NULL, NULL)};
		size_t n;

		setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		SSL_set_fd(c.ssl, c.fd);
		if (SSL_accept(c.ssl) == 1)
			while ((n = read_message(&c, buf)) > 0) {
				if (conn_write(&up, buf, n) < 0)
					die("Trustee");
				n = read_message(&up, buf);
				if (conn_write(&c, buf, n) < 0)
					break;
			}
		SSL_shutdown(c.ssl);
		SSL_free(c.ssl);
		close(c.fd);
	}
}

/* ---- nodes */

enum outcome { SERVED, TOLD, NEITHER };

static SSL_CTX *client;
static char *attestation;
static unsigned node_port;

static int send_request(const struct conn *c, const char *method, const char *path,
	const char *cookie, const char *body)
{
	cleanup_free char *text =
		xasprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s"
			  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			method, path, cookie ? "Cookie: " : "", cookie ? cookie : "",
			cookie ? "\r\n" : "", strlen(body), body);

	return conn_write(c, text, strlen(text));
}

static enum outcome outcome_of(const char *answer)
{
	if (strncmp(answer, "HTTP/1.1 200", 12) == 0)
		return SERVED;
	return strncmp(answer, "HTTP/1.1 429", 12) == 0 && strcasestr(answer, "\r\nRetry-After:")
		       ? TOLD
		       : NEITHER;
}

static enum outcome ask(const struct conn *c, const char *method, const char *path,
	const char *cookie, const char *body, char answer[BUF])
{
	if (send_request(c, method, path, cookie, body) < 0 || !read_message(c, answer))
		return NEITHER;
	return outcome_of(answer);
}

static enum outcome attest(const struct conn *c)
{
	char answer[BUF], cookie[100];
	const char *set;
	enum outcome o = ask(c, "POST", "/kbs/v0/auth", NULL, AUTH_BODY, answer);

	if (o != SERVED)
		return o;
	set = strcasestr(answer, "\r\nSet-Cookie:");
	if (!set)
		return NEITHER;
	set += strlen("\r\nSet-Cookie: ");
	snprintf(cookie, sizeof(cookie), "%.*s", (int)strcspn(set, ";\r"), set);
	o = ask(c, "POST", "/kbs/v0/attest", cookie, attestation, answer);
	return o == SERVED ? ask(c, "GET", PATH, cookie, "", answer) : o;
}

static int open_conn(unsigned source, struct conn *c)
{
	*c = (struct conn){NULL, connect_from(source, node_port)};
	if (c->fd < 0)
		return -1;
	c->ssl = SSL_new(client);
	SSL_set_fd(c->ssl, c->fd);
	return SSL_connect(c->ssl) == 1 ? 0 : -1;
}

static void close_conn(struct conn *c)
{
	if (c->ssl) {
		SSL_shutdown(c->ssl);
		SSL_free(c->ssl);
	}
	if (c->fd >= 0)
		close(c->fd);
	ERR_clear_error();
}

struct node {
	pthread_t thread;
	unsigned source;
	enum outcome outcome;
	uint64_t ms;
};

static pthread_barrier_t start_line;

static void *run_node(void *arg)
{
	struct node *n = arg;
	uint64_t start;
	struct conn c;

	pthread_barrier_wait(&start_line);
	start = clock_boot_ms();
	n->outcome = open_conn(n->source, &c) == 0 ? attest(&c) : NEITHER;
	close_conn(&c);
	n->ms = clock_boot_ms() - start;
	return NULL;
}

static void at_once(unsigned count)
{
	struct node *nodes = xcalloc(count, sizeof(*nodes));
	unsigned sum[3] = {0};
	uint64_t longest = 0;

	pthread_barrier_init(&start_line, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		nodes[i].source = i;
		start_thread(&nodes[i].thread, run_node, &nodes[i]);
	}
	for (unsigned i = 0; i < count; i++) {
		pthread_join(nodes[i].thread, NULL);
		sum[nodes[i].outcome]++;
		longest = nodes[i].ms > longest ? nodes[i].ms : longest;
	}
	printf("%u %u %u %llu\n", sum[SERVED], sum[TOLD], sum[NEITHER],
		(unsigned long long)longest);
	free(nodes);
}

static void one_by_one(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct conn c;

		if (open_conn(0, &c) < 0 || attest(&c) != SERVED) {
			fprintf(stderr, "bench_guard: a node was not served\n");
			exit(1);
		}
		close_conn(&c);
	}
}

static void hold(unsigned count)
{
	struct conn *c = xcalloc(count, sizeof(*c));
	char answer[BUF];

	for (unsigned i = 0; i < count; i++)
		if (open_conn(i, &c[i]) < 0 ||
			ask(&c[i], "GET", "/healthz", NULL, "", answer) != SERVED)
			die("hold");
	printf("held\n");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	for (unsigned i = 0; i < count; i++)
		close_conn(&c[i]);
	free(c);
}

static void begin(unsigned count)
{
	char answer[BUF];
	struct conn c = {0};

	for (unsigned i = 0; i < count; i++) {
		if (i % 50 == 0) {
			if (i)
				close_conn(&c);
			if (open_conn(1 + i / 500, &c) < 0)
				die("begin");
		}
		if (ask(&c, "POST", "/kbs/v0/auth", NULL, AUTH_BODY, answer) != SERVED) {
			fprintf(stderr, "bench_guard: not begun: %.60s\n", answer);
			exit(1);
		}
	}
	close_conn(&c);
}

/* ---- a steady load */

#define LOADERS 2 /* of each broker */

struct load {
	unsigned served, failed, longest_ms;
};

static uint8_t booted[2][SHA256_LEN]; /* PCR 4 and 14 */

/* As fixture_attest_for(), of a machine that has booted an image. */
static char *attestation_for(const char *nonce)
{
	static const uint8_t all[] = {0, 0, 0, 1, 0, 0x0b, 3, 0xff, 0xff, 0xff};
	static const struct pki_jwk jwk = {.kty = "EC",
		.crv = "P-256",
		.alg = "ECDH-ES+A256KW",
		.x = FIXTURE_X,
		.y = FIXTURE_Y};
	cleanup_json struct json_object *evidence = NULL;
	uint8_t binding[RATS_BINDING_LEN];
	struct fixture_quote q;

	rats_binding(&jwk, nonce, "", binding);
	fixture_quote(binding, &q);
	memcpy(q.pcrs[4], booted[0], SHA256_LEN);
	memcpy(q.pcrs[14], booted[1], SHA256_LEN);
	fixture_quote_select(&q, all, sizeof(all));
	evidence = fixture_evidence(&q);
	return xasprintf(
		"{\"runtime-data\":{\"nonce\":\"%s\",\"tee-pubkey\":{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":"
		"\"ECDH-ES+A256KW\",\"x\":\"" FIXTURE_X "\",\"y\":\"" FIXTURE_Y
		"\"}},\"tee-evidence\":{\"primary_evidence\":%s,\"additional_evidence\":\"\"}}",
		nonce, json_object_to_json_string(evidence));
}

/* One node: a connection, auth, attest, its disk key. */
static bool gets_key(unsigned port, const char *path)
{
	char answer[BUF] = "", cookie[100] = "", nonce[100] = "";
	struct conn c = {NULL, -1};
	const char *at;
	bool ok = false;

	node_port = port;
	if (open_conn(0, &c) == 0 &&
		ask(&c, "POST", "/kbs/v0/auth", NULL, AUTH_BODY, answer) == SERVED &&
		(at = strcasestr(answer, "\r\nSet-Cookie: "))) {
		snprintf(cookie, sizeof(cookie), "%.*s", (int)strcspn(at + 14, ";\r"), at + 14);
		at = strstr(answer, "\"nonce\":\"");
		if (at)
			snprintf(nonce, sizeof(nonce), "%.*s", (int)strcspn(at + 9, "\""), at + 9);
		attestation = attestation_for(nonce);
		ok = ask(&c, "POST", "/kbs/v0/attest", cookie, attestation, answer) == SERVED &&
		     ask(&c, "GET", path, cookie, "", answer) == SERVED;
		free(steal_ptr(&attestation));
	}
	if (!ok)
		fprintf(stderr, "bench_guard: no key at %u: %.300s\n", port, answer);
	close_conn(&c);
	return ok;
}

static void keep_asking(unsigned port, const char *path, unsigned every_ms, struct load *l)
{
	for (uint64_t due = clock_boot_ms();; due += every_ms) {
		uint64_t now = clock_boot_ms();

		if (now < due)
			usleep((useconds_t)(due - now) * 1000);
		else if (now - due > 1000)
			due = now; /* what cannot be had is not asked for later */
		now = clock_boot_ms();
		__atomic_add_fetch(
			gets_key(port, path) ? &l->served : &l->failed, 1, __ATOMIC_RELAXED);
		if (clock_boot_ms() - now > l->longest_ms)
			l->longest_ms = (unsigned)(clock_boot_ms() - now);
	}
}

static void say_load(struct load *l, unsigned n)
{
	struct load sum = {0};

	for (unsigned i = 0; i < n; i++) {
		sum.served += __atomic_exchange_n(&l[i].served, 0, __ATOMIC_RELAXED);
		sum.failed += __atomic_exchange_n(&l[i].failed, 0, __ATOMIC_RELAXED);
		sum.longest_ms =
			l[i].longest_ms > sum.longest_ms ? l[i].longest_ms : sum.longest_ms;
		l[i].longest_ms = 0;
	}
	printf("%u %u %u\n", sum.served, sum.failed, sum.longest_ms);
	fflush(stdout);
}

/* The key is made before the processes are, so that all are one node. */
static void load(unsigned rate, char **ports, unsigned n_ports)
{
	unsigned n = n_ports * LOADERS;
	struct load *l = mmap(
		NULL, n * sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *child = xcalloc(n, sizeof(*child));
	cleanup_json struct json_object *o = fixture_attest(false);
	char path[200], line[200];

	printf("%s\n", json_get_str(o, "tee-evidence/primary_evidence/ak_public"));
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("no path");
	snprintf(path, sizeof(path), "/kbs/v0/resource/%.*s", (int)strcspn(line, "\n"), line);
	for (unsigned i = 0; i < n; i++)
		if ((child[i] = fork()) == 0)
			keep_asking((unsigned)strtoul(ports[i % n_ports], NULL, 10), path,
				1000 * n / rate, &l[i]);
	while (fgets(line, sizeof(line), stdin))
		say_load(l, n);
	for (unsigned i = 0; i < n; i++)
		kill(child[i], SIGKILL);
	free(child);
}

static void prepare(const char *port)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	attestation = json_text(o);
	client = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(client, SSL_MODE_RELEASE_BUFFERS);
	node_port = (unsigned)strtoul(port, NULL, 10);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(unsigned count);
	} parts[] = {{"ask", one_by_one}, {"nodes", at_once}, {"hold", hold}, {"begin", begin}};

	loop_ignore_sigpipe();
	if (argc == 2 && strcmp(argv[1], "trustee") == 0)
		play_trustee();
	if (argc == 5 && strcmp(argv[1], "relay") == 0)
		relay((unsigned)strtoul(argv[2], NULL, 10), argv[3], argv[4]);
	if (argc >= 6 && strcmp(argv[1], "load") == 0 && strlen(argv[3]) == SHA256_HEX_LEN &&
		strlen(argv[4]) == SHA256_HEX_LEN) {
		prepare("0");
		if (bytes_from_hex(argv[3], SHA256_HEX_LEN, booted[0]) < 0 ||
			bytes_from_hex(argv[4], SHA256_HEX_LEN, booted[1]) < 0)
			die("PCR");
		load((unsigned)strtoul(argv[2], NULL, 10), argv + 5, (unsigned)argc - 5);
		SSL_CTX_free(client);
		free(attestation);
		return 0;
	}
	for (size_t i = 0; argc == 4 && i < ARRAY_LEN(parts); i++) {
		if (strcmp(argv[1], parts[i].name) != 0)
			continue;
		prepare(argv[2]);
		parts[i].fn((unsigned)strtoul(argv[3], NULL, 10));
		SSL_CTX_free(client);
		free(attestation);
		return 0;
	}
	fprintf(stderr,
		"usage: bench_guard trustee | relay PORT CERT KEY | (ask|nodes|hold|begin) PORT COUNT | "
		"load RATE PCR4 PCR14 PORT...\n");
	return 2;
}
