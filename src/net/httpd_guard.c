/* SPDX-License-Identifier: MIT */
/*
 * The framing guard: one peer per connection, between the bufferevent and libevhtp. It collects
 * bytes, checks a head as a whole, waits for the body, and only then makes libevhtp start a request.
 * What libevhtp's parser reads is a constant line: it corrupts split, pipelined or odd requests, so
 * no byte of a peer ever reaches it. It refuses with a whole reply and a lingering close, bounds what
 * it buffers, and keeps every absolute deadline.
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
#include "tec/base/secret.h"

#include "net_internal.h"

#define WRITE_NOW_MAX 16384
#define LINGER_MS     2000

static const char canonical[] = "GET / HTTP/1.0\r\n\r\n";
static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n";

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

static void set_state(struct httpd_peer *p, enum httpd_peer_state to)
{
	if (!may_move(p->state, to))
		DIE("connection of %s: state %d to %d", p->httpd->conf.name, (int)p->state,
			(int)to);
	p->state = to;
}

bool httpd_peer_is_idle(const struct httpd_peer *p)
{
	return p->state == HTTPD_PEER_HEAD && !p->started;
}

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
	if (ERR_peek_error() != 0) /* clearing walks 16 slots, even empty ones */
		ERR_clear_error();
}

/* SSL_shutdown on a broken connection leaves an error that the next connection would take
 * for its own. */
void httpd_peer_close(struct httpd_peer *p)
{
	evhtp_connection_free(p->conn); /* its fini hook frees p */
	clear_errors();
}

/* ---- writing */

/* What the socket takes of a small piece at once. Errors are left to the bufferevent, which meets
 * them again. */
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
 * libevent writes in its next turn only, after three system calls to watch the socket, which is a
 * tenth of the cost of a connection. on_output() follows in a later turn either way.
 */
static void write_out(struct httpd_peer *p, const char *data, size_t len)
{
	size_t done = write_now(p, data, len);

	if (done == len) {
		defer_call(&p->sent, p->httpd->loop, on_output, p);
		return;
	}
	bufferevent_write(p->bev, data + done, len - done);
	bufferevent_enable(p->bev, EV_WRITE);
}

/* ---- input */

/* The first n bytes of the input have been dealt with. */
static void drop_input(struct httpd_peer *p, size_t n)
{
	if (p->httpd->conf.wipe && n > 0)
		secret_wipe(p->in.data, n);
	strbuf_drop(&p->in, n);
	if (p->in.len == 0)
		strbuf_fini(&p->in);
}

static void go_on_reading(struct httpd_peer *p)
{
	if (p->stopped) {
		p->stopped = false;
		bufferevent_enable(p->bev, EV_READ);
	}
}

/*
 * Copies: a chain of the bufferevent may be 32 KiB large and hold one byte, so moving chains would
 * let a slow sender cost 32 KiB a byte.
 */
static void absorb(struct httpd_peer *p)
{
	struct evbuffer *input = bufferevent_get_input(p->bev);
	char buf[4096];
	int n;

	while ((n = evbuffer_remove(input, buf, sizeof(buf))) > 0)
		strbuf_add(&p->in, buf, (size_t)n);
}

/* While a request is served, one more head's worth of input is kept; beyond that the peer has to
 * wait. */
static void bound_input(struct httpd_peer *p)
{
	if (p->in.len <= p->httpd->conf.limits.head) {
		go_on_reading(p);
	} else if (!p->stopped) {
		p->stopped = true;
		bufferevent_disable(p->bev, EV_READ);
	}
}

static void refuse(struct httpd_peer *p, int status)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	httpd_refusal(p->httpd, status, &out);
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	go_on_reading(p); /* what still comes is dropped: closing on unread bytes would reset the
			     reply away */
	write_out(p, out.data, out.len);
}

/* Starts the clock of a request at its first byte; the first request's runs since accept. */
static void note_start(struct httpd_peer *p)
{
	if (p->started)
		return;
	p->started = true;
	if (p->n_requests > 0)
		timer_set(&p->timer, p->httpd->conf.request_ms);
}

static size_t find_head_end(struct httpd_peer *p)
{
	size_t from = p->scanned > 3 ? p->scanned - 3 : 0;
	const char *end = memmem(p->in.data + from, p->in.len - from, "\r\n\r\n", 4);

	p->scanned = p->in.len;
	return end ? (size_t)(end - p->in.data) + 4 : 0;
}

static void pump_head(struct httpd_peer *p)
{
	const struct httphead_limits *limits = &p->httpd->conf.limits;
	size_t head_len;
	int status;

	if (!p->blank_dropped && p->in.len >= 2 && memcmp(p->in.data, "\r\n", 2) == 0) {
		p->blank_dropped = true;
		strbuf_drop(&p->in, 2);
	}
	if (p->in.len == 0)
		return;
	note_start(p);
	if ((p->in.data[0] < 'A' || p->in.data[0] > 'Z') && p->in.data[0] != '\r') {
		refuse(p, 400); /* another protocol: do not wait for the end of a head */
		return;
	}
	head_len = find_head_end(p);
	if (head_len == 0) {
		if (p->in.len > limits->head)
			refuse(p, memchr(p->in.data, '\n', p->in.len) ? 431 : 414);
		return;
	}
	status = httphead_check(p->in.data, head_len, limits, &p->head);
	if (status != 0) {
		refuse(p, status);
		return;
	}
	p->chunks = (struct chunks){.state = CHUNKS_SIZE};
	set_state(p, HTTPD_PEER_BODY);
}

/* What has come of a chunked body is decoded in its place, what comes after it moves up. */
static void take_chunks(struct httpd_peer *p)
{
	const size_t at = p->head.head_len + p->head.body_len, was = p->in.len;
	size_t used = 0, got = 0;
	int status = chunks_take(&p->chunks, p->in.data + at, was - at,
		p->httpd->conf.limits.body - p->head.body_len, &used, &got);

	memmove(p->in.data + at + got, p->in.data + at + used, was - at - used);
	p->in.len = was - used + got;
	if (p->httpd->conf.wipe)
		secret_wipe(p->in.data + p->in.len, was - p->in.len);
	p->in.data[p->in.len] = '\0';
	p->head.body_len += got;
	if (status != 0)
		refuse(p, status);
}

static bool has_body(const struct httpd_peer *p)
{
	return p->head.chunked ? p->chunks.state == CHUNKS_DONE
			       : p->in.len >= p->head.head_len + p->head.body_len;
}

/* libevhtp's callback for a complete request, inside dispatch(). */
static void on_request(evhtp_request_t *ereq, void *arg)
{
	struct httpd *h = arg;
	struct httpd_peer *p = h->dispatching;

	assert(p && !p->ereq && p->req);
	p->ereq = ereq;
	httpd_serve(p->req);
}

/*
 * Bytes that arrived after the request must leave the bufferevent before the canonical line enters
 * it; it is put in front because a plain socket's input is frozen at its end.
 */
static void dispatch(struct httpd_peer *p)
{
	struct httpd *h = p->httpd;
	size_t need = p->head.head_len + p->head.body_len;
	bool gone = false;

	absorb(p);
	set_state(p, HTTPD_PEER_BUSY);
	p->req = httpd_req_new(p, p->in.data, need);
	drop_input(p, need);
	p->n_requests++;
	share_active(h->share, &p->place);
	evbuffer_prepend(bufferevent_get_input(p->bev), canonical, sizeof(canonical) - 1);
	h->dispatching = p;
	p->gone = &gone;
	p->evhtp_read(p->bev, p->evhtp_arg);
	h->dispatching = NULL;
	if (gone || !p->ereq) {
		log_error(NULL, "libevhtp refused the request that it was given", "server=%s",
			h->conf.name);
		if (!gone)
			httpd_peer_close(p);
		return;
	}
	p->gone = NULL;
	bound_input(p);
}

static void pump(struct httpd_peer *p)
{
	if (p->state == HTTPD_PEER_HEAD)
		pump_head(p);
	if (p->state == HTTPD_PEER_BODY && p->head.chunked)
		take_chunks(p);
	if (p->state == HTTPD_PEER_BODY && has_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state != HTTPD_PEER_HEAD && p->state != HTTPD_PEER_BODY)
		return;
	go_on_reading(p);
	if (p->state == HTTPD_PEER_BODY && p->head.expect_continue && !p->continued) {
		p->continued = true;
		write_out(p, continue_line, sizeof(continue_line) - 1);
	}
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct httpd_peer *p = arg;

	if (p->state == HTTPD_PEER_LINGER) {
		struct evbuffer *input = bufferevent_get_input(bev);

		evbuffer_drain(input, evbuffer_get_length(input));
		return;
	}
	absorb(p);
	if (p->state == HTTPD_PEER_HEAD || p->state == HTTPD_PEER_BODY)
		pump(p);
	else
		bound_input(p);
}

/* ---- output */

void httpd_peer_send(struct httpd_peer *p, const struct strbuf *out, bool last)
{
	set_state(p, HTTPD_PEER_FLUSH);
	p->closing = last;
	timer_set(&p->timer, p->httpd->conf.idle_ms); /* to take the reply */
	evhtp_send_reply_end(p->ereq);
	write_out(p, out->data, out->len);
}

/* A request's deadline is over when its stream starts; from then on only a reader that stopped is late. */
void httpd_peer_stream(struct httpd_peer *p)
{
	set_state(p, HTTPD_PEER_STREAM);
	timer_cancel(&p->timer);
	p->given = p->taken = 0;
}

static void expect_progress(struct httpd_peer *p)
{
	p->taken = p->given - output_len(p);
	timer_set(&p->timer, p->httpd->conf.idle_ms);
}

size_t httpd_peer_add(struct httpd_peer *p, const void *data, size_t len)
{
	assert(p->state == HTTPD_PEER_STREAM);
	p->given += len;
	write_out(p, data, len);
	if (output_is_empty(p))
		return 0;
	p->req->blocked = true;
	if (!timer_is_set(&p->timer))
		expect_progress(p);
	return output_len(p);
}

static void stream_drained(struct httpd_peer *p)
{
	struct httpd_req *r = p->req;

	timer_cancel(&p->timer);
	/* Nothing is parsed while a stream lasts, and libevhtp's parser has 8 KiB. Not earlier: a
	 * stream may begin in its callback. */
	evhtp_safe_free(p->conn->parser, free);
	if (!r->blocked)
		return;
	r->blocked = false;
	r->drained_fn(r->drained_arg);
}

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

/* Closing with bytes unread makes the kernel reset the connection, and the reply may be lost on the
 * way. */
static bool may_have_input(const struct httpd_peer *p)
{
	int n = 0;

	return p->in.len > 0 || p->stopped || p->n_requests >= p->httpd->conf.requests_per_conn ||
	       evbuffer_get_length(bufferevent_get_input(p->bev)) > 0 ||
	       ioctl(p->conn->sock, FIONREAD, &n) < 0 || n > 0;
}

static void end_connection(struct httpd_peer *p)
{
	if (p->eof || !may_have_input(p)) {
		httpd_peer_close(p);
		return;
	}
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	go_on_reading(p);
	half_close(p);
}

/* The reply is written: libevhtp frees its request and is ready for another; closing is not left to
 * it. */
static void flushed(struct httpd_peer *p)
{
	evhtp_request_set_keepalive(p->ereq, 1);
	p->ereq = NULL;
	httpd_leave_route(p);
	if (!p->conn->parser)
		p->conn->parser = htparser_new(); /* a stream did without; libevhtp sets it up */
	p->evhtp_write(p->bev, p->evhtp_arg);
	if (p->closing || p->eof || (p->httpd->draining && p->in.len == 0)) {
		end_connection(p);
		return;
	}
	set_state(p, HTTPD_PEER_HEAD);
	p->started = p->blank_dropped = p->continued = false;
	p->scanned = 0;
	share_active(p->httpd->share, &p->place);
	timer_set(&p->timer, p->httpd->conf.idle_ms);
	pump(p);
}

/* libevhtp's own write callback frees the connection when no request is there: it is called in
 * flushed() only. */
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
		return; /* just closed: port scans and TCP probes do that */
	addr_format(p->conn->saddr, peer);
	reason = ERR_reason_error_string(last);
	log_info(NULL, "TLS handshake failed", "server=%s peer=%s reason=%s count=%u",
		p->httpd->conf.name, peer, log_esc(reason ? reason : "?"), left_out + 1);
}

/*
 * The first request mostly arrives during the last step of the handshake: another turn of the loop
 * is saved. Whole records only: libevent does not look again at what stays inside the SSL object.
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
		pump(p);
	else if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
		httpd_peer_close(p);
}

/* A reply that is already made is still written to a peer that closed only its own side; otherwise
 * it is gone. */
static bool keep_writing(struct httpd_peer *p)
{
	if (p->state != HTTPD_PEER_FLUSH && (p->state != HTTPD_PEER_LINGER || p->half_closed))
		return false;
	p->eof = true;
	if (!output_is_empty(p))
		bufferevent_enable(p->bev, EV_WRITE); /* the TLS bufferevent stopped writing too */
	return true;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct httpd_peer *p = arg;

	if (what & BEV_EVENT_CONNECTED) {
		set_state(p, HTTPD_PEER_HEAD);
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

static void close_stopped(struct httpd_peer *p)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	if (httpd_may_log(p->httpd, HTTPD_NOISE_STOPPED, &left_out)) {
		addr_format(p->conn->saddr, peer);
		log_info(NULL, "a client that does not read its stream is closed",
			"server=%s peer=%s count=%u", p->httpd->conf.name, peer, left_out + 1);
	}
	httpd_peer_close(p);
}

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
			refuse(p, 408);
		else
			httpd_peer_close(p);
		return;
	case HTTPD_PEER_BUSY:
		p->req->keep_alive = false;
		httpd_reply_error(p->req, 408, 0, "no answer in time");
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

/* Runs first in evhtp_connection_free(), by every caller. */
static evhtp_res on_connection_fini(evhtp_connection_t *conn, void *arg)
{
	struct httpd_peer *p = arg;

	if (p->gone)
		*p->gone = true;
	if (p->req)
		httpd_req_free(p->req);
	defer_cancel(&p->sent);
	timer_fini(&p->timer);
	drop_input(p, p->in.len);
	LIST_REMOVE(p, link);
	p->httpd->n_peers--;
	share_leave(p->httpd->share, &p->place);
	httpd_leave_route(p);
	httpd_count_connection(p->httpd, -1);
	free(p);
	return EVHTP_RES_OK;
}

void httpd_peer_new(struct httpd *h, evhtp_connection_t *conn)
{
	struct httpd_peer *p = xcalloc(1, sizeof(*p));

	p->httpd = h;
	p->conn = conn;
	p->bev = conn->bev;
	p->state = conn->ssl ? HTTPD_PEER_HANDSHAKE : HTTPD_PEER_HEAD;
	p->prepaid = true;
	LIST_INSERT_HEAD(&h->peers, p, link);
	h->n_peers++;
	share_join(h->share, &p->place, conn->saddr);
	httpd_count_connection(h, 1);
	timer_init(&p->timer, h->loop, on_timeout, p);
	timer_set(&p->timer, h->conf.request_ms);
	if (conn->ssl) /* no wake-ups for a writable socket in the handshake */
		bufferevent_disable(p->bev, EV_WRITE);
	bufferevent_getcb(p->bev, &p->evhtp_read, &p->evhtp_write, &p->evhtp_event, &p->evhtp_arg);
	bufferevent_setcb(p->bev, on_read, on_write, on_event, p);
	evhtp_connection_set_hook(
		conn, evhtp_hook_on_connection_fini, (evhtp_hook)on_connection_fini, p);
}

void httpd_guard_init(struct httpd *h)
{
	evhtp_disable_flag(h->htp, EVHTP_FLAG_ENABLE_100_CONT);
	evhtp_set_gencb(h->htp, on_request, h);
}
