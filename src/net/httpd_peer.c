/* SPDX-License-Identifier: MIT */
/*
 * One connection: its state, its output, its deadlines and its end. The last reply is followed by a
 * lingering close, so that a reset does not destroy it (RFC 9112 section 9.6). Input is handled by
 * httpd_guard.c. libevhtp's own callbacks run only from here, at points where they are harmless.
 *
 *   HANDSHAKE (TLS) -> HEAD -> BODY -> BUSY -> FLUSH -> HEAD ...    a persistent connection
 *                                      BUSY -> STREAM -> FLUSH      a watch
 *   HEAD or BODY -> LINGER                                          refused by the guard
 *   FLUSH -> LINGER                                                 after the last reply
 *
 * The timer means, by state: HANDSHAKE, HEAD, BODY, BUSY: the request's deadline, or idleness between
 * requests; STREAM: progress of a slow reader; FLUSH: the reply must be read; LINGER: the wait ends.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <evhtp/evhtp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "net_internal.h"

#define WRITE_NOW_MAX 16384

/* The permitted transitions. */
static bool may_move(enum httpd_peer_state from, enum httpd_peer_state to)
{
	switch (from) {
	case HTTPD_PEER_HANDSHAKE:
		return to == HTTPD_PEER_HEAD;
	case HTTPD_PEER_HEAD:
		return to == HTTPD_PEER_BODY || to == HTTPD_PEER_LINGER;
	case HTTPD_PEER_BODY:
		return to == HTTPD_PEER_BUSY || to == HTTPD_PEER_LINGER;
	case HTTPD_PEER_BUSY:
		return to == HTTPD_PEER_STREAM || to == HTTPD_PEER_FLUSH;
	case HTTPD_PEER_STREAM:
		return to == HTTPD_PEER_FLUSH;
	case HTTPD_PEER_FLUSH:
		return to == HTTPD_PEER_HEAD || to == HTTPD_PEER_LINGER;
	case HTTPD_PEER_LINGER:
		return false;
	}
	return false;
}

void httpd_peer_set_state(struct httpd_peer *p, enum httpd_peer_state to)
{
	if (!may_move(p->state, to))
		DIE("connection of %s: invalid transition from state %d to %d", p->httpd->conf.name,
			(int)p->state, (int)to);
	p->state = to;
}

/* True between requests: such a connection can be closed without loss. */
bool httpd_peer_is_idle(const struct httpd_peer *p)
{
	return p->state == HTTPD_PEER_HEAD && !p->started;
}

/* A connection whose request is being served is never closed for another of its source. */
bool httpd_peer_yields(const struct httpd_peer *p)
{
	uint32_t yield_ms = p->httpd->conf.yield_ms;

	return yield_ms == 0 || (p->state != HTTPD_PEER_BUSY && p->state != HTTPD_PEER_STREAM &&
					clock_boot_ms() - p->place.active_ms >= yield_ms);
}

bool httpd_peer_is_tls(const struct httpd_peer *p)
{
	return p->conn->ssl;
}

struct ssl_st *httpd_peer_ssl(const struct httpd_peer *p)
{
	return p->conn->ssl;
}

const struct sockaddr *httpd_peer_addr(const struct httpd_peer *p)
{
	return p->conn->saddr;
}

/* SO_PEERCRED is set by the kernel at connect time and cannot be forged. */
bool httpd_peer_user(const struct httpd_peer *p, uint32_t *uid)
{
	struct ucred who = {.uid = 0};
	socklen_t len = sizeof(who);

	if (p->conn->saddr->sa_family != AF_UNIX ||
		getsockopt(p->conn->sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return false;
	*uid = who.uid;
	return true;
}

static size_t output_len(const struct httpd_peer *p)
{
	return evbuffer_get_length(bufferevent_get_output(p->bev));
}

static bool output_is_empty(const struct httpd_peer *p)
{
	return output_len(p) == 0;
}

static void clear_errors(void)
{
	if (ERR_peek_error() != 0) /* clearing visits 16 slots, even empty ones */
		ERR_clear_error();
}

/* Close at once. SSL_shutdown on a broken connection leaves an error in OpenSSL's queue, which the
 * next connection would take for its own, so the queue is cleared. */
void httpd_peer_close(struct httpd_peer *p)
{
	evhtp_connection_free(p->conn); /* its fini hook frees p */
	clear_errors();
}

/* ---- writing */

/* Write a small piece directly to the socket and return the number of accepted bytes. Errors are
 * left to the bufferevent, which will meet them again. */
static size_t write_now(struct httpd_peer *p, const void *data, size_t len)
{
	ssize_t n;

	if (len == 0 || len > WRITE_NOW_MAX || !output_is_empty(p))
		return 0;
	if (p->conn->ssl) {
		n = SSL_write(p->conn->ssl, data, (int)len);
		clear_errors();
	} else {
		n = send(p->conn->sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	return n > 0 ? (size_t)n : 0;
}

static void on_output(void *arg);

/*
 * Write data after what was written before. libevent would write only in its next turn, after three
 * system calls to watch the socket, which is a tenth of the cost of a connection. So write directly if
 * possible; on_output() follows in a later turn in both cases.
 */
void httpd_peer_write(struct httpd_peer *p, const char *data, size_t len)
{
	size_t done = write_now(p, data, len);

	if (done == len) {
		defer_call(&p->sent, p->httpd->loop, on_output, p);
		return;
	}
	bufferevent_write(p->bev, data + done, len - done);
	bufferevent_enable(p->bev, EV_WRITE);
}

/* ---- output */

/* End libevhtp's request without its own reply, and write ours. */
void httpd_peer_send(struct httpd_peer *p, const struct strbuf *out, bool last)
{
	httpd_peer_set_state(p, HTTPD_PEER_FLUSH);
	p->closing = last;
	timer_set(&p->timer, p->httpd->conf.idle_ms); /* the client must read the reply in time */
	evhtp_send_reply_end(p->ereq);
	httpd_peer_write(p, out->data, out->len);
}

/* Begin a stream. The request's deadline no longer applies; only a reader that stops reading is
 * disconnected. */
void httpd_peer_stream(struct httpd_peer *p)
{
	httpd_peer_set_state(p, HTTPD_PEER_STREAM);
	timer_cancel(&p->timer);
	p->given = p->taken = 0;
}

/* Record how much was sent, and check again after idle_ms. */
static void expect_progress(struct httpd_peer *p)
{
	p->taken = p->given - output_len(p);
	timer_set(&p->timer, p->httpd->conf.idle_ms);
}

size_t httpd_peer_add(struct httpd_peer *p, const void *data, size_t len)
{
	assert(p->state == HTTPD_PEER_STREAM);
	p->given += len;
	httpd_peer_write(p, data, len);
	if (output_is_empty(p))
		return 0;
	p->req->blocked = true;
	if (!timer_is_set(&p->timer))
		expect_progress(p);
	return output_len(p);
}

/* All buffered bytes of a stream were sent: the caller may add more. */
static void stream_drained(struct httpd_peer *p)
{
	struct httpd_req *r = p->req;

	timer_cancel(&p->timer);
	/* Free libevhtp's parser, which has 8 KiB and is not needed while a stream lasts. Not
	 * earlier, because a stream may begin inside the parser's callback. */
	evhtp_safe_free(p->conn->parser, free);
	if (!r->blocked)
		return;
	r->blocked = false;
	r->drained_fn(r->drained_arg);
}

/* Tell the peer that no more data follows, while its input can still be read. */
static void half_close(struct httpd_peer *p)
{
	if (p->half_closed)
		return;
	p->half_closed = true;
	if (p->conn->ssl) {
		SSL_shutdown(p->conn->ssl);
		clear_errors();
	}
	shutdown(p->conn->sock, SHUT_WR);
}

/* True if the peer may have sent more: closing with unread bytes makes the kernel reset the
 * connection, and the reply may be lost. */
static bool may_have_input(const struct httpd_peer *p)
{
	int n = 0;

	return p->in.len > 0 || p->stopped || p->n_requests >= p->httpd->conf.requests_per_conn ||
	       evbuffer_get_length(bufferevent_get_input(p->bev)) > 0 ||
	       ioctl(p->conn->sock, FIONREAD, &n) < 0 || n > 0;
}

/* Close after the last reply, with lingering if the peer may have sent more. */
static void end_connection(struct httpd_peer *p)
{
	if (p->eof || !may_have_input(p)) {
		httpd_peer_close(p);
		return;
	}
	httpd_guard_drop(p, p->in.len);
	httpd_peer_set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, HTTPD_LINGER_MS);
	httpd_guard_go_on(p);
	half_close(p);
}

/* The reply is written: let libevhtp free its request and prepare for another; it must not close
 * the connection itself. */
static void flushed(struct httpd_peer *p)
{
	evhtp_request_set_keepalive(p->ereq, 1);
	p->ereq = NULL;
	httpd_leave_route(p);
	if (!p->conn->parser)
		p->conn->parser = htparser_new(); /* freed by a stream; libevhtp initialises it */
	p->evhtp_write(p->bev, p->evhtp_arg);
	if (p->closing || p->eof || (p->httpd->draining && p->in.len == 0)) {
		end_connection(p);
		return;
	}
	httpd_peer_set_state(p, HTTPD_PEER_HEAD);
	p->started = p->blank_dropped = p->continued = false;
	p->scanned = 0;
	share_active(p->httpd->share, &p->place);
	timer_set(&p->timer, p->httpd->conf.idle_ms);
	httpd_guard_pump(p);
}

/* All output was written. libevhtp's own write callback would free a connection without a request,
 * so it is called only in flushed(). */
static void on_output(void *arg)
{
	struct httpd_peer *p = arg;

	if (!output_is_empty(p))
		return;
	if (p->state == HTTPD_PEER_STREAM)
		stream_drained(p);
	else if (p->state == HTTPD_PEER_FLUSH)
		flushed(p);
	else if (p->state == HTTPD_PEER_LINGER && p->eof)
		httpd_peer_close(p);
	else if (p->state == HTTPD_PEER_LINGER)
		half_close(p);
}

static void on_write(struct bufferevent *bev, void *arg)
{
	on_output(arg);
}

/* ---- ends */

/* Count and log a failed handshake. A connection that was just closed is not logged: port scans and
 * TCP probes do that. */
static void log_handshake(struct httpd_peer *p)
{
	unsigned long e, last = 0;
	unsigned left_out;
	char peer[ADDR_TEXT_LEN];
	const char *reason;

	while ((e = bufferevent_get_openssl_error(p->bev)) != 0)
		last = ERR_GET_LIB(e) ? e : last;
	httpd_count_refused(p->httpd, "handshake");
	if (last == 0 || !httpd_may_log(p->httpd, HTTPD_NOISE_HANDSHAKE, &left_out))
		return;
	addr_format(p->conn->saddr, peer);
	reason = ERR_reason_error_string(last);
	log_info(NULL, "TLS handshake failed", "server=%s peer=%s reason=%s count=%u",
		p->httpd->conf.name, peer, log_esc(reason ? reason : "?"), left_out + 1);
}

/*
 * Read at once after the handshake: the first request usually arrives with its last step, and this
 * saves a turn of the loop. Read whole records: libevent does not notice what remains inside the SSL
 * object.
 */
static void read_now(struct httpd_peer *p)
{
	SSL *ssl = p->conn->ssl;
	char buf[4096];
	int n, why;

	do {
		n = SSL_read(ssl, buf, sizeof(buf));
		if (n > 0)
			strbuf_add(&p->in, buf, (size_t)n);
	} while (n > 0 && SSL_pending(ssl) > 0);
	why = SSL_get_error(ssl, n);
	clear_errors();
	if (p->in.len > 0)
		httpd_guard_pump(p);
	else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
		httpd_peer_close(p);
}

/* The peer closed its side. A reply that already exists is still written; otherwise the connection
 * is closed. True: keep it. */
static bool keep_writing(struct httpd_peer *p)
{
	if (p->state != HTTPD_PEER_FLUSH && (p->state != HTTPD_PEER_LINGER || p->half_closed))
		return false;
	p->eof = true;
	if (!output_is_empty(p))
		bufferevent_enable(p->bev, EV_WRITE); /* the TLS bufferevent stopped writing too */
	return true;
}

/* Handshake done, end of input, or an error. Other cases are left to libevhtp, which frees the
 * connection. */
static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct httpd_peer *p = arg;

	if (what & BEV_EVENT_CONNECTED) {
		httpd_peer_set_state(p, HTTPD_PEER_HEAD);
		share_active(p->httpd->share, &p->place);
		read_now(p);
		return;
	}
	if ((what & BEV_EVENT_EOF) && keep_writing(p))
		return;
	if (p->state == HTTPD_PEER_HANDSHAKE)
		log_handshake(p);
	errno = 0; /* libevhtp keeps a closed connection when it finds EAGAIN here */
	p->evhtp_event(bev, what, p->evhtp_arg);
	clear_errors();
}

/* Disconnect a client that does not read its stream: its buffered data would be kept
 * indefinitely. */
static void close_stopped(struct httpd_peer *p)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	if (httpd_may_log(p->httpd, HTTPD_NOISE_STOPPED, &left_out)) {
		addr_format(p->conn->saddr, peer);
		log_info(NULL, "closed a client that does not read its stream",
			"server=%s peer=%s count=%u", p->httpd->conf.name, peer, left_out + 1);
	}
	httpd_peer_close(p);
}

/* The deadline of the current state has passed. */
static void on_timeout(void *arg)
{
	struct httpd_peer *p = arg;

	switch (p->state) {
	case HTTPD_PEER_HANDSHAKE:
		httpd_count_refused(p->httpd, "handshake_timeout");
		httpd_peer_close(p);
		return;
	case HTTPD_PEER_HEAD:
	case HTTPD_PEER_BODY:
		if (p->started)
			httpd_guard_refuse(p, 408);
		else
			httpd_peer_close(p);
		return;
	case HTTPD_PEER_BUSY:
		p->req->keep_alive = false;
		httpd_reply_error(p->req, 408, 0, "the request was not answered in time");
		return;
	case HTTPD_PEER_STREAM:
		if (p->given - output_len(p) != p->taken)
			expect_progress(p);
		else
			close_stopped(p);
		return;
	case HTTPD_PEER_FLUSH:
	case HTTPD_PEER_LINGER:
		httpd_peer_close(p);
		return;
	}
}

/* libevhtp's hook, the first action of evhtp_connection_free() for all its callers: release
 * everything that belongs to the connection. */
static evhtp_res on_connection_fini(evhtp_connection_t *conn, void *arg)
{
	struct httpd_peer *p = arg;

	if (p->gone)
		*p->gone = true;
	if (p->req)
		httpd_req_free(p->req);
	defer_cancel(&p->sent);
	timer_fini(&p->timer);
	httpd_guard_drop(p, p->in.len);
	httpd_body_end(p);
	LIST_REMOVE(p, link);
	p->httpd->n_peers--;
	share_leave(p->httpd->share, &p->place);
	httpd_leave_route(p);
	httpd_count_connection(p->httpd, -1);
	free(p);
	return EVHTP_RES_OK;
}

/* Take over a new connection: its callbacks become ours, and libevhtp's are kept for later. */
void httpd_peer_new(struct httpd *h, evhtp_connection_t *conn)
{
	struct httpd_peer *p = xcalloc(1, sizeof(*p));
	uint8_t source[ADDR_SOURCE_LEN];

	p->httpd = h;
	p->conn = conn;
	p->bev = conn->bev;
	p->state = conn->ssl ? HTTPD_PEER_HANDSHAKE : HTTPD_PEER_HEAD;
	p->prepaid = true;
	LIST_INSERT_HEAD(&h->peers, p, link);
	h->n_peers++;
	addr_source(conn->saddr, source);
	share_join(h->share, &p->place, source);
	httpd_count_connection(h, 1);
	timer_init(&p->timer, h->loop, on_timeout, p);
	timer_set(&p->timer, h->conf.request_ms);
	if (conn->ssl) /* no wake-ups for a writable socket in the handshake */
		bufferevent_disable(p->bev, EV_WRITE);
	bufferevent_getcb(p->bev, &p->evhtp_read, &p->evhtp_write, &p->evhtp_event, &p->evhtp_arg);
	bufferevent_setcb(p->bev, httpd_guard_read, on_write, on_event, p);
	evhtp_connection_set_hook(
		conn, evhtp_hook_on_connection_fini, (evhtp_hook)on_connection_fini, p);
}
