/* SPDX-License-Identifier: MIT */
/*
 * One connection: opened by httpc, then a TLS client over our own BIO. Each wakeup is one recv() whose
 * data is decrypted at once. Everything that a turn of the loop sends is one SSL_write() and one
 * send(), made by the site's deferred work. Nothing more is encrypted while the socket is full:
 * requests then stay in their queue and bodies with their owners.
 *
 *   CONNECTING -> HANDSHAKE (TLS, then SETTINGS) -> OPEN -> DRAINING (GOAWAY, or out of stream ids)
 *
 * From every state h2c_conn_lose() ends the connection with an error.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "h2c_internal.h"

/* ---- states ---- */

static const char *const state_names[] = {"connecting", "handshake", "open", "draining"};

/* Advance the state; it never goes back. Opening is logged as info, other changes only for
 * debugging. */
void h2c_conn_set_state(struct h2c_conn *n, enum h2c_conn_state state, const char *reason)
{
	assert(state > n->state);
	log_at(n->state < H2C_OPEN && state == H2C_OPEN ? LOG_INFO : LOG_DEBUG, NULL,
		state == H2C_OPEN ? "HTTP/2 connection opened" : "HTTP/2 connection changed",
		"server=%s from=%s to=%s reason=%s", log_esc(n->site->origin),
		state_names[n->state], state_names[state], log_esc(reason));
	n->state = state;
	if (state == H2C_OPEN)
		timer_set(&n->timer, H2C_SILENCE_MS);
	h2c_site_wake(n->site);
}

/* Free a connection without calls. A close_notify is sent if it can be, but never waited for. */
void h2c_conn_free(struct h2c_conn *n)
{
	struct h2c_site *s = n->site;

	assert(n->n_calls == 0);
	op_scope_cancel(&n->dial);
	timer_fini(&n->timer);
	nghttp2_session_del(n->session);
	if (n->ssl) {
		if (n->state >= H2C_OPEN && !n->wire.len)
			(void)SSL_shutdown(n->ssl); /* sends close_notify, does not wait */
		SSL_free(n->ssl);
		ERR_clear_error();
	}
	loop_fd_free(n->reads);
	loop_fd_free(n->writes);
	if (n->fd >= 0)
		close(n->fd);
	strbuf_fini(&n->wire);
	TAILQ_REMOVE(&s->conns, n, link);
	s->n_conns--;
	h2c_site_wake(s);
	free(n);
}

/* `used` tells a connection that broke from one that never worked. */
void h2c_conn_lose(struct h2c_conn *n, const struct err *err)
{
	struct h2c_site *s = n->site;
	bool used = n->used;
	struct h2c_call *k;

	log_at(used ? LOG_INFO : LOG_DEBUG, NULL, "HTTP/2 connection lost",
		"server=%s state=%s reason=%s", log_esc(s->origin), state_names[n->state],
		log_esc(err->text));
	while ((k = TAILQ_FIRST(&n->calls)) != NULL) {
		h2c_call_leave(k);
		h2c_call_over(k, err->kind, err->text);
	}
	h2c_conn_free(n);
	if (!used)
		h2c_site_fail(s, err);
}

/* One timer serves four purposes, depending on the state: connect deadline, idle timeout, silence,
 * and the answer to a PING. It is set when a check is due and recomputes what is left, instead of
 * being set again on every byte. */
static void on_timer(void *arg)
{
	struct h2c_conn *n = arg;
	uint64_t now = clock_boot_ms(), idle = now - n->idle_ms, silent = now - n->heard_ms;
	struct err err = ERR_INIT;

	if (n->state < H2C_OPEN) {
		err_set(&err, ERR_TRANSIENT, "no answer in time");
		h2c_conn_lose(n, &err);
	} else if (n->n_calls == 0 && idle >= H2C_IDLE_MS) {
		h2c_conn_free(n);
	} else if (n->n_calls == 0) {
		timer_set(&n->timer,
			H2C_IDLE_MS - idle < H2C_SILENCE_MS ? H2C_IDLE_MS - idle : H2C_SILENCE_MS);
	} else if (n->pinged) {
		err_set(&err, ERR_TRANSIENT, "connection lost: no answer to a PING");
		h2c_conn_lose(n, &err);
	} else if (silent >= H2C_SILENCE_MS) {
		if (nghttp2_submit_ping(n->session, NGHTTP2_FLAG_NONE, NULL) != 0)
			DIE("out of memory: nghttp2_submit_ping");
		n->pinged = true;
		timer_set(&n->timer, H2C_PONG_MS);
		h2c_site_wake(n->site);
	} else {
		timer_set(&n->timer, H2C_SILENCE_MS - silent);
	}
}

/* Empty OpenSSL's error queue before a call whose result is judged by it. Peeking first is cheaper,
 * as it is almost always empty. */
static void clear_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

/* ---- writing ---- */

static void on_writable(int fd, bool readable, bool writable, void *arg);

/* Send buffered bytes. After a failed send() the rest is dropped: recv() will return the reason,
 * perhaps after answers. */
static void wire_flush(struct h2c_conn *n)
{
	ssize_t sent = send(n->fd, n->wire.data, n->wire.len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		n->unwritable = true;
	if (n->unwritable)
		sent = (ssize_t)n->wire.len;
	if (sent > 0)
		strbuf_drop(&n->wire, (size_t)sent);
}

/* Send bytes at once if nothing is buffered; buffer what the socket does not accept and watch for
 * writability. */
static void wire_send(struct h2c_conn *n, const void *data, size_t len)
{
	ssize_t sent = n->wire.len ? 0 : send(n->fd, data, len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		n->unwritable = true;
	if (n->unwritable || sent == (ssize_t)len)
		return;
	sent = sent < 0 ? 0 : sent;
	strbuf_add(&n->wire, (const char *)data + sent, len - (size_t)sent);
	if (!n->writes)
		n->writes = loop_fd_new(n->site->c->loop, n->fd, false, true, on_writable, n);
}

/* The socket accepts bytes again: when the buffer is empty, the site may encrypt more. */
static void on_writable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_conn *n = arg;

	wire_flush(n);
	if (n->wire.len)
		return;
	strbuf_fini(&n->wire);
	loop_fd_free(steal_ptr(&n->writes));
	h2c_site_wake(n->site);
}

/* Fill at most one TLS record with what nghttp2 has to send, which may be many frames. */
static size_t next_record(struct h2c_conn *n, uint8_t *out)
{
	size_t len = 0;

	for (;;) {
		size_t room = H2C_RECORD_LEN - len;
		size_t part = n->frame_len < room ? n->frame_len : room;
		ssize_t more;

		if (part) {
			memcpy(out + len, n->frame, part);
			n->frame += part;
			n->frame_len -= part;
			len += part;
		}
		if (len == H2C_RECORD_LEN)
			return len;
		more = nghttp2_session_mem_send(n->session, &n->frame);
		if (more < 0)
			DIE("nghttp2_session_mem_send: %s", nghttp2_strerror((int)more));
		if (more == 0)
			return len;
		n->frame_len = (size_t)more;
	}
}

/* One record per turn and connection, so that a large body does not delay other connections. */
static void write_record(struct h2c_conn *n)
{
	uint8_t *plain = n->site->c->plain;
	size_t len = next_record(n, plain);

	if (len && n->ssl) {
		clear_errors();
		if (SSL_write(n->ssl, plain, (int)len) != (int)len)
			n->unwritable = true;
	} else if (len) {
		wire_send(n, plain, len);
	}
	secret_wipe(plain, len);
	if (len == H2C_RECORD_LEN)
		h2c_site_wake(n->site); /* the rest in the next turn */
}

/* Send, then check whether the connection has ended: drained, or closed by nghttp2 because of a
 * protocol error. */
void h2c_conn_write(struct h2c_conn *n)
{
	struct err err = ERR_INIT;

	if (!n->session)
		return;
	if (!n->wire.len && !n->unwritable)
		write_record(n);
	if (n->state == H2C_DRAINING && n->n_calls == 0 && n->used) {
		h2c_conn_free(n);
	} else if (n->state == H2C_DRAINING && n->n_calls == 0) {
		err_set(&err, ERR_TRANSIENT, "the server closed the connection");
		h2c_conn_lose(n, &err);
	} else if (!nghttp2_session_want_read(n->session) &&
		   !nghttp2_session_want_write(n->session)) {
		err_set(&err, ERR_TRANSIENT, "the server violates HTTP/2");
		h2c_conn_lose(n, &err);
	}
}

/* ---- TLS ---- */

/* Give OpenSSL the bytes of the last recv(); "retry" means that more must arrive. */
static int bio_read(BIO *bio, char *out, int len)
{
	struct h2c_conn *n = BIO_get_data(bio);
	size_t part = n->in_len < (size_t)len ? n->in_len : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (part == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, n->in, part);
	n->in += part;
	n->in_len -= part;
	return (int)part;
}

/* Always accept, into a buffer if necessary: OpenSSL then never waits to write. */
static int bio_write(BIO *bio, const char *data, int len)
{
	struct h2c_conn *n = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (n->wire.len > H2C_WIRE_MAX) /* the server provokes replies but does not read them */
		return -1;
	wire_send(n, data, (size_t)len);
	return len;
}

/* OpenSSL requires BIO_flush() to succeed. */
static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	return cmd == BIO_CTRL_FLUSH;
}

void h2c_io_setup(struct h2c *c)
{
	c->raw = xmalloc(H2C_RAW_LEN);
	c->plain = xmalloc(H2C_RECORD_LEN);
	c->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "h2c");
	if (!c->bio || BIO_meth_set_read(c->bio, bio_read) != 1 ||
		BIO_meth_set_write(c->bio, bio_write) != 1 ||
		BIO_meth_set_ctrl(c->bio, bio_ctrl) != 1)
		DIE("out of memory: BIO_meth_new");
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
static void tls_begin(struct h2c_conn *n)
{
	static const unsigned char alpn[] = "\x02h2\x08http/1.1";
	const struct httpc_tls *t = n->site->tls;
	const char *name = t->server_name ? t->server_name : n->site->host;
	SSL_CTX *ctx = httpc_tls_ctx(t);
	BIO *bio = BIO_new(n->site->c->bio);
	bool ok;

	n->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	if (!n->ssl || !bio)
		DIE("out of memory: SSL_new");
	BIO_set_data(bio, n);
	BIO_set_init(bio, 1);
	SSL_set_bio(n->ssl, bio, bio);
	SSL_set_read_ahead(n->ssl, 1);
	SSL_set_connect_state(n->ssl);
	if (is_address(name))
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(n->ssl), name) == 1;
	else
		ok = SSL_set1_host(n->ssl, name) == 1 &&
		     SSL_set_tlsext_host_name(n->ssl, name) == 1;
	SSL_set_hostflags(n->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (!ok || SSL_set_alpn_protos(n->ssl, alpn, sizeof(alpn) - 1) != 0)
		DIE("cannot apply the TLS settings for %s", name);
}

/* Translate the failure of SSL_do_handshake() or SSL_read() to an error. 0: it only needs more
 * bytes. */
static int tls_check(struct h2c_conn *n, int rc, struct err *err)
{
	int why = SSL_get_error(n->ssl, rc);
	unsigned long e = ERR_peek_error();
	long verdict = SSL_get_verify_result(n->ssl);
	const char *reason = e ? ERR_reason_error_string(e) : NULL;
	/* With TLS 1.3 a server refuses our certificate by an alert after the handshake. */
	bool alert = ERR_GET_LIB(e) == ERR_LIB_SSL && ERR_GET_REASON(e) >= SSL_AD_REASON_OFFSET;
	enum err_kind kind = alert || !SSL_is_init_finished(n->ssl) ? ERR_DENIED : ERR_TRANSIENT;

	clear_errors();
	if (why == SSL_ERROR_WANT_READ)
		return 0;
	if (why == SSL_ERROR_ZERO_RETURN)
		return err_set(err, ERR_TRANSIENT, "the server closed the connection");
	if (verdict != X509_V_OK && SSL_get_verify_mode(n->ssl) != SSL_VERIFY_NONE)
		return err_set(err, ERR_DENIED, "the server's certificate is not accepted: %s",
			X509_verify_cert_error_string(verdict));
	return err_set(err, kind, "TLS: %s", reason ? reason : "protocol error");
}

/* Continue the handshake; when it is complete, check that the server selected h2. */
static int handshake(struct h2c_conn *n, struct err *err)
{
	const unsigned char *proto = NULL;
	struct h2c_site *s = n->site;
	unsigned len = 0;
	int rc;

	clear_errors();
	rc = SSL_do_handshake(n->ssl);
	if (rc != 1)
		return tls_check(n, rc, err);
	SSL_get0_alpn_selected(n->ssl, &proto, &len);
	if (len == 2 && memcmp(proto, "h2", 2) == 0) {
		h2c_session_start(n);
		return 0;
	}
	log_info(NULL, "the server does not support HTTP/2, using HTTP/1.1", "server=%s",
		log_esc(s->origin));
	s->no_h2 = true;
	timer_set(&s->probe, H2C_PROBE_MS);
	return err_set(err, ERR_TRANSIENT, "the server does not support HTTP/2");
}

/* ---- reading ---- */

/* Decrypt what arrived and pass it on, record by record; the plaintext is wiped. */
static int feed_tls(struct h2c_conn *n, struct err *err)
{
	uint8_t *plain = n->site->c->plain;

	if (!n->session && handshake(n, err) < 0)
		return -1;
	/* Without buffered bytes another SSL_read() would only return WANT_READ. */
	while (n->session && (n->in_len || SSL_has_pending(n->ssl))) {
		int len, rc;

		clear_errors();
		len = SSL_read(n->ssl, plain, H2C_RECORD_LEN);
		if (len <= 0)
			return tls_check(n, len, err);
		rc = h2c_session_feed(n, plain, (size_t)len, err);
		secret_wipe(plain, (size_t)len);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* One recv() per wakeup, then deliver. h2c_deliver() comes last, because it may free everything. */
static void on_readable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_conn *n = arg;
	struct h2c *c = n->site->c;
	ssize_t len = recv(fd, c->raw, H2C_RAW_LEN, 0);
	struct err err = ERR_INIT;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	n->heard_ms = clock_boot_ms();
	n->pinged = false;
	n->in = c->raw;
	n->in_len = len > 0 ? (size_t)len : 0;
	if (len < 0)
		err_set(&err, ERR_TRANSIENT, "%s", strerror(errno));
	else if (len == 0)
		err_set(&err, ERR_TRANSIENT, "the server closed the connection");
	else if (n->ssl)
		(void)feed_tls(n, &err);
	else
		(void)h2c_session_feed(n, n->in, n->in_len, &err);
	if (err_is_set(&err))
		h2c_conn_lose(n, &err);
	else
		h2c_site_wake(n->site); /* acknowledgements, windows */
	h2c_deliver(c);
}

/* ---- connecting ---- */

/* The TCP connection is established; start TLS. */
void h2c_conn_begin(struct h2c_conn *n, int take_fd)
{
	struct err err = ERR_INIT;

	n->fd = take_fd;
	n->reads = loop_fd_new(n->site->c->loop, n->fd, true, false, on_readable, n);
	n->heard_ms = n->idle_ms = clock_boot_ms();
	h2c_conn_set_state(n, H2C_HANDSHAKE, NULL);
	if (!n->site->tls) {
		h2c_session_start(n);
		return;
	}
	tls_begin(n);
	if (handshake(n, &err) < 0)
		h2c_conn_lose(n, &err);
}

static void on_dialled(void *arg, const struct err *err, int take_fd)
{
	struct h2c_conn *n = arg;

	if (err_is_set(err))
		h2c_conn_lose(n, err);
	else
		h2c_conn_begin(n, take_fd);
}

struct h2c_conn *h2c_conn_new(struct h2c_site *s)
{
	struct h2c_conn *n = xcalloc(1, sizeof(*n));

	n->site = s;
	n->fd = -1;
	TAILQ_INIT(&n->calls);
	TAILQ_INSERT_TAIL(&s->conns, n, link);
	s->n_conns++;
	timer_init(&n->timer, s->c->loop, on_timer, n);
	timer_set(&n->timer, H2C_DIAL_MS);
	return n;
}

/* httpc resolves the name and tries all addresses. */
void h2c_conn_dial(struct h2c_site *s)
{
	struct h2c_conn *n = h2c_conn_new(s);

	(void)httpc_dial(
		s->c->http, &n->dial, s->origin, s->connect_to, H2C_DIAL_MS, on_dialled, n);
}
