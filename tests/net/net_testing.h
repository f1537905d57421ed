/* SPDX-License-Identifier: MIT */
/*
 * For tests of net/ and for bench_tls: certificates made on the spot, and an HTTP/TLS client that
 * shares the thread of the server under test: whenever it waits, it runs turns of the server's
 * loop. It never sleeps.
 */
#ifndef TESTS_NET_TESTING_H
#define TESTS_NET_TESTING_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/loop.h"

#define TESTING_WAIT_MS 8000

struct testing_pem {
	char *cert, *key; /* owned */
};

static inline char *testing_pem_text(BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);
	char *text = xstrndup(data, (size_t)len);

	BIO_free(bio);
	return text;
}

/* A self-signed P-256 certificate; serial tells two apart. */
static inline struct testing_pem testing_make_pem(long serial, long valid_s)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);
	BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
	struct testing_pem pem;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), valid_s);
	X509_NAME_add_entry_by_txt(
		name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
	X509_set_issuer_name(x, name);
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	PEM_write_bio_X509(cert_bio, x);
	PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL);
	pem.cert = testing_pem_text(cert_bio);
	pem.key = testing_pem_text(key_bio);
	X509_free(x);
	EVP_PKEY_free(key);
	return pem;
}

static inline void testing_pem_fini(struct testing_pem *pem)
{
	free(pem->cert);
	free(pem->key);
	*pem = (struct testing_pem){NULL, NULL};
}

struct cli {
	struct loop *loop;
	int fd;
	SSL_CTX *ctx; /* NULL: plain */
	SSL *ssl;
	struct strbuf in;
	bool eof;   /* no more bytes will come: closed or broken */
	bool reset; /* broken */
};

struct cli_reply {
	int status;
	char head[4096]; /* with the empty line */
	char *body;      /* owned, NUL-terminated */
	size_t body_len;
};

/* From 127.0.0.`source`. */
static inline struct cli cli_open_from(struct loop *loop, unsigned port, unsigned source)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct cli c = {.loop = loop, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	int on = 1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00) | source);
	if (bind(c.fd, (struct sockaddr *)&from, sizeof(from)) < 0)
		c.eof = c.reset = true;
	setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(c.fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) /* the backlog takes it */
		c.eof = c.reset = true;
	return c;
}

static inline struct cli cli_open(struct loop *loop, unsigned port)
{
	return cli_open_from(loop, port, 1);
}

static inline void cli_close(struct cli *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	if (c->fd >= 0)
		close(c->fd);
	strbuf_fini(&c->in);
	*c = (struct cli){.fd = -1};
	ERR_clear_error();
}

static inline bool cli_late(uint64_t start)
{
	return clock_boot_ms() - start > TESTING_WAIT_MS;
}

static inline void cli_receive(struct cli *c)
{
	char buf[16384];

	while (!c->eof) {
		ssize_t n;

		if (c->ssl) {
			int got = SSL_read(c->ssl, buf, sizeof(buf));
			int why = got > 0 ? 0 : SSL_get_error(c->ssl, got);

			ERR_clear_error();
			if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
				return;
			c->reset = why == SSL_ERROR_SSL || why == SSL_ERROR_SYSCALL;
			n = got;
		} else {
			n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
			if (n < 0 && errno == EAGAIN)
				return;
			c->reset = n < 0;
		}
		if (n > 0)
			strbuf_add(&c->in, buf, (size_t)n);
		else
			c->eof = true;
	}
}

static inline void cli_turn(struct cli *c)
{
	loop_turn(c->loop, 1);
	cli_receive(c);
}

/* false: refused. Afterwards everything goes through TLS. */
static inline bool cli_handshake(struct cli *c, int min, int max, const char *alpn)
{
	uint64_t start = clock_boot_ms();

	c->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_security_level(c->ctx, 0); /* so that TLS 1.1 is offered at all */
	SSL_CTX_set_min_proto_version(c->ctx, min);
	SSL_CTX_set_max_proto_version(c->ctx, max);
	SSL_CTX_set_options(c->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(
		c->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (alpn)
		SSL_CTX_set_alpn_protos(
			c->ctx, (const unsigned char *)alpn, (unsigned)strlen(alpn));
	c->ssl = SSL_new(c->ctx);
	SSL_set_fd(c->ssl, c->fd);
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	while (!cli_late(start)) {
		int rc = SSL_connect(c->ssl);
		int why = rc == 1 ? 0 : SSL_get_error(c->ssl, rc);

		if (rc == 1)
			return true;
		ERR_clear_error();
		if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
			return false;
		loop_turn(c->loop, 1);
	}
	return false;
}

/* Sends as much as the other side takes while it runs; returns the bytes sent. */
static inline size_t cli_send_some(struct cli *c, const void *data, size_t len, unsigned idle_turns)
{
	size_t done = 0;
	unsigned idle = 0;

	while (done < len && idle < idle_turns) {
		ssize_t n = c->ssl ? SSL_write(c->ssl, (const char *)data + done, (int)(len - done))
				   : send(c->fd, (const char *)data + done, len - done,
					     MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			done += (size_t)n;
			idle = 0;
			continue;
		}
		if (!c->ssl && errno != EAGAIN)
			break;
		ERR_clear_error();
		loop_turn(c->loop, 1);
		idle++;
	}
	return done;
}

static inline void cli_send(struct cli *c, const char *text)
{
	cli_send_some(c, text, strlen(text), 2000);
}

static inline bool cli_wait_eof(struct cli *c)
{
	uint64_t start = clock_boot_ms();

	while (!c->eof && !cli_late(start))
		cli_turn(c);
	return c->eof;
}

static inline const char *cli_header(const struct cli_reply *r, const char *name)
{
	static char value[512];
	size_t len = strlen(name);

	for (const char *p = strstr(r->head, "\r\n"); p; p = strstr(p + 2, "\r\n")) {
		if (strncasecmp(p + 2, name, len) != 0 || p[2 + len] != ':')
			continue;
		p += 3 + len;
		p += strspn(p, " ");
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(p, "\r"), p);
		return value;
	}
	return NULL;
}

/* Takes one reply off the connection. bodiless: it answers HEAD. */
static inline bool cli_reply(struct cli *c, struct cli_reply *r, bool bodiless)
{
	uint64_t start = clock_boot_ms();
	const char *end;
	size_t head, body = 0;

	*r = (struct cli_reply){.status = 0};
	while (!(end = memmem(strbuf_str(&c->in), c->in.len, "\r\n\r\n", 4))) {
		if (c->eof || cli_late(start))
			return false;
		cli_turn(c);
	}
	head = (size_t)(end - c->in.data) + 4;
	snprintf(r->head, sizeof(r->head), "%.*s", (int)head, c->in.data);
	sscanf(r->head, "HTTP/1.1 %d ", &r->status);
	if (!bodiless && cli_header(r, "Content-Length"))
		body = strtoul(cli_header(r, "Content-Length"), NULL, 10);
	while (c->in.len < head + body) {
		if (c->eof || cli_late(start))
			return false;
		cli_turn(c);
	}
	r->body = xmemdup(c->in.data + head, body);
	r->body_len = body;
	strbuf_drop(&c->in, head + body);
	return true;
}

static inline void cli_reply_fini(struct cli_reply *r)
{
	free(r->body);
	r->body = NULL;
}

/* One reply's status, its body dropped; 0: none came. */
static inline int cli_status(struct cli *c)
{
	struct cli_reply r;
	int status = cli_reply(c, &r, false) ? r.status : 0;

	cli_reply_fini(&r);
	return status;
}

#endif
