/* SPDX-License-Identifier: MIT */
/*
 * Each wakeup is one recv() whose data is decrypted at once, and each write is one SSL_write() and one
 * send(). OpenSSL reads and writes memory through our own BIO, so it never waits. What the socket does
 * not accept is buffered, and nothing more is encrypted until it is sent.
 */
#include "config.h"

#include "h2c_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/mem.h"

#include "httpc_internal.h"

/* Empty OpenSSL's error queue before a call whose result is judged by it. Peeking first is cheaper,
 * as it is almost always empty. */
static void clear_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

/* ---- writing ---- */

static void on_writable(int fd, bool readable, bool writable, void *arg);

/* Send bytes at once if nothing is buffered; buffer what the socket does not accept and watch for
 * writability. */
static void wire_send(struct h2c_wire *w, const void *data, size_t len)
{
	ssize_t sent = w->out.len ? 0 : send(w->fd, data, len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		w->unwritable = true;
	if (w->unwritable || sent == (ssize_t)len)
		return;
	sent = sent < 0 ? 0 : sent;
	strbuf_add(&w->out, (const char *)data + sent, len - (size_t)sent);
	if (!w->writes)
		w->writes = loop_fd_new(w->shared->loop, w->fd, false, true, on_writable, w);
}

/* Send buffered bytes. After a failed send() the rest is dropped: recv() will return the reason,
 * perhaps after answers. */
static void on_writable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_wire *w = arg;
	ssize_t sent = send(w->fd, w->out.data, w->out.len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		w->unwritable = true;
	if (w->unwritable)
		sent = (ssize_t)w->out.len;
	if (sent > 0)
		strbuf_drop(&w->out, (size_t)sent);
	if (w->out.len)
		return;
	strbuf_fini(&w->out);
	loop_fd_free(steal_ptr(&w->writes));
	w->calls->writable(w->arg);
}

bool h2c_wire_accepts(const struct h2c_wire *w)
{
	return !w->out.len && !w->unwritable;
}

void h2c_wire_send(struct h2c_wire *w, const void *plain, size_t len)
{
	if (!w->ssl) {
		wire_send(w, plain, len);
		return;
	}
	clear_errors();
	if (SSL_write(w->ssl, plain, (int)len) != (int)len)
		w->unwritable = true;
}

/* ---- TLS ---- */

/* Give OpenSSL the bytes of the last recv(); "retry" means that more must arrive. */
static int bio_read(BIO *bio, char *out, int len)
{
	struct h2c_wire *w = BIO_get_data(bio);
	size_t part = w->in_len < (size_t)len ? w->in_len : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (part == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, w->in, part);
	w->in += part;
	w->in_len -= part;
	return (int)part;
}

/* Always accept, into a buffer if necessary: OpenSSL then never waits to write. */
static int bio_write(BIO *bio, const char *data, int len)
{
	struct h2c_wire *w = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (w->out.len > H2C_WIRE_MAX) /* the server provokes replies but does not read them */
		return -1;
	wire_send(w, data, (size_t)len);
	return len;
}

/* OpenSSL requires BIO_flush() to succeed. */
static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	return cmd == BIO_CTRL_FLUSH;
}

void h2c_wires_init(struct h2c_wires *ws, struct loop *l)
{
	ws->loop = l;
	ws->raw = xmalloc(H2C_RAW_LEN);
	ws->plain = xmalloc(H2C_RECORD_LEN);
	ws->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "h2c");
	if (!ws->bio || BIO_meth_set_read(ws->bio, bio_read) != 1 ||
		BIO_meth_set_write(ws->bio, bio_write) != 1 ||
		BIO_meth_set_ctrl(ws->bio, bio_ctrl) != 1)
		DIE("out of memory: BIO_meth_new");
}

void h2c_wires_fini(struct h2c_wires *ws)
{
	BIO_meth_free(ws->bio);
	free(ws->raw);
	free(ws->plain);
}

/* An IP address is verified against the certificate's IP addresses and is never sent as SNI (RFC
 * 6066 section 3). */
static bool is_address(const char *host)
{
	uint8_t addr[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, addr) == 1 || inet_pton(AF_INET6, host, addr) == 1;
}

/* Prepare the TLS client: name to verify, SNI and ALPN. http/1.1 is offered too, so that a server
 * without h2 completes the handshake and is recognised. */
static void tls_begin(struct h2c_wire *w, const struct httpc_tls *t, const char *host)
{
	static const unsigned char alpn[] = "\x02h2\x08http/1.1";
	const char *name = t->server_name ? t->server_name : host;
	SSL_CTX *ctx = httpc_tls_ctx(t);
	BIO *bio = BIO_new(w->shared->bio);
	bool ok;

	w->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	if (!w->ssl || !bio)
		DIE("out of memory: SSL_new");
	BIO_set_data(bio, w);
	BIO_set_init(bio, 1);
	SSL_set_bio(w->ssl, bio, bio);
	SSL_set_read_ahead(w->ssl, 1);
	SSL_set_connect_state(w->ssl);
	if (is_address(name))
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(w->ssl), name) == 1;
	else
		ok = SSL_set1_host(w->ssl, name) == 1 &&
		     SSL_set_tlsext_host_name(w->ssl, name) == 1;
	SSL_set_hostflags(w->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (!ok || SSL_set_alpn_protos(w->ssl, alpn, sizeof(alpn) - 1) != 0)
		DIE("cannot apply the TLS settings for %s", name);
}

/* Translate the failure of SSL_do_handshake() or SSL_read() to an error. 0: it only needs more
 * bytes. */
static int tls_check(struct h2c_wire *w, int rc, struct err *err)
{
	int why = SSL_get_error(w->ssl, rc);
	unsigned long e = ERR_peek_error();
	long verdict = SSL_get_verify_result(w->ssl);
	const char *reason = e ? ERR_reason_error_string(e) : NULL;
	/* With TLS 1.3 a server refuses our certificate by an alert after the handshake. */
	bool alert = ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) >= SSL_AD_REASON_OFFSET;
	enum err_kind kind = alert || !SSL_is_init_finished(w->ssl) ? ERR_DENIED : ERR_TRANSIENT;

	clear_errors();
	if (why == SSL_ERROR_WANT_READ)
		return 0;
	if (why == SSL_ERROR_ZERO_RETURN)
		return err_set(err, ERR_TRANSIENT, "the server closed the connection");
	if (verdict != X509_V_OK && SSL_get_verify_mode(w->ssl) != SSL_VERIFY_NONE)
		return err_set(err, ERR_DENIED, "the server's certificate is not accepted: %s",
			X509_verify_cert_error_string(verdict));
	return err_set(err, kind, "TLS: %s", reason ? reason : "protocol error");
}

/* Continue the handshake; when it is complete, look which protocol the server selected. */
static int handshake(struct h2c_wire *w, struct err *err)
{
	const unsigned char *proto = NULL;
	unsigned len = 0;
	int rc;

	clear_errors();
	rc = SSL_do_handshake(w->ssl);
	if (rc != 1)
		return tls_check(w, rc, err);
	SSL_get0_alpn_selected(w->ssl, &proto, &len);
	w->open = true;
	return w->calls->opened(w->arg, len == 2 && memcmp(proto, "h2", 2) == 0, err);
}

/* ---- reading ---- */

/* Decrypt what arrived and pass it on, record by record; the plaintext is wiped. */
static int feed_tls(struct h2c_wire *w, struct err *err)
{
	uint8_t *plain = w->shared->plain;

	if (!w->open && handshake(w, err) < 0)
		return -1;
	/* Without buffered bytes another SSL_read() would only return WANT_READ. */
	while (w->open && (w->in_len || SSL_has_pending(w->ssl))) {
		int len, rc;

		clear_errors();
		len = SSL_read(w->ssl, plain, H2C_RECORD_LEN);
		if (len <= 0)
			return tls_check(w, len, err);
		rc = w->calls->received(w->arg, plain, (size_t)len, err);
		secret_wipe(plain, (size_t)len);
		if (rc < 0)
			return -1;
	}
	return 0;
}

int h2c_wire_receive(struct h2c_wire *w, struct err *err)
{
	ssize_t len = recv(w->fd, w->shared->raw, H2C_RAW_LEN, 0);
	int rc;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	w->in = w->shared->raw;
	w->in_len = len > 0 ? (size_t)len : 0;
	if (len < 0)
		return err_set(err, ERR_TRANSIENT, "%s", strerror(errno));
	if (len == 0)
		return err_set(err, ERR_TRANSIENT, "the server closed the connection");
	rc = w->ssl ? feed_tls(w, err) : w->calls->received(w->arg, w->in, w->in_len, err);
	return rc < 0 ? -1 : 1;
}

/* ---- the connection ---- */

void h2c_wire_init(
	struct h2c_wire *w, struct h2c_wires *ws, const struct h2c_wire_calls *calls, void *arg)
{
	*w = (struct h2c_wire){.shared = ws, .calls = calls, .arg = arg, .fd = -1};
}

static void on_readable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_wire *w = arg;

	w->calls->readable(w->arg); /* may free w */
}

int h2c_wire_begin(struct h2c_wire *w, int take_fd, const struct httpc_tls *tls, const char *host,
	struct err *err)
{
	w->fd = take_fd;
	w->reads = loop_fd_new(w->shared->loop, w->fd, true, false, on_readable, w);
	if (tls) {
		tls_begin(w, tls, host);
		return handshake(w, err);
	}
	w->open = true;
	return w->calls->opened(w->arg, true, err);
}

void h2c_wire_close(struct h2c_wire *w, bool notify)
{
	if (w->ssl) {
		if (notify && !w->out.len)
			(void)SSL_shutdown(w->ssl); /* sends close_notify, does not wait */
		SSL_free(w->ssl);
		ERR_clear_error();
	}
	loop_fd_free(w->reads);
	loop_fd_free(w->writes);
	if (w->fd >= 0)
		close(w->fd);
	strbuf_fini(&w->out);
}
