/* SPDX-License-Identifier: MIT */
/*
 * The framing guard between the bufferevent and libevhtp. It collects bytes, checks a head as a whole,
 * waits for the body, and only then makes libevhtp start a request. libevhtp's parser only ever reads
 * a constant line: it corrupts split, pipelined or unusual requests, so no byte of a peer reaches it.
 * The guard limits what it buffers, and what it refuses gets a complete reply. It does not wait for a
 * large body if the head is sufficient to refuse the request.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <evhtp/evhtp.h>

#include "tec/base/log.h"
#include "tec/base/secret.h"

#include "net_internal.h"

static const char canonical[] = "GET / HTTP/1.0\r\n\r\n";
static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n";

/* Remove the first n bytes of the input, wiping them if the listener handles keys. */
void httpd_guard_drop(struct httpd_peer *p, size_t n)
{
	if (p->httpd->conf.wipe && n > 0)
		secret_wipe(p->in.data, n);
	strbuf_drop(&p->in, n);
	if (p->in.len == 0)
		strbuf_fini(&p->in);
}

void httpd_guard_go_on(struct httpd_peer *p)
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
		httpd_guard_go_on(p);
	} else if (!p->stopped) {
		p->stopped = true;
		bufferevent_disable(p->bev, EV_READ);
	}
}

/* Send a complete error response and linger. The rest of the input is discarded: there is no
 * reliable boundary to the next request. */
void httpd_guard_refuse(struct httpd_peer *p, int status)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	httpd_refusal(p->httpd, status, &out);
	httpd_body_end(p);
	httpd_guard_drop(p, p->in.len);
	httpd_peer_set_state(p, HTTPD_PEER_LINGER);
	timer_set(&p->timer, HTTPD_LINGER_MS);
	/* Read on and discard: closing with unread bytes would reset the connection, and the reply could
	 * be lost. */
	httpd_guard_go_on(p);
	httpd_peer_write(p, out.data, out.len);
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
		httpd_guard_refuse(
			p, 400); /* another protocol, such as TLS: there will be no end of a head */
		return false;
	}
	head_len = find_head_end(p);
	if (head_len == 0) {
		if (p->in.len > limits->head)
			httpd_guard_refuse(p, memchr(p->in.data, '\n', p->in.len) ? 431 : 414);
		return false;
	}
	status = httphead_check(p->in.data, head_len, limits, &p->head);
	if (status != 0) {
		httpd_guard_refuse(p, status);
		return false;
	}
	p->chunks = (struct chunks){.state = CHUNKS_SIZE};
	httpd_peer_set_state(p, HTTPD_PEER_BODY);
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
	p->req->keep_alive = false; /* the unread body must not be taken for the next request */
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
		httpd_guard_refuse(p, status);
}

static bool has_body(const struct httpd_peer *p)
{
	return p->head.chunked ? p->chunks.state == CHUNKS_DONE
			       : p->in.len >= p->head.head_len + p->head.body_len;
}

static size_t body_so_far(const struct httpd_peer *p)
{
	return p->in.len - p->head.head_len;
}

/* libevhtp's callback for a complete request, called inside dispatch(). */
static void on_request(evhtp_request_t *ereq, void *arg)
{
	struct httpd *h = arg;
	struct httpd_peer *p = h->dispatching;

	assert(p && !p->ereq && p->req);
	p->ereq = ereq;
	httpd_serve(p->req);
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
	httpd_peer_set_state(p, HTTPD_PEER_BUSY);
	if (!p->req)
		p->req = httpd_req_new(p, p->in.data, need);
	httpd_guard_drop(p, need);
	httpd_body_read(p);
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
void httpd_guard_pump(struct httpd_peer *p)
{
	if (p->state == HTTPD_PEER_HEAD && pump_head(p) && !wants_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state == HTTPD_PEER_BODY && p->head.chunked)
		take_chunks(p);
	if (p->state == HTTPD_PEER_BODY && !httpd_body_grow(p, body_so_far(p))) {
		httpd_guard_refuse(p, 503);
		return;
	}
	if (p->state == HTTPD_PEER_BODY && has_body(p)) {
		dispatch(p);
		return;
	}
	if (p->state != HTTPD_PEER_HEAD && p->state != HTTPD_PEER_BODY)
		return;
	httpd_guard_go_on(p);
	if (p->state == HTTPD_PEER_BODY && p->head.expect_continue && !p->continued) {
		p->continued = true;
		httpd_peer_write(p, continue_line, sizeof(continue_line) - 1);
	}
}

/* In LINGER input is discarded; while a request is served it is only buffered. */
void httpd_guard_read(struct bufferevent *bev, void *arg)
{
	struct httpd_peer *p = arg;

	if (p->state == HTTPD_PEER_LINGER) {
		struct evbuffer *input = bufferevent_get_input(bev);

		evbuffer_drain(input, evbuffer_get_length(input));
		return;
	}
	absorb(p);
	if (p->state == HTTPD_PEER_HEAD || p->state == HTTPD_PEER_BODY)
		httpd_guard_pump(p);
	else
		bound_input(p);
}

/* The guard sends 100 Continue itself, after it has accepted the head. */
void httpd_guard_init(struct httpd *h)
{
	evhtp_disable_flag(h->htp, EVHTP_FLAG_ENABLE_100_CONT);
	evhtp_set_gencb(h->htp, on_request, h);
}
