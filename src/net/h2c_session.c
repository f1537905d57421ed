/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 on one connection: nghttp2's callbacks update the state of calls. They run no user code and
 * write nothing. nghttp2 validates frames and messages; the limits are enforced here: on an answer's
 * header, on collected bodies, and on the replies that a server can make us queue.
 */
#include "config.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "h2c_internal.h"

/* Maximum of replies (acknowledgements, resets) that a server can make us queue before the connection
 * is closed. No correct server needs so many in one read. */
#define MAX_REPLIES 1000

/* ---- memory: headers and frames hold tokens ---- */

static void *mem_malloc(size_t size, void *arg)
{
	return xmalloc(size);
}

static void mem_free(void *p, void *arg)
{
	httpc_wipe_free(p);
}

static void *mem_calloc(size_t n, size_t size, void *arg)
{
	return xcalloc(n, size);
}

static void *mem_realloc(void *p, size_t size, void *arg)
{
	return httpc_wipe_realloc(p, size);
}

static nghttp2_mem wiping_mem = {NULL, mem_malloc, mem_free, mem_calloc, mem_realloc};

/* ---- receiving ---- */

/* The call of a stream; NULL for stream 0 and for streams whose call was cancelled. */
static struct h2c_call *call_of(nghttp2_session *session, int32_t stream)
{
	return stream ? nghttp2_session_get_stream_user_data(session, stream) : NULL;
}

/* Parse decimal digits; a larger value saturates at max. */
static bool parse_number(const uint8_t *s, size_t len, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
		if (v > max)
			v = max;
	}
	*out = v;
	return len > 0 && len < 20;
}

static bool is_name(const uint8_t *name, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(name, want, len) == 0;
}

/* Collect the few fields that callers need, and count all of them against the limit. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct h2c_call *k = call_of(session, frame->hd.stream_id);
	uint64_t number;

	if (!k || frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	k->header_len += name_len + len + 32;
	if (k->header_len > H2C_HEADER_MAX) {
		h2c_call_over(k, ERR_INVALID, "the answer's header is larger than 64 KiB");
		return 0;
	}
	if (k->head) /* trailers are ignored */
		return 0;
	if (is_name(name, name_len, ":status")) {
		/* A new :status starts a new header: forget the fields of an interim answer. */
		k->status = parse_number(value, len, 1000, &number) ? (int)number : 1000;
		free(steal_ptr(&k->content_type));
		k->retry_after_ms = 0;
		k->length = 0;
	} else if (is_name(name, name_len, "content-type") && len <= HTTPC_HEADER_MAX) {
		free(k->content_type);
		k->content_type = xstrndup((const char *)value, len);
	} else if (is_name(name, name_len, "retry-after")) {
		if (parse_number(value, len, HTTPC_RETRY_MAX_MS / 1000, &number))
			k->retry_after_ms = (uint32_t)number * 1000;
	} else if (is_name(name, name_len, "content-length")) {
		if (parse_number(value, len, SIZE_MAX / 2, &number))
			k->length = (size_t)number;
	}
	return 0;
}

/* Our SETTINGS forbid push. nghttp2 alone would refuse each PUSH_PROMISE and keep the connection;
 * it is closed instead. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
	if (hd->type == NGHTTP2_PUSH_PROMISE)
		(void)nghttp2_session_terminate_session(session, NGHTTP2_PROTOCOL_ERROR);
	return 0;
}

/* The answer is complete. If the request is not, reset the stream: the server does not need the
 * rest. */
static void call_complete(struct h2c_call *k)
{
	if (!k->head) {
		h2c_call_over(k, ERR_INVALID, "no HTTP answer");
		return;
	}
	if (k->sent == k->body_len)
		h2c_call_leave(k); /* nghttp2 closes the stream without a reset */
	h2c_call_over(k, ERR_NONE, NULL);
}

/* A header is complete. Interim answers (1xx) are skipped; after the final one the request is never
 * resent. */
static void on_headers(struct h2c_call *k)
{
	if (k->status >= 100 && k->status <= 199) {
		k->status = 0; /* an interim answer; the final one follows */
		return;
	}
	if (k->status < 200 || k->status > 599) {
		k->status = 0;
		h2c_call_over(k, ERR_INVALID, "no HTTP answer");
		return;
	}
	k->head = true;
	h2c_call_forget(k);
}

/* Frames that change the state of the connection or complete a call. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2c_call *k = call_of(session, frame->hd.stream_id);
	struct h2c_conn *n = arg;

	switch (frame->hd.type) {
	case NGHTTP2_SETTINGS:
		/* The server's first SETTINGS, which tell how many streams it allows. */
		if (!(frame->hd.flags & NGHTTP2_FLAG_ACK) && n->state == H2C_HANDSHAKE)
			h2c_conn_set_state(n, H2C_OPEN, NULL);
		break;
	case NGHTTP2_GOAWAY:
		if (n->state == H2C_OPEN)
			h2c_conn_set_state(
				n, H2C_DRAINING, nghttp2_http2_strerror(frame->goaway.error_code));
		break;
	case NGHTTP2_HEADERS:
		if (k && !k->head)
			on_headers(k);
		if (k && !k->over && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			call_complete(k);
		break;
	case NGHTTP2_DATA:
		if (k && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
			call_complete(k);
		break;
	default:
		break;
	}
	return 0;
}

/* Append to a body that is delivered as a whole, up to its limit. */
static void collect(struct h2c_call *k, const uint8_t *data, size_t len)
{
	size_t max = k->on_data ? HTTPC_RESULT_MAX : k->max_body;
	char text[64];

	if (len <= max - k->got.len) {
		body_add(&k->got, data, len, k->length <= max ? k->length : 0);
		return;
	}
	if (k->on_data) { /* an error page: its status and first bytes are enough */
		body_add(&k->got, data, max - k->got.len, 0);
		h2c_call_over(k, ERR_NONE, NULL);
		return;
	}
	snprintf(text, sizeof(text), "the answer is larger than %zu bytes", max);
	h2c_call_over(k, ERR_INVALID, text);
}

/* A chunk of a body. nghttp2 returns the flow-control window itself, so a slow on_data does not
 * stop the server; the delivery in the same turn bounds memory. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t len, void *arg)
{
	struct h2c_call *k = call_of(session, stream);

	if (!k || len == 0)
		return 0;
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
	if (!k->on_data || k->status < 200 || k->status > 299) {
		collect(k, data, len);
		return 0;
	}
	body_add(&k->got, data, len, len > 4096 ? H2C_RECORD_LEN : 0);
	h2c_call_ready(k);
	return 0;
}

/* The stream was closed, by its end or a reset. A call that is still attached has no complete
 * answer. */
static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct h2c_call *k = call_of(session, stream);
	struct h2c_conn *n = arg;
	char text[80];

	n->n_streams--;
	if (!k)
		return 0;
	h2c_call_leave(k); /* the stream is closed: no reset */
	if (code == NGHTTP2_REFUSED_STREAM && !k->status && !k->head) {
		h2c_call_retry(k);
		return 0;
	}
	k->no_h2 = code == NGHTTP2_HTTP_1_1_REQUIRED && !k->head;
	snprintf(text, sizeof(text), "the answer ended early: %s", nghttp2_http2_strerror(code));
	h2c_call_over(k, ERR_TRANSIENT, text);
	return 0;
}

/* ---- sending ---- */

/* Provide the next part of a request's body, which is read from the caller's memory. */
static ssize_t on_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2c_call *k = call_of(session, stream);
	size_t len;

	if (!k) /* cancelled: its reset is queued */
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	len = k->body_len - k->sent < max ? k->body_len - k->sent : max;
	memcpy(out, (const char *)k->body + k->sent, len);
	k->sent += len;
	if (k->sent == k->body_len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* How many streams the server allows. Before its SETTINGS, nghttp2 assumes its default. */
static uint32_t places(const struct h2c_conn *n)
{
	return nghttp2_session_get_remote_settings(
		n->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

/* Requests that yield and others have separate limits, so that neither fills the connection for the
 * other. */
bool h2c_session_has_place(const struct h2c_conn *n, const struct h2c_call *k)
{
	size_t beside = k->yields ? n->n_yielding : n->n_calls - n->n_long - n->n_yielding;

	return n->state == H2C_OPEN && n->n_streams < places(n) &&
	       (k->long_lived || beside < HTTPC_PER_ORIGIN) && !h2c_site_holds(n->site, k);
}

bool h2c_session_only_long(const struct h2c_conn *n)
{
	return n->state == H2C_OPEN && places(n) > 0 && n->n_long >= places(n);
}

/* nghttp2 copies the header fields, so k->nv is only needed again for a resend. */
void h2c_session_send(struct h2c_conn *n, struct h2c_call *k)
{
	nghttp2_data_provider body = {.read_callback = on_body};

	h2c_call_leave(k);
	k->stream = nghttp2_submit_request(
		n->session, NULL, k->nv, k->n_nv, k->body_len ? &body : NULL, k);
	if (k->stream < 0)
		DIE("nghttp2_submit_request: %s", nghttp2_strerror(k->stream));
	k->conn = n;
	n->used = true;
	TAILQ_INSERT_TAIL(&n->calls, k, link);
	n->n_calls++;
	n->n_streams++;
	n->n_long += k->long_lived;
	n->n_yielding += k->yields;
	n->site->n_yielding += k->yields;
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
	if (!nghttp2_session_check_request_allowed(n->session))
		h2c_conn_set_state(n, H2C_DRAINING, "out of stream numbers");
}

/* Pass received bytes to nghttp2, whose callbacks run in here, and check the number of queued
 * replies. */
int h2c_session_feed(struct h2c_conn *n, const uint8_t *data, size_t len, struct err *err)
{
	ssize_t rv = nghttp2_session_mem_recv(n->session, data, len);

	if (rv < 0)
		return err_set(err, ERR_TRANSIENT, "the server violates HTTP/2: %s",
			nghttp2_strerror((int)rv));
	if (nghttp2_session_get_outbound_queue_size(n->session) > n->n_streams + MAX_REPLIES)
		return err_set(err, ERR_TRANSIENT,
			"the server violates HTTP/2: it requires too many replies");
	return 0;
}

/* ---- the session ---- */

/* no_closed_streams: nghttp2 would otherwise remember closed streams for priorities, which are not
 * used. */
void h2c_session_setup(struct h2c *c)
{
	if (nghttp2_session_callbacks_new(&c->callbacks) || nghttp2_option_new(&c->option))
		DIE("out of memory: nghttp2");
	nghttp2_session_callbacks_set_on_begin_frame_callback(c->callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_header_callback(c->callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c->callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c->callbacks, on_close);
	nghttp2_option_set_max_outbound_ack(c->option, MAX_REPLIES);
	nghttp2_option_set_no_closed_streams(c->option, 1);
}

/* Queue the client preface with our SETTINGS. Large windows: flow control would only slow down
 * lists; memory is bounded by max_body. */
void h2c_session_start(struct h2c_conn *n)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2C_STREAM_WIN},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2C_HEADER_MAX},
	};
	struct h2c *c = n->site->c;

	if (nghttp2_session_client_new3(&n->session, c->callbacks, n, c->option, &wiping_mem) ||
		nghttp2_submit_settings(
			n->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) ||
		nghttp2_session_set_local_window_size(
			n->session, NGHTTP2_FLAG_NONE, 0, H2C_CONN_WIN))
		DIE("out of memory: nghttp2_session_client_new3");
	h2c_site_wake(n->site);
}
