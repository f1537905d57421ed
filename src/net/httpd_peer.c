/* SPDX-License-Identifier: MIT */
/*
 * One connection: its state, its input, its output, its deadlines and its end. What its requests mean
 * is not known here: httpd_req.c hands in the functions that serve them (struct httpd_peer_calls).
 *
 *   HANDSHAKE (TLS) -> HEAD -> BODY -> BUSY -> FLUSH -> HEAD ...    a persistent connection
 *                                      BUSY -> STREAM -> FLUSH      a watch
 *   HEAD or BODY -> LINGER                                          refused by the guard
 *   FLUSH -> LINGER                                                 after the last reply
 *
 * The timer means, by state: HANDSHAKE, HEAD, BODY, BUSY: the request's deadline, or idleness between
 * requests; STREAM: progress of a slow reader; FLUSH: the reply must be read; LINGER: the wait ends.
 *
 * Input passes a guard between the bufferevent and libevhtp. It collects bytes, checks a head as a
 * whole, waits for the body, and only then makes libevhtp start a request. libevhtp's parser only ever
 * reads a constant line: it corrupts split, pipelined or unusual requests, so no byte of a peer reaches
 * it. The guard limits what it buffers, and what it refuses gets a complete reply. It does not wait for
 * a large body if the head is sufficient to refuse the request.
 *
 * The last reply is followed by a lingering close, so that a reset does not destroy it (RFC 9112
 * section 9.6). libevhtp's own callbacks run only from here, at points where they are harmless.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
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
#include "tec/base/metric.h"
#include "tec/base/secret.h"

#include "net_internal.h"

#define LINGER_MS     2000
#define NOISE_MS      10000
#define WRITE_NOW_MAX 16384

static const char canonical[] = "GET / HTTP/1.0\r\n\r\n";
static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n";

static struct metric connections =
	METRIC_GAUGE_INIT("tec_http_connections", "Open connections.", "listener", NULL);
static struct metric refused_total = METRIC_COUNTER_INIT("tec_http_refused_connections_total",
	"Connections closed before their first request.", "listener", "reason");
static struct metric refused_bodies = METRIC_COUNTER_INIT("tec_http_refused_bodies_total",
	"Requests refused because request bodies used too much memory.", "listener", NULL);

/* ---- counts and logs */

void httpd_peer_refused(const struct httpd *h, const char *reason)
{
	metric_add(&refused_total, h->conf.name, reason, 1);
}

/* Rate-limit a kind of log line; *left_out is the number of lines suppressed since the last one. */
bool httpd_peer_may_log(struct httpd *h, enum httpd_noise kind, unsigned *left_out)
{
	struct httpd_quiet *q = &h->quiet[kind];
	uint64_t now = clock_boot_ms();

	if (now < q->until_ms) {
		q->left_out++;
		return false;
	}
	*left_out = q->left_out;
	q->left_out = 0;
	q->until_ms = now + NOISE_MS;
	return true;
}

/* ---- states */

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

static void set_state(struct httpd_peer *p, enum httpd_peer_state to)
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
static void peer_write(struct httpd_peer *p, const char *data, size_t len)
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
	set_state(p, HTTPD_PEER_FLUSH);
	p->closing = last;
	timer_set(&p->timer, p->httpd->conf.idle_ms); /* the client must read the reply in time */
	evhtp_send_reply_end(p->ereq);
	peer_write(p, out->data, out->len);
}

/* Begin a stream. The request's deadline no longer applies; only a reader that stops reading is
 * disconnected. */
void httpd_peer_stream(struct httpd_peer *p)
{
	set_state(p, HTTPD_PEER_STREAM);
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
	peer_write(p, data, len);
	if (output_is_empty(p))
		return 0;
	if (!timer_is_set(&p->timer))
		expect_progress(p);
	return output_len(p);
}

/* ---- input */

/* Remove the first n bytes of the input, wiping them if the listener handles keys. */
static void drop_input(struct httpd_peer *p, size_t n)
{
	if (p->httpd->conf.wipe && n > 0)
		secret_wipe(p->in.data, n);
	strbuf_drop(&p->in, n);
	if (p->in.len == 0)
		strbuf_fini(&p->in);
}

static void resume_reading(struct httpd_peer *p)
{
	if (p->stopped) {
		p->stopped = false;
		bufferevent_enable(p->bev, EV_READ);
	}
}

/*
 * Copy the bufferevent's input to ours. Moving its chains would be cheaper, but a chain may have
 * 32 KiB and hold one byte, so a slow sender would cost 32 KiB per byte.
 */
static void absorb(struct httpd_peer *p)
{
	struct evbuffer *input = bufferevent_get_input(p->bev);
	char buf[4096];
	int n;

	while ((n = evbuffer_remove(input, buf, sizeof(buf))) > 0)
		strbuf_add(&p->in, buf, (size_t)n);
}

/* While a request is served, buffer one more head's worth of input; beyond that stop reading, and
 * TCP makes the peer wait. */
static void bound_input(struct httpd_peer *p)
{
	if (p->in.len <= p->httpd->conf.limits.head) {
		resume_reading(p);
	} else if (!p->stopped) {
		p->stopped = true;
		bufferevent_disable(p->bev, EV_READ);
	}
}

/* Send a complete error response and linger. The rest of the input is discarded: there is no
 * reliable boundary to the next request. */
static void refuse(struct httpd_peer *p, int status)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	p->httpd->calls->refusal(p->httpd, status, &out);
	httpd_body_end(&p->body);
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	/* Read on and discard: closing with unread bytes would reset the connection, and the reply could
	 * be lost. */
	resume_reading(p);
	peer_write(p, out.data, out.len);
}

/* Refuse a request whose body would use too much memory, possibly for the body of another. */
static void refuse_body(struct httpd_body *b)
{
	struct httpd_peer *p = container_of(b, struct httpd_peer, body);
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	metric_add(&refused_bodies, p->httpd->conf.name, NULL, 1);
	if (httpd_peer_may_log(p->httpd, HTTPD_NOISE_BODY, &left_out)) {
		addr_format(p->conn->saddr, peer);
		log_warn(NULL, "request bodies use too much memory: refused one",
			"server=%s peer=%s count=%u", p->httpd->conf.name, peer, left_out + 1);
	}
	refuse(p, 503);
}

/* Start the deadline of a request at its first byte; that of the first request runs since
 * accept. */
static void note_start(struct httpd_peer *p)
{
	if (p->started)
		return;
	p->started = true;
	if (p->n_requests > 0)
		timer_set(&p->timer, p->httpd->conf.request_ms);
}

/* Search only new bytes, with an overlap of three for a split CRLFCRLF, so that the cost is
 * linear. */
static size_t find_head_end(struct httpd_peer *p)
{
	size_t from = p->scanned > 3 ? p->scanned - 3 : 0;
	const char *end = memmem(p->in.data + from, p->in.len - from, "\r\n\r\n", 4);

	p->scanned = p->in.len;
	return end ? (size_t)(end - p->in.data) + 4 : 0;
}

/* Process the head of a request. True: it is complete and valid. */
static bool pump_head(struct httpd_peer *p)
{
	const struct httphead_limits *limits = &p->httpd->conf.limits;
	size_t head_len;
	int status;

	if (!p->blank_dropped && p->in.len >= 2 && memcmp(p->in.data, "\r\n", 2) == 0) {
		p->blank_dropped = true;
		strbuf_drop(&p->in, 2);
	}
	if (p->in.len == 0)
		return false;
	note_start(p);
	if ((p->in.data[0] < 'A' || p->in.data[0] > 'Z') && p->in.data[0] != '\r') {
		refuse(p, 400); /* another protocol, such as TLS: there will be no end of a head */
		return false;
	}
	head_len = find_head_end(p);
	if (head_len == 0) {
		if (p->in.len > limits->head)
			refuse(p, memchr(p->in.data, '\n', p->in.len) ? 431 : 414);
		return false;
	}
	status = httphead_check(p->in.data, head_len, limits, &p->head);
	if (status != 0) {
		refuse(p, status);
		return false;
	}
	p->chunks = (struct chunks){.state = CHUNKS_SIZE};
	set_state(p, HTTPD_PEER_BODY);
	return true;
}

/* Decide whether to wait for the body. If not, the request is dispatched without it. */
static bool wants_body(struct httpd_peer *p)
{
	if (!p->head.chunked && p->head.body_len <= HTTPD_BODY_SMALL)
		return true;
	p->req = p->httpd->calls->begin(p, p->in.data, p->head.head_len);
	if (p->httpd->calls->wants_body(p->req, &p->body.known)) {
		p->httpd->calls->end(p->req); /* it is made again with the body */
		return true;
	}
	p->head.body_len = 0;
	return false;
}

/* Decode a chunked body in place as it arrives; bytes after its end, which belong to the next
 * request, move up. */
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

/* libevhtp's callback for a complete request, called inside dispatch(). */
static void on_request(evhtp_request_t *ereq, void *arg)
{
	struct httpd *h = arg;
	struct httpd_peer *p = h->dispatching;

	assert(p && !p->ereq && p->req);
	p->ereq = ereq;
	h->calls->serve(p->req);
}

/*
 * Give libevhtp a request: the canonical line goes into its input, and its parser calls on_request().
 * Bytes that arrived after the request must leave the bufferevent first. The line is prepended because
 * the end of a plain socket's input buffer is frozen.
 */
static void dispatch(struct httpd_peer *p)
{
	struct httpd *h = p->httpd;
	size_t need = p->head.head_len + p->head.body_len;
	bool gone = false;

	absorb(p);
	set_state(p, HTTPD_PEER_BUSY);
	if (!p->req)
		p->req = h->calls->begin(p, p->in.data, need);
	drop_input(p, need);
	httpd_body_read(&p->body);
	p->n_requests++;
	share_active(h->share, &p->place);
	evbuffer_prepend(bufferevent_get_input(p->bev), canonical, sizeof(canonical) - 1);
	h->dispatching = p;
	p->gone = &gone;
	p->evhtp_read(p->bev, p->evhtp_arg);
	h->dispatching = NULL;
	if (gone || !p->ereq) {
		log_error(NULL, "libevhtp refused a validated request", "server=%s", h->conf.name);
		if (!gone)
			httpd_peer_close(p);
		return;
	}
	p->gone = NULL;
	bound_input(p);
}

/* Process what has arrived until more is needed or a request is dispatched. Called for new input
 * and after each reply, as a client may pipeline. */
static void pump(struct httpd_peer *p)
{
	if (p->state == HTTPD_PEER_HEAD && pump_head(p) && !wants_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state == HTTPD_PEER_BODY && p->head.chunked)
		take_chunks(p);
	if (p->state == HTTPD_PEER_BODY && !httpd_body_grow(&p->body, p->conn->saddr,
						   p->in.len - p->head.head_len, refuse_body)) {
		refuse_body(&p->body);
		return;
	}
	if (p->state == HTTPD_PEER_BODY && has_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state != HTTPD_PEER_HEAD && p->state != HTTPD_PEER_BODY)
		return;
	resume_reading(p);
	if (p->state == HTTPD_PEER_BODY && p->head.expect_continue && !p->continued) {
		p->continued = true;
		peer_write(p, continue_line, sizeof(continue_line) - 1);
	}
}

/* In LINGER input is discarded; while a request is served it is only buffered. */
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

/* ---- the end of a reply */

/* All buffered bytes of a stream were sent: the caller may add more. */
static void stream_drained(struct httpd_peer *p)
{
	timer_cancel(&p->timer);
	/* Free libevhtp's parser, which has 8 KiB and is not needed while a stream lasts. Not
	 * earlier, because a stream may begin inside the parser's callback. */
	evhtp_safe_free(p->conn->parser, free);
	p->httpd->calls->drained(p->req);
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
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	resume_reading(p);
	half_close(p);
}

/* The reply is written: let libevhtp free its request and prepare for another; it must not close
 * the connection itself. */
static void flushed(struct httpd_peer *p)
{
	evhtp_request_set_keepalive(p->ereq, 1);
	p->ereq = NULL;
	p->httpd->calls->written(p);
	if (!p->conn->parser)
		p->conn->parser = htparser_new(); /* freed by a stream; libevhtp initialises it */
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
	httpd_peer_refused(p->httpd, "handshake");
	if (last == 0 || !httpd_peer_may_log(p->httpd, HTTPD_NOISE_HANDSHAKE, &left_out))
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
		pump(p);
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

/* Disconnect a client that does not read its stream: its buffered data would be kept
 * indefinitely. */
static void close_stopped(struct httpd_peer *p)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	if (httpd_peer_may_log(p->httpd, HTTPD_NOISE_STOPPED, &left_out)) {
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
		httpd_peer_refused(p->httpd, "handshake_timeout");
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
		p->httpd->calls->late(p->req);
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
		p->httpd->calls->end(p->req);
	defer_cancel(&p->sent);
	timer_fini(&p->timer);
	drop_input(p, p->in.len);
	httpd_body_end(&p->body);
	LIST_REMOVE(p, link);
	p->httpd->n_peers--;
	share_leave(p->httpd->share, &p->place);
	p->httpd->calls->written(p);
	metric_add(&connections, p->httpd->conf.name, NULL, -1);
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
	metric_add(&connections, h->conf.name, NULL, 1);
	timer_init(&p->timer, h->loop, on_timeout, p);
	timer_set(&p->timer, h->conf.request_ms);
	if (conn->ssl) /* no wake-ups for a writable socket in the handshake */
		bufferevent_disable(p->bev, EV_WRITE);
	bufferevent_getcb(p->bev, &p->evhtp_read, &p->evhtp_write, &p->evhtp_event, &p->evhtp_arg);
	bufferevent_setcb(p->bev, on_read, on_write, on_event, p);
	evhtp_connection_set_hook(
		conn, evhtp_hook_on_connection_fini, (evhtp_hook)on_connection_fini, p);
}

/* The guard sends 100 Continue itself, after it has accepted the head. */
void httpd_peer_setup(struct httpd *h, const struct httpd_peer_calls *calls)
{
	h->calls = calls;
	evhtp_disable_flag(h->htp, EVHTP_FLAG_ENABLE_100_CONT);
	evhtp_set_gencb(h->htp, on_request, h);
}
