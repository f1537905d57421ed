/* SPDX-License-Identifier: MIT */
/*
 * Listeners and their connections: which ones are accepted, which one is closed when all are in use,
 * and one connection's state, input, output, deadlines and end. libevhtp accepts, creates the (TLS)
 * bufferevent and owns the connection. What requests mean is the business of httpd_req.c.
 *
 * Path of one request: before_accept() -> after_accept() -> on_read() collects and checks head and
 * body -> dispatch() -> httpd_req_serve() -> the handler -> httpd_reply() -> httpd_peer_send() ->
 * flushed(), then the next request of the connection.
 *
 *   HANDSHAKE (TLS) -> HEAD -> BODY -> BUSY -> FLUSH -> HEAD ...    a persistent connection
 *                                      BUSY -> STREAM -> FLUSH      a watch
 *   HEAD or BODY -> LINGER                                          refused by the guard or rate
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
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <evhtp/evhtp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/loop/signal.h"

#include "net_internal.h"

#define ACCEPT_PAUSE_MS 200
#define TURN_ACCEPTS    64
#define LINGER_MS       2000
#define NOISE_MS        10000
#define WRITE_NOW_MAX   16384
#define UNPAID_MS       2000  /* for the handshake and the head of an unpaid connection */
#define UNPAID_DISCARD  65536 /* bytes after its head */

const struct httpd_conf httpd_conf_default = {
	.limits = {.head = 16 * 1024, .body = 16 * 1024, .lines = 64, .line = 8000, .target = 2048},
	.request_ms = 15000,
	.idle_ms = 15000,
	.requests_per_conn = 100,
	.max_connections = 1500,
	.yield_ms = 1000,
	.rate_status = 429,
};

static const char canonical[] = "GET / HTTP/1.0\r\n\r\n";
static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n";

static struct metric connections =
	METRIC_GAUGE_INIT("tec_http_connections", "Open connections.", "listener", NULL);
static struct metric refused_total = METRIC_COUNTER_INIT("tec_http_refused_connections_total",
	"Connections refused before their first request.", "listener", "reason");
static struct metric refused_bodies = METRIC_COUNTER_INIT("tec_http_refused_bodies_total",
	"Requests refused because request bodies used too much memory.", "listener", NULL);
static struct metric evicted_total = METRIC_COUNTER_INIT("tec_http_evicted_connections_total",
	"Connections closed to make room for a source with fewer, or for a newer connection.",
	"listener", NULL);
static struct metric held_bytes = METRIC_GAUGE_INIT("tec_http_body_bytes",
	"Bytes of large request bodies in memory, by sender: known (authenticated) or stranger.",
	"sender", NULL);

/* ---- the memory of bodies
 *
 * In all listeners of the process together. Known senders have a separate budget, so that strangers
 * cannot exclude them. A large body counts with the bytes that have arrived, not with the length that
 * its head announces, until its request ends.
 *
 * Strangers' bodies compete by number, not by size: the source that sends the most of them loses one
 * first, and among equal sources the longest idle one does. So a large upload of an honest client,
 * which keeps sending, completes among many small or slow ones. */

static size_t known, strangers;  /* accounted bytes, of all listeners */
static struct share *being_read; /* owned; strangers' bodies being read; NULL: none */

/* A complete body can no longer be refused, but counts until its request ends. The share is freed with
 * the last body that is being read, as no listener owns it. */
static void body_read(struct httpd_body *b)
{
	if (!b->place.source)
		return;
	share_leave(being_read, &b->place);
	if (!share_idlest(being_read))
		share_free(steal_ptr(&being_read));
}

/* Replace the accounted size of this body in the total of its kind. */
static void count(struct httpd_body *b, size_t held)
{
	size_t *all = b->known ? &known : &strangers;

	*all = *all - b->held + held;
	b->held = held;
	metric_set(&held_bytes, b->known ? "known" : "stranger", NULL, (double)*all);
}

static void refuse_body(struct httpd_body *b);

/*
 * Called for each piece that arrives; the body now has len bytes. False: there is no room, even after
 * refusing others, or this one is next to be refused. Bodies up to HTTPD_BODY_SMALL are free: the
 * number of connections bounds them.
 */
static bool body_grow(struct httpd_body *b, const struct sockaddr *sa, size_t len)
{
	size_t more = len - b->held;
	uint8_t source[ADDR_SOURCE_LEN];

	if (len <= HTTPD_BODY_SMALL || len <= b->held)
		return true;
	if (b->known && known + more > HTTPD_KNOWN_MAX)
		return false;
	/* Bytes have arrived: the body is not the longest idle one. */
	if (!b->known && b->place.source) {
		share_active(being_read, &b->place);
	} else if (!b->known) {
		if (!being_read)
			being_read = share_new();
		addr_source(sa, source);
		share_join(being_read, &b->place, source);
	}
	while (!b->known && strangers + more > HTTPD_STRANGERS_MAX) {
		struct httpd_body *idlest =
			container_of(share_idlest(being_read), struct httpd_body, place);

		if (idlest == b)
			return false;
		refuse_body(idlest);
	}
	count(b, len);
	return true;
}

void httpd_body_end(struct httpd_body *b)
{
	body_read(b);
	if (b->held > 0)
		count(b, 0);
	b->known = false;
}

/* ---- counts and logs */

/* Rate-limit a kind of log line; *left_out is the number of lines suppressed since the last one. */
static bool may_log(struct httpd *h, enum httpd_noise kind, unsigned *left_out)
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

/* Log one line of a kind. reason: a word, or log_esc() of a text; may be NULL. */
static void log_noise(struct httpd *h, enum httpd_noise kind, enum log_level level, const char *msg,
	const struct sockaddr *sa, const char *reason)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	if (!may_log(h, kind, &left_out))
		return;
	addr_format(sa, peer);
	log_at(level, NULL, msg, "server=%s peer=%s%s%s count=%u", h->conf.name, peer,
		reason ? " reason=" : "", reason ? reason : "", left_out + 1);
}

/* ---- states */

static void set_state(struct httpd_peer *p, enum httpd_peer_state to)
{
	/* The permitted transitions. */
	static const unsigned next[] = {[HTTPD_PEER_HANDSHAKE] = 1u << HTTPD_PEER_HEAD,
		[HTTPD_PEER_HEAD] = 1u << HTTPD_PEER_BODY | 1u << HTTPD_PEER_LINGER,
		[HTTPD_PEER_BODY] = 1u << HTTPD_PEER_BUSY | 1u << HTTPD_PEER_LINGER,
		[HTTPD_PEER_BUSY] = 1u << HTTPD_PEER_STREAM | 1u << HTTPD_PEER_FLUSH,
		[HTTPD_PEER_STREAM] = 1u << HTTPD_PEER_FLUSH,
		[HTTPD_PEER_FLUSH] = 1u << HTTPD_PEER_HEAD | 1u << HTTPD_PEER_LINGER,
		[HTTPD_PEER_LINGER] = 0};

	if (!(next[p->state] & 1u << to))
		DIE("connection of %s: invalid transition from state %d to %d", p->httpd->conf.name,
			(int)p->state, (int)to);
	p->state = to;
}

static size_t output_len(const struct httpd_peer *p)
{
	return evbuffer_get_length(bufferevent_get_output(p->bev));
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

static void on_output(void *arg);

/*
 * Write data after what was written before. libevent would write only in its next turn, after three
 * system calls to watch the socket, which is a tenth of the cost of a connection. So write a small
 * piece directly if possible; on_output() follows in a later turn in both cases. Errors are left to the
 * bufferevent, which will meet them again.
 */
static void peer_write(struct httpd_peer *p, const char *data, size_t len)
{
	ssize_t n = 0;
	size_t done;

	if (len > 0 && len <= WRITE_NOW_MAX && output_len(p) == 0) {
		if (p->conn->ssl) {
			n = SSL_write(p->conn->ssl, data, (int)len);
			clear_errors();
		} else {
			n = send(p->conn->sock, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
	}
	done = n > 0 ? (size_t)n : 0;
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

size_t httpd_peer_add(struct httpd_peer *p, const void *data, size_t len)
{
	assert(p->state == HTTPD_PEER_STREAM);
	p->given += len;
	peer_write(p, data, len);
	if (output_len(p) == 0)
		return 0;
	if (!timer_is_set(&p->timer)) {
		p->taken = p->given - output_len(p);
		timer_set(&p->timer, p->httpd->conf.idle_ms);
	}
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
static void refuse_for(
	struct httpd_peer *p, int status, uint32_t retry_after_s, const char *message)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	httpd_req_refusal(p->httpd, status, retry_after_s, message, &out);
	httpd_body_end(&p->body);
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	/* Read on and discard: closing with unread bytes would reset the connection, and the reply could
	 * be lost. */
	resume_reading(p);
	peer_write(p, out.data, out.len);
}

static void refuse(struct httpd_peer *p, int status)
{
	refuse_for(p, status, 0, NULL);
}

/* Refuse a request whose body would use too much memory, possibly for the body of another. */
static void refuse_body(struct httpd_body *b)
{
	struct httpd_peer *p = container_of(b, struct httpd_peer, body);

	metric_add(&refused_bodies, p->httpd->conf.name, NULL, 1);
	log_noise(p->httpd, HTTPD_NOISE_BODY, LOG_WARN,
		"request bodies use too much memory: refused one", p->conn->saddr, NULL);
	refuse_for(p, 503, 1, "request bodies use too much memory; try again later");
}

/* Ask for the token that was missing at accept. Only now, so that the time in the refusal is true.
 * True: there is one, and the connection is like any other. */
static bool pay(struct httpd_peer *p)
{
	struct httpd *h = p->httpd;
	uint32_t retry_s;

	if (!ratelimit_take(h->conf.rate, p->conn->saddr, &retry_s)) {
		metric_add(&refused_total, h->conf.name, "rate_answered", 1);
		log_noise(h, HTTPD_NOISE_REFUSED, LOG_WARN, "connection refused", p->conn->saddr,
			"rate_answered");
		refuse_for(p, h->conf.rate_status, retry_s, HTTPD_OVER_RATE);
		return false;
	}
	p->unpaid = false;
	h->n_unpaid--;
	p->prepaid = true;
	timer_set(&p->timer, h->conf.request_ms);
	return true;
}

/* Process the head of a request. True: it is complete and valid. */
static bool pump_head(struct httpd_peer *p)
{
	const struct httphead_limits *limits = &p->httpd->conf.limits;
	size_t from, head_len;
	const char *end;
	int status;

	if (!p->blank_dropped && p->in.len >= 2 && memcmp(p->in.data, "\r\n", 2) == 0) {
		p->blank_dropped = true;
		strbuf_drop(&p->in, 2);
	}
	if (p->in.len == 0)
		return false;
	/* The deadline of a request starts at its first byte; that of the first request runs since
	 * accept. */
	if (!p->started && p->n_requests > 0)
		timer_set(&p->timer, p->httpd->conf.request_ms);
	p->started = true;
	if ((p->in.data[0] < 'A' || p->in.data[0] > 'Z') && p->in.data[0] != '\r') {
		refuse(p, 400); /* another protocol, such as TLS: there will be no end of a head */
		return false;
	}
	/* Search only new bytes, with an overlap of three for a split CRLFCRLF, so that the cost is
	 * linear. */
	from = p->scanned > 3 ? p->scanned - 3 : 0;
	end = memmem(p->in.data + from, p->in.len - from, "\r\n\r\n", 4);
	p->scanned = p->in.len;
	if (!end) {
		if (p->in.len > limits->head)
			refuse(p, memchr(p->in.data, '\n', p->in.len) ? 431 : 414);
		return false;
	}
	head_len = (size_t)(end - p->in.data) + 4;
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
	p->req = httpd_req_new(p, p->in.data, p->head.head_len);
	if (httpd_req_wants_body(p->req, &p->body.known)) {
		httpd_req_free(p->req); /* it is made again with the body */
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

/* libevhtp's callback for a complete request, called inside dispatch(). */
static void on_request(evhtp_request_t *ereq, void *arg)
{
	struct httpd *h = arg;
	struct httpd_peer *p = h->dispatching;

	assert(p && !p->ereq && p->req);
	p->ereq = ereq;
	httpd_req_serve(p->req);
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
		p->req = httpd_req_new(p, p->in.data, need);
	drop_input(p, need);
	body_read(&p->body);
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
	if (p->state == HTTPD_PEER_HEAD && pump_head(p) && (!p->unpaid || pay(p)) &&
		!wants_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state == HTTPD_PEER_BODY && p->head.chunked)
		take_chunks(p);
	if (p->state == HTTPD_PEER_BODY &&
		!body_grow(&p->body, p->conn->saddr, p->in.len - p->head.head_len)) {
		refuse_body(&p->body);
		return;
	}
	if (p->state == HTTPD_PEER_BODY &&
		(p->head.chunked ? p->chunks.state == CHUNKS_DONE
				 : p->in.len >= p->head.head_len + p->head.body_len)) {
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
		size_t n = evbuffer_get_length(input);

		evbuffer_drain(input, n);
		if (p->unpaid && (p->discarded += n) > UNPAID_DISCARD)
			httpd_peer_close(p);
		return;
	}
	absorb(p);
	if (p->state == HTTPD_PEER_HEAD || p->state == HTTPD_PEER_BODY)
		pump(p);
	else
		bound_input(p);
}

/* ---- the end of a reply */

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

/* Close after the last reply, with lingering if the peer may have sent more: closing with unread bytes
 * makes the kernel reset the connection, and the reply may be lost. */
static void end_connection(struct httpd_peer *p)
{
	int unread = 0;

	if (p->eof || (p->in.len == 0 && !p->stopped &&
			      p->n_requests < p->httpd->conf.requests_per_conn &&
			      evbuffer_get_length(bufferevent_get_input(p->bev)) == 0 &&
			      ioctl(p->conn->sock, FIONREAD, &unread) == 0 && unread == 0)) {
		httpd_peer_close(p);
		return;
	}
	drop_input(p, p->in.len);
	set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, LINGER_MS);
	resume_reading(p);
	half_close(p);
}

/* The reply is written, or never will be: only now, so that a slow reader holds its place in the
 * route's limit. */
static void leave_route(struct httpd_peer *p)
{
	if (p->in_route)
		--*p->in_route;
	p->in_route = NULL;
}

/* The reply is written: let libevhtp free its request and prepare for another; it must not close
 * the connection itself. */
static void flushed(struct httpd_peer *p)
{
	evhtp_request_set_keepalive(p->ereq, 1);
	p->ereq = NULL;
	leave_route(p);
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

	if (output_len(p) > 0)
		return;
	if (p->state == HTTPD_PEER_STREAM) {
		timer_cancel(&p->timer);
		/* Free libevhtp's parser, which has 8 KiB and is not needed while a stream lasts.
		 * Not earlier, because a stream may begin inside the parser's callback. */
		evhtp_safe_free(p->conn->parser, free);
		httpd_req_drained(p->req); /* the caller may add more */
	} else if (p->state == HTTPD_PEER_FLUSH) {
		flushed(p);
	} else if (p->state == HTTPD_PEER_LINGER && p->eof) {
		httpd_peer_close(p);
	} else if (p->state == HTTPD_PEER_LINGER) {
		half_close(p);
	}
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
	const char *reason;

	while ((e = bufferevent_get_openssl_error(p->bev)) != 0)
		last = ERR_GET_LIB(e) ? e : last;
	metric_add(&refused_total, p->httpd->conf.name, "handshake", 1);
	reason = ERR_reason_error_string(last);
	if (last != 0)
		log_noise(p->httpd, HTTPD_NOISE_HANDSHAKE, LOG_INFO, "TLS handshake failed",
			p->conn->saddr, log_esc(reason ? reason : "?"));
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
	/* The peer closed its side. A reply that already exists is still written; otherwise the
	 * connection is closed. */
	if ((what & BEV_EVENT_EOF) && (p->state == HTTPD_PEER_FLUSH ||
					      (p->state == HTTPD_PEER_LINGER && !p->half_closed))) {
		p->eof = true;
		if (output_len(p) > 0)
			bufferevent_enable(p->bev, EV_WRITE); /* TLS stopped writing too */
		return;
	}
	if (p->state == HTTPD_PEER_HANDSHAKE)
		log_handshake(p);
	errno = 0; /* libevhtp keeps a closed connection when it finds EAGAIN here */
	p->evhtp_event(bev, what, p->evhtp_arg);
	clear_errors();
}

/* The deadline of the current state has passed. */
static void on_timeout(void *arg)
{
	struct httpd_peer *p = arg;

	switch (p->state) {
	case HTTPD_PEER_HANDSHAKE:
		metric_add(&refused_total, p->httpd->conf.name, "handshake_timeout", 1);
		httpd_peer_close(p);
		return;
	case HTTPD_PEER_HEAD:
	case HTTPD_PEER_BODY:
		if (p->unpaid && p->started)
			(void)pay(p);
		else if (p->started)
			refuse(p, 408);
		else
			httpd_peer_close(p);
		return;
	case HTTPD_PEER_BUSY:
		httpd_req_late(p->req);
		return;
	case HTTPD_PEER_STREAM:
		if (p->given - output_len(p) != p->taken) {
			p->taken = p->given - output_len(p);
			timer_set(&p->timer, p->httpd->conf.idle_ms);
			return;
		}
		/* Its buffered data would be kept indefinitely. */
		log_noise(p->httpd, HTTPD_NOISE_STOPPED, LOG_INFO,
			"closed a client that does not read its stream", p->conn->saddr, NULL);
		httpd_peer_close(p);
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
	drop_input(p, p->in.len);
	httpd_body_end(&p->body);
	LIST_REMOVE(p, link);
	p->httpd->n_peers--;
	p->httpd->n_unpaid -= p->unpaid;
	share_leave(p->httpd->share, &p->place);
	leave_route(p);
	metric_add(&connections, p->httpd->conf.name, NULL, -1);
	free(p);
	return EVHTP_RES_OK;
}

/* Take over a new connection: its callbacks become ours, and libevhtp's are kept for later. */
static evhtp_res after_accept(evhtp_connection_t *conn, void *arg)
{
	struct httpd *h = arg;
	struct httpd_peer *p = xcalloc(1, sizeof(*p));
	uint8_t source[ADDR_SOURCE_LEN];

	p->httpd = h;
	p->conn = conn;
	p->bev = conn->bev;
	p->state = conn->ssl ? HTTPD_PEER_HANDSHAKE : HTTPD_PEER_HEAD;
	p->unpaid = h->accepting_unpaid;
	p->prepaid = !p->unpaid;
	LIST_INSERT_HEAD(&h->peers, p, link);
	h->n_peers++;
	h->n_unpaid += p->unpaid;
	addr_source(conn->saddr, source);
	share_join(h->share, &p->place, source);
	metric_add(&connections, h->conf.name, NULL, 1);
	timer_init(&p->timer, h->loop, on_timeout, p);
	timer_set(&p->timer, p->unpaid ? UNPAID_MS : h->conf.request_ms);
	if (conn->ssl) /* no wake-ups for a writable socket in the handshake */
		bufferevent_disable(p->bev, EV_WRITE);
	bufferevent_getcb(p->bev, &p->evhtp_read, &p->evhtp_write, &p->evhtp_event, &p->evhtp_arg);
	bufferevent_setcb(p->bev, on_read, on_write, on_event, p);
	evhtp_connection_set_hook(
		conn, evhtp_hook_on_connection_fini, (evhtp_hook)on_connection_fini, p);
	return EVHTP_RES_OK;
}

/* ---- accepting */

/* Enable all listeners, after a pause or in a new turn, unless a longer pause is set. */
static void accept_again(void *arg)
{
	struct httpd *h = arg;

	h->n_accepted = 0;
	if (timer_is_set(&h->accept_pause))
		return;
	for (unsigned i = 0; i < h->n_listeners; i++)
		evconnlistener_enable(h->listeners[i]);
}

static void stop_accepting(struct httpd *h)
{
	for (unsigned i = 0; i < h->n_listeners; i++)
		evconnlistener_disable(h->listeners[i]);
}

/* accept() failed, usually with EMFILE. The socket stays readable, so without a pause this would be
 * a busy loop. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct httpd *h = ((evhtp_t *)arg)->arg; /* arg was set by libevhtp */
	int sys = errno;
	unsigned left_out;

	metric_add(&refused_total, h->conf.name, "accept", 1);
	stop_accepting(h);
	timer_set(&h->accept_pause, ACCEPT_PAUSE_MS);
	if (may_log(h, HTTPD_NOISE_ACCEPT, &left_out))
		log_warn(NULL, "cannot accept connections at the moment",
			"server=%s errno=%d reason=%s count=%u", h->conf.name, sys,
			log_esc(strerror(sys)), left_out + 1);
}

/* Ensure that a place is free for this source. False: all are in use and none may be reclaimed. */
static bool make_room(struct httpd *h, const struct sockaddr *sa)
{
	uint8_t source[ADDR_SOURCE_LEN];
	struct share_place *place;
	struct httpd_peer *p;
	bool own;

	if (h->n_peers < h->conf.max_connections)
		return true;
	addr_source(sa, source);
	place = share_victim(h->share, source, &own);
	p = container_of(place, struct httpd_peer, place);
	/* A connection whose request is being served is never closed for another of its source. */
	if (own && h->conf.yield_ms > 0 &&
		(p->state == HTTPD_PEER_BUSY || p->state == HTTPD_PEER_STREAM ||
			clock_boot_ms() - place->active_ms < h->conf.yield_ms))
		return false;
	metric_add(&evicted_total, h->conf.name, NULL, 1);
	log_noise(h, HTTPD_NOISE_EVICTED, LOG_WARN,
		"all connections are in use: closed the longest idle one of the source with the most",
		p->conn->saddr, NULL);
	httpd_peer_close(p); /* a request in progress on it is lost */
	return true;
}

/* Whether a source without a token can be told so. Such connections must not cost others anything, so
 * they have a budget, and a quarter of the places stays free of them. */
static bool may_answer(struct httpd *h)
{
	static const uint8_t all[ADDR_SOURCE_LEN]; /* one budget for all sources */
	unsigned quarter = h->conf.max_connections / 4;
	uint32_t retry_s;

	return h->n_peers < h->conf.max_connections - quarter &&
	       h->n_unpaid < (quarter < HTTPD_UNPAID_MAX ? quarter : HTTPD_UNPAID_MAX) &&
	       ratelimit_take_source(h->answers, all, &retry_s);
}

/*
 * Decide before TLS costs anything. Any result but OK makes libevhtp close the socket.
 *
 * The connections accepted per turn are limited. libevent accepts while connections are waiting, which
 * a flood can prolong indefinitely, and a new connection could be evicted before its first request is
 * read. So accepting pauses after at most a quarter of the places, and new connections are served.
 */
static evhtp_res before_accept(evhtp_connection_t *conn, void *arg)
{
	struct httpd *h = arg;
	unsigned quarter = h->conf.max_connections / 4;
	const char *reason = h->waiting; /* a label value of the metric; NULL accepts */
	uint32_t retry_s;

	h->accepting_unpaid = false;
	if (!reason && !ratelimit_take(h->conf.rate, conn->saddr, &retry_s)) {
		h->accepting_unpaid = may_answer(h);
		reason = h->accepting_unpaid ? NULL : "rate";
	} else if (!reason && !make_room(h, conn->saddr)) {
		reason = "limit";
	}
	defer_call(&h->next_turn, h->loop, accept_again, h);
	if (++h->n_accepted >= TURN_ACCEPTS || h->n_accepted >= (quarter ? quarter : 1))
		stop_accepting(h);
	if (!reason) {
		fcntl(conn->sock, F_SETFD, FD_CLOEXEC);
		return EVHTP_RES_OK;
	}
	metric_add(&refused_total, h->conf.name, reason, 1);
	log_noise(h, HTTPD_NOISE_REFUSED, LOG_WARN, "connection refused", conn->saddr, reason);
	return EVHTP_RES_ERROR;
}

/* ---- listeners */

/* The listener accepts nothing until httpd_listen(). */
struct httpd *httpd_new(struct loop *l, const struct httpd_conf *conf)
{
	struct httpd *h = xcalloc(1, sizeof(*h));

	assert(conf->name && conf->request_ms && conf->idle_ms && conf->requests_per_conn &&
		conf->max_connections && conf->limits.head && conf->rate_status);
	h->loop = l;
	h->conf = *conf;
	h->date_s = -1;
	h->share = share_new();
	if (conf->rate)
		h->answers = ratelimit_new(HTTPD_UNPAID_BURST, HTTPD_UNPAID_PER_S, 1);
	h->in_route = xcalloc(conf->n_routes + 1, sizeof(*h->in_route));
	h->htp = evhtp_new(loop_base(l), h);
	if (!h->htp)
		DIE("out of memory for listener %s", conf->name);
	loop_ignore_sigpipe(); /* SSL_shutdown writes without MSG_NOSIGNAL */
	evhtp_set_pre_accept_cb(h->htp, before_accept, h);
	evhtp_set_post_accept_cb(h->htp, after_accept, h);
	timer_init(&h->accept_pause, l, accept_again, h);
	/* The guard sends 100 Continue itself, after it has accepted the head. */
	evhtp_disable_flag(h->htp, EVHTP_FLAG_ENABLE_100_CONT);
	evhtp_set_gencb(h->htp, on_request, h);
	return h;
}

static void close_listeners(struct httpd *h)
{
	while (h->n_listeners > 0)
		evconnlistener_free(h->listeners[--h->n_listeners]);
	h->n_told = 0;
	timer_cancel(&h->accept_pause);
	defer_cancel(&h->next_turn);
	defer_cancel(&h->tell);
}

void httpd_free(struct httpd *h)
{
	if (!h)
		return;
	assert(!h->dispatching); /* never from a handler: libevhtp's parser is on the stack */
	close_listeners(h);
	while (!LIST_EMPTY(&h->peers))
		httpd_peer_close(LIST_FIRST(&h->peers));
	assert(h->n_peers == 0);
	share_free(h->share);
	ratelimit_free(h->answers);
	free(h->in_route);
	timer_fini(&h->accept_pause);
	strbuf_fini(&h->scratch);
	evhtp_free(h->htp); /* drops its reference of the SSL_CTX */
	free(h);
}

/* Nothing is accepted before the loop runs, and --check-config does not run it. */
static void tell_listeners(void *arg)
{
	struct httpd *h = arg;

	for (; h->n_told < h->n_listeners; h->n_told++) {
		int fd = evconnlistener_get_fd(h->listeners[h->n_told]);
		struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
		socklen_t len = sizeof(ss);
		char text[ADDR_TEXT_LEN];

		(void)!getsockname(fd, (struct sockaddr *)&ss, &len);
		addr_format((const struct sockaddr *)&ss, text);
		log_info(NULL, "listening", "server=%s addr=%s port=%u tls=%s", h->conf.name, text,
			addr_port(fd), h->htp->ssl_ctx ? "true" : "false");
	}
}

/* Add a listening socket. fd then belongs to the listener, unless this fails. */
static int take_socket(struct httpd *h, int fd, struct err *err)
{
	if (h->n_listeners == HTTPD_LISTENERS_MAX)
		return err_set(err, ERR_INVALID, "more than %d addresses for one listener",
			HTTPD_LISTENERS_MAX);
	if (evhtp_accept_socket(h->htp, fd, 0) < 0)
		return err_set(err, ERR_BUG, "libevhtp refused the listening socket");
	/* libevhtp has room for one listener only: take it, so that more can be added */
	h->listeners[h->n_listeners++] = h->htp->server;
	evconnlistener_set_error_cb(h->htp->server, on_accept_error);
	h->htp->server = NULL;
	defer_call(&h->tell, h->loop, tell_listeners, h);
	return 0;
}

int httpd_listen(struct httpd *h, const char *addr_text, struct err *err)
{
	struct addr a;
	int fd;

	if (addr_parse(addr_text, &a, err) < 0)
		return -1;
	fd = addr_listen(&a, err);
	if (fd < 0)
		return -1;
	if (take_socket(h, fd, err) < 0) {
		close(fd);
		return -1;
	}
	return 0;
}

/* Verify the descriptor: systemd may pass any kind of socket. It may also lack O_NONBLOCK. */
int httpd_listen_fd(struct httpd *h, int fd, struct err *err)
{
	struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(ss), n = sizeof(int);
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens ||
		getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
		(ss.ss_family != AF_INET && ss.ss_family != AF_INET6 && ss.ss_family != AF_UNIX))
		return err_set(err, ERR_INVALID,
			"descriptor %d is not a listening TCP or local socket", fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set_errno(err, ERR_INVALID, errno, "descriptor %d", fd);
	return take_socket(h, fd, err);
}

unsigned httpd_port(const struct httpd *h)
{
	return h->n_listeners ? addr_port(evconnlistener_get_fd(h->listeners[0])) : 0;
}

/* libevhtp reads ssl_ctx on each accept; open connections hold references of their own. */
void httpd_set_tls(struct httpd *h, struct tls_ctx *tls)
{
	SSL_CTX *old = h->htp->ssl_ctx;
	SSL_CTX *ctx = tls ? tls_ctx_ssl(tls) : NULL;
	struct httpd_peer *p, *next;

	if (ctx)
		SSL_CTX_up_ref(ctx);
	h->htp->ssl_ctx = ctx;
	SSL_CTX_free(old);
	if (!ctx || old)
		return;
	/* Close plain connections: their clients would send secrets in clear text. */
	assert(!h->dispatching); /* it could be the one that is closed */
	for (p = LIST_FIRST(&h->peers); p; p = next) {
		next = LIST_NEXT(p, link);
		if (!p->conn->ssl)
			httpd_peer_close(p);
	}
}

void httpd_set_waiting(struct httpd *h, const char *reason_static)
{
	h->waiting = reason_static;
}

void httpd_set_closed(struct httpd *h, const char *why_static)
{
	h->closed = why_static;
}

void httpd_leave(struct httpd *h)
{
	h->leaving = true;
}

/* Requests in flight are completed; the caller waits until httpd_in_flight() is 0. */
void httpd_drain(struct httpd *h)
{
	struct httpd_peer *p, *next;

	close_listeners(h);
	h->leaving = h->draining = true;
	for (p = LIST_FIRST(&h->peers); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->state == HTTPD_PEER_HEAD && !p->started) /* between requests */
			httpd_peer_close(p);
	}
}

/* A connection counts from the first byte of a request until its reply is written. */
size_t httpd_in_flight(const struct httpd *h)
{
	const struct httpd_peer *p;
	size_t n = 0;

	LIST_FOREACH (p, &h->peers, link)
		n += (p->state == HTTPD_PEER_HEAD && p->started) || p->state == HTTPD_PEER_BODY ||
		     p->state == HTTPD_PEER_BUSY || p->state == HTTPD_PEER_STREAM ||
		     p->state == HTTPD_PEER_FLUSH;
	return n;
}

size_t httpd_connections(const struct httpd *h)
{
	return h->n_peers;
}
