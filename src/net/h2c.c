/* SPDX-License-Identifier: MIT */
/*
 * HTTP/2 over sockets and TLS of our own. A call is in the queue of its site, on one connection, or
 * over. A call that is over or has data is also in a list of calls to deliver. The op owns the call. A
 * connection belongs to its site; a site without calls and connections is freed.
 *
 * nghttp2's callbacks run no user code and write nothing: what arrives for a call is stored in it until
 * the read is complete, and only deliver() runs user code. So user code may start, cancel and free
 * anything. nghttp2 is given no more requests than the server allows streams; the others wait in the
 * queue of their site, where they can be cancelled or sent on another connection.
 *
 * nghttp2 validates frames and messages; the limits are enforced here: on an answer's header, on
 * collected bodies, and on the replies that a server can make us queue. Everything that a turn of the
 * loop sends is one write, made by the site's deferred work.
 *
 * Each wakeup is one recv() whose data is decrypted at once, and each write is one SSL_write() and one
 * send(). OpenSSL reads and writes memory through our own BIO, so it never waits. What the socket does
 * not accept is buffered, and nothing more is encrypted until it is sent.
 *
 * Path of one request: h2c_start() -> queue of its site -> on_work() -> session_send() -> conn_write().
 * Path of its answer: on_readable() -> nghttp2's callbacks -> lists of ready calls -> deliver() ->
 * on_data, done.
 *
 *   CONNECTING -> HANDSHAKE (TLS, then SETTINGS) -> OPEN -> DRAINING (GOAWAY, or out of stream ids)
 *
 * From every state conn_lose() ends the connection with an error.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/signal.h"

#include "h2c_internal.h"

/* Maximum of replies (acknowledgements, resets) that a server can make us queue before the connection
 * is closed. No correct server needs so many in one read. */
#define MAX_REPLIES 1000

/* ---- sites ---- */

static void on_work(void *arg);

/* Defer the work to the next turn: all requests of this turn then share one write. */
static void site_wake(struct h2c_site *s)
{
	defer_call(&s->work, s->c->loop, on_work, s);
}

/* Forget that the server lacks h2, as it may have been upgraded. */
static void on_probe(void *arg)
{
	struct h2c_site *s = arg;

	s->no_h2 = false;
	site_wake(s);
}

/* Sites are few (API server, broker), so a list suffices. tls is compared by pointer, because two
 * objects never share a connection. */
static struct h2c_site *site_get(struct h2c *c, const char *origin, const char *connect_to,
	const char *proxy, struct httpc_tls *tls)
{
	const char *host = strstr(origin, "://") + 3;
	struct h2c_site *s;

	TAILQ_FOREACH (s, &c->sites, link)
		if (s->tls == tls && str_eq(s->origin, origin) &&
			str_eq(s->connect_to, connect_to) && str_eq(s->proxy, proxy))
			return s;
	s = xcalloc(1, sizeof(*s));
	s->c = c;
	s->origin = xstrdup(origin);
	s->host = *host == '[' ? xstrndup(host + 1, strcspn(host + 1, "]"))
			       : xstrndup(host, strcspn(host, ":"));
	s->connect_to = xstrdup(connect_to);
	s->proxy = xstrdup(proxy);
	s->tls = tls ? httpc_tls_ref(tls) : NULL;
	TAILQ_INIT(&s->queue);
	TAILQ_INIT(&s->yielding);
	TAILQ_INIT(&s->conns);
	timer_init(&s->probe, c->loop, on_probe, s);
	TAILQ_INSERT_TAIL(&c->sites, s, link);
	return s;
}

/* The site holds no calls and connections: nothing can refer to it. */
static void site_free(struct h2c_site *s)
{
	assert(s->n_calls == 0 && s->n_conns == 0);
	TAILQ_REMOVE(&s->c->sites, s, link);
	timer_fini(&s->probe);
	defer_cancel(&s->work);
	httpc_tls_unref(s->tls);
	free(s->origin);
	free(s->host);
	free(s->connect_to);
	if (s->proxy)
		secret_wipe(s->proxy, strlen(s->proxy));
	free(s->proxy);
	free(s);
}

/* ---- requests ---- */

/* Add a header field and its text to k->text, which was allocated large enough. HTTP/2 needs lower-case
 * names; nghttp2 converts them. */
static void put_nv(struct h2c_call *k, char **at, const char *name, const char *prefix,
	const char *value, size_t len)
{
	nghttp2_nv *nv = &k->nv[k->n_nv++];
	size_t prefix_len = strlen(prefix);

	nv->namelen = strlen(name);
	nv->name = memcpy(*at, name, nv->namelen + 1);
	*at += nv->namelen + 1;
	nv->valuelen = prefix_len + len;
	nv->value = memcpy(*at, prefix, prefix_len);
	memcpy(*at + prefix_len, value, len);
	(*at)[nv->valuelen] = '\0';
	*at += nv->valuelen + 1;
}

/* Return the length of the URL's origin, or 0 if the URL is invalid. User information ("user@host")
 * is refused. */
static size_t check_url(const struct httpc_request *req)
{
	const char *scheme = req->tls ? "https://" : "http://";
	size_t skip = strlen(scheme), len;

	if (!str_starts(req->url, scheme) || !httpc_printable(req->url) || strchr(req->url, ' '))
		return 0;
	len = strcspn(req->url + skip, "/?#");
	if (!len || memchr(req->url + skip, '@', len) || req->url[skip] == ':' ||
		(req->url[skip] == '[' && !memchr(req->url + skip, ']', len)))
		return 0;
	return skip + len;
}

/* Build the header fields in one allocation, which is wiped as a whole: it holds the token.
 * Pseudo-header fields come first (RFC 9113 section 8.3). */
static void copy_request(struct h2c_call *k, const struct httpc_request *req, size_t origin_len)
{
	const char *authority = strstr(req->url, "://") + 3, *path = req->url + origin_len;
	size_t path_len = strcspn(path, "#"), len;
	char number[32], *at;

	snprintf(number, sizeof(number), "%zu", req->body_len);
	/* Every string with its NUL; the fixed names and prefixes are well below 256 bytes. */
	len = 256 + strlen(req->method) + strlen(req->url) + sizeof(number);
	for (size_t i = 0; i < req->n_headers; i++)
		len += strlen(req->headers[i].name) + strlen(req->headers[i].value) + 2;
	len += req->bearer ? strlen(req->bearer) : 0;
	at = k->text = xmalloc(len);
	k->text_len = len;
	k->nv = xcalloc(req->n_headers + 6, sizeof(*k->nv));
	snprintf(k->method, sizeof(k->method), "%s", req->method);
	put_nv(k, &at, ":method", "", req->method, strlen(req->method));
	put_nv(k, &at, ":scheme", "", req->tls ? "https" : "http", req->tls ? 5 : 4);
	put_nv(k, &at, ":authority", "", authority, (size_t)(path - authority));
	put_nv(k, &at, ":path", *path == '/' ? "" : "/", path, path_len);
	for (size_t i = 0; i < req->n_headers; i++)
		put_nv(k, &at, req->headers[i].name, "", req->headers[i].value,
			strlen(req->headers[i].value));
	if (req->bearer)
		put_nv(k, &at, "authorization", "Bearer ", req->bearer, strlen(req->bearer));
	if (req->body)
		put_nv(k, &at, "content-length", "", number, strlen(number));
	assert(at <= k->text + len);
	k->body = req->body;
	k->body_len = req->body_len;
	k->max_body = req->max_body ? req->max_body : HTTPC_RESULT_MAX;
	k->deadline_ms = req->deadline_ms;
	k->silence_ms = req->silence_ms;
	k->long_lived = req->stream;
	k->yields = req->yields && !req->stream;
}

/* ---- calls ---- */

static void deliver(void *arg);

/* The site's queue that the call belongs to. */
static struct h2c_calls *queue_of(const struct h2c_call *k)
{
	return k->yields ? &k->site->yielding : &k->site->queue;
}

static void call_queue(struct h2c_call *k)
{
	k->queued = true;
	TAILQ_INSERT_TAIL(queue_of(k), k, link);
	site_wake(k->site);
}

/* Detach the call from its queue or stream. The stream itself goes on in nghttp2 until it is closed
 * or reset. */
static void call_leave(struct h2c_call *k)
{
	struct h2c_conn *n = k->conn;

	if (k->queued)
		TAILQ_REMOVE(queue_of(k), k, link);
	k->queued = false;
	if (!n)
		return;
	(void)nghttp2_session_set_stream_user_data(n->session, k->stream, NULL);
	TAILQ_REMOVE(&n->calls, k, link);
	k->conn = NULL;
	k->stream = 0;
	n->n_calls--;
	n->n_long -= k->long_lived;
	n->n_yielding -= k->yields;
	k->site->n_yielding -= k->yields;
	n->idle_ms = clock_boot_ms();
	site_wake(k->site); /* a place is free, or the connection may close */
}

/* Tell the server that the answer is no longer wanted (RST_STREAM with CANCEL), and leave the
 * connection. */
static void call_reset(struct h2c_call *k)
{
	if (k->conn && nghttp2_submit_rst_stream(
			       k->conn->session, NGHTTP2_FLAG_NONE, k->stream, NGHTTP2_CANCEL) != 0)
		DIE("out of memory: nghttp2_submit_rst_stream");
	call_leave(k);
}

/* Only data of long-lived streams waits for all answers. */
static struct h2c_calls *delivery_of(const struct h2c_call *k)
{
	return k->on_data && k->long_lived ? &k->c->streams : &k->c->answers;
}

/* Queue its delivery, in the order that h2c.h promises. */
static void call_ready(struct h2c_call *k)
{
	if (k->ready)
		return;
	k->ready = true;
	TAILQ_INSERT_TAIL(delivery_of(k), k, delivery);
	defer_call(&k->c->deliver, k->c->loop, deliver, k->c);
}

static void call_unready(struct h2c_call *k)
{
	if (!k->ready)
		return;
	TAILQ_REMOVE(delivery_of(k), k, delivery);
	k->ready = false;
}

/* Set the result; done follows from deliver(). A second end, for example a reset after the
 * answer, is ignored. */
static void call_over(struct h2c_call *k, enum err_kind kind, const char *text)
{
	if (k->over)
		return;
	k->over = true;
	if (text)
		err_set(&k->err, kind, "%s %s: %s", k->method, k->site->origin, text);
	call_reset(k);
	timer_cancel(&k->deadline);
	timer_cancel(&k->silence);
	call_ready(k);
}

/* Say what the request was waiting for: it tells a full queue from a dead server. */
static void on_deadline(void *arg)
{
	struct h2c_call *k = arg;
	const char *why = k->queued ? ", waiting for a connection" : "";
	struct h2c_conn *n;
	char text[80];

	if (k->queued)
		TAILQ_FOREACH (n, &k->site->conns, link)
			if (n->state == H2C_OPEN)
				why = ", waiting for earlier requests";
	snprintf(text, sizeof(text), "no answer within %u ms%s", k->deadline_ms, why);
	call_over(k, ERR_TRANSIENT, text);
}

static void on_silence(void *arg)
{
	struct h2c_call *k = arg;
	char text[40];

	snprintf(text, sizeof(text), "silent for %u ms", k->silence_ms);
	call_over(k, ERR_TRANSIENT, text);
}

/* Remove every reference to k in the h2c. */
static void call_detach(struct h2c_call *k)
{
	call_reset(k);
	call_unready(k);
	timer_fini(&k->deadline);
	timer_fini(&k->silence);
	if (k->site && !k->yields && !k->long_lived && --k->site->n_first == 0)
		k->site->first_ms = clock_boot_ms();
	if (k->site && --k->site->n_calls == 0)
		site_wake(k->site);
	k->site = NULL;
	k->c->n_calls--;
}

/* Called when an answer begins: the token need not stay in memory for the life of a watch. */
static void call_forget(struct h2c_call *k)
{
	if (k->text)
		secret_wipe(k->text, k->text_len);
	free(steal_ptr(&k->text));
	free(steal_ptr(&k->nv));
}

static void call_free(struct h2c_call *k)
{
	if (k->freed)
		*k->freed = true;
	call_forget(k);
	free(k->content_type);
	body_fini(&k->got);
	free(k);
}

/* The op was cancelled; done does not run. */
static void call_abort(struct op *op)
{
	struct h2c_call *k = (struct h2c_call *)op;

	call_detach(k);
	call_free(k);
}

/* Detach before done, which may free the h2c; k itself is freed last, as the answer borrows its
 * memory. */
static void call_end(struct h2c_call *k)
{
	struct httpc_answer a = {.status = k->no_h2 ? H2C_NO_H2 : k->status,
		.retry_after_ms = k->retry_after_ms,
		.body = k->got.data ? k->got.data : "",
		.body_len = k->got.len,
		.content_type = k->content_type};

	call_detach(k);
	op_finish(&k->op);
	k->done(k->arg, &k->err, &a); /* may free the h2c */
	call_free(k);
}

/* Give the data so far to on_data, which may cancel the call; `freed` detects that. Data of an
 * error status stays collected for done. */
static void call_deliver(struct h2c_call *k)
{
	struct body data = k->got;
	struct err err = ERR_INIT;
	bool freed = false;
	int rc = 0;

	call_unready(k);
	if (data.len && k->status >= 200 && k->status <= 299) {
		k->got = (struct body)BODY_INIT;
		k->freed = &freed;
		rc = k->on_data(k->arg, data.data, data.len, &err);
		body_fini(&data);
		if (freed)
			return;
		k->freed = NULL;
	}
	if (rc != 0) {
		call_over(k, ERR_NONE, NULL);
		k->err = err;
		if (!err_is_set(&k->err))
			err_set(&k->err, ERR_BUG, "on_data failed without an error");
	}
	if (k->over)
		call_end(k);
}

/* A call of a site without h2 gets H2C_NO_H2, so that its caller uses httpc. */
static void site_fail(struct h2c_site *s, const struct err *err)
{
	struct h2c_call *k;

	while ((k = TAILQ_FIRST(&s->queue)) != NULL || (k = TAILQ_FIRST(&s->yielding)) != NULL) {
		k->no_h2 = s->no_h2;
		call_over(k, err->kind, err->text);
	}
}

/* ---- connections ---- */

static const char *const state_names[] = {"connecting", "handshake", "open", "draining"};

/* Advance the state; it never goes back. Opening is logged as info, other changes only for
 * debugging. */
static void conn_set_state(struct h2c_conn *n, enum h2c_conn_state state, const char *reason)
{
	assert(state > n->state);
	log_at(n->state < H2C_OPEN && state == H2C_OPEN ? LOG_INFO : LOG_DEBUG, NULL,
		state == H2C_OPEN ? "HTTP/2 connection opened" : "HTTP/2 connection changed",
		"server=%s from=%s to=%s reason=%s", log_esc(n->site->origin),
		state_names[n->state], state_names[state], log_esc(reason));
	n->state = state;
	if (state == H2C_OPEN)
		timer_set(&n->timer, H2C_SILENCE_MS);
	site_wake(n->site);
}

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
		call_over(k, ERR_INVALID, "the answer's header is larger than 64 KiB");
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
		call_over(k, ERR_INVALID, "no HTTP answer");
		return;
	}
	if (k->sent == k->body_len)
		call_leave(k); /* nghttp2 closes the stream without a reset */
	call_over(k, ERR_NONE, NULL);
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
			conn_set_state(n, H2C_OPEN, NULL);
		break;
	case NGHTTP2_GOAWAY:
		if (n->state == H2C_OPEN)
			conn_set_state(
				n, H2C_DRAINING, nghttp2_http2_strerror(frame->goaway.error_code));
		break;
	case NGHTTP2_HEADERS:
		if (k && !k->head && k->status >= 100 && k->status <= 199) {
			k->status = 0; /* an interim answer; the final one follows */
		} else if (k && !k->head && (k->status < 200 || k->status > 599)) {
			k->status = 0;
			call_over(k, ERR_INVALID, "no HTTP answer");
		} else if (k && !k->head) {
			k->head = true;
			call_forget(k); /* the request is never resent */
		}
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

/* A chunk of a body. nghttp2 returns the flow-control window itself, so a slow on_data does not
 * stop the server; the delivery in the same turn bounds memory. */
static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t len, void *arg)
{
	struct h2c_call *k = call_of(session, stream);
	char text[64];
	size_t max;

	if (!k || len == 0)
		return 0;
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
	if (k->on_data && k->status >= 200 && k->status <= 299) {
		body_add(&k->got, data, len, len > 4096 ? H2C_RECORD_LEN : 0);
		call_ready(k);
		return 0;
	}
	/* A body that is delivered as a whole, up to its limit. */
	max = k->on_data ? HTTPC_RESULT_MAX : k->max_body;
	if (len <= max - k->got.len) {
		body_add(&k->got, data, len, k->length <= max ? k->length : 0);
	} else if (k->on_data) { /* an error page: its status and first bytes are enough */
		body_add(&k->got, data, max - k->got.len, 0);
		call_over(k, ERR_NONE, NULL);
	} else {
		snprintf(text, sizeof(text), "the answer is larger than %zu bytes", max);
		call_over(k, ERR_INVALID, text);
	}
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
	call_leave(k); /* the stream is closed: no reset */
	if (code == NGHTTP2_REFUSED_STREAM && !k->status && !k->head) {
		/* The server guarantees that it did not process the request (RFC 9113 section 8.7),
		 * so resending is safe for every method. */
		if (++k->tries >= H2C_TRIES) {
			call_over(k, ERR_TRANSIENT, "the server refused the request three times");
			return 0;
		}
		timer_cancel(&k->silence);
		k->sent = 0;
		k->header_len = 0;
		call_queue(k);
		return 0;
	}
	k->no_h2 = code == NGHTTP2_HTTP_1_1_REQUIRED && !k->head;
	snprintf(text, sizeof(text), "the answer ended early: %s", nghttp2_http2_strerror(code));
	call_over(k, ERR_TRANSIENT, text);
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

/* nghttp2 copies the header fields, so k->nv is only needed again for a resend. */
static void session_send(struct h2c_conn *n, struct h2c_call *k)
{
	nghttp2_data_provider body = {.read_callback = on_body};

	call_leave(k);
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
		conn_set_state(n, H2C_DRAINING, "out of stream numbers");
}

/* Pass received bytes to nghttp2, whose callbacks run in here, and check the number of queued
 * replies. */
static int session_feed(struct h2c_conn *n, const uint8_t *data, size_t len, struct err *err)
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

/* ---- sessions ---- */

/* Queue the client preface with our SETTINGS. Large windows: flow control would only slow down
 * lists; memory is bounded by max_body. */
static void session_start(struct h2c_conn *n)
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
	site_wake(n->site);
}

/* ---- the wire: bytes and TLS ---- */

/* Empty OpenSSL's error queue before a call whose result is judged by it. Peeking first is cheaper,
 * as it is almost always empty. */
static void clear_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

static void on_writable(int fd, bool readable, bool writable, void *arg);

/* Send bytes at once if nothing is buffered; buffer what the socket does not accept and watch for
 * writability. */
static void wire_send(struct h2c_conn *n, const void *data, size_t len)
{
	struct h2c_wire *w = &n->wire;
	ssize_t sent = w->out.len ? 0 : send(w->fd, data, len, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		w->unwritable = true;
	if (w->unwritable || sent == (ssize_t)len)
		return;
	sent = sent < 0 ? 0 : sent;
	strbuf_add(&w->out, (const char *)data + sent, len - (size_t)sent);
	if (!w->writes)
		w->writes = loop_fd_new(n->site->c->loop, w->fd, false, true, on_writable, n);
}

/* Send buffered bytes. After a failed send() the rest is dropped: recv() will return the reason,
 * perhaps after answers. */
static void on_writable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_conn *n = arg;
	struct h2c_wire *w = &n->wire;
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
	site_wake(n->site); /* more can be encrypted */
}

/* Give OpenSSL the bytes of the last recv(); "retry" means that more must arrive. */
static int bio_read(BIO *bio, char *out, int len)
{
	struct h2c_wire *w = &((struct h2c_conn *)BIO_get_data(bio))->wire;
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
	struct h2c_conn *n = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (n->wire.out.len > H2C_WIRE_MAX) /* the server provokes replies but does not read them */
		return -1;
	wire_send(n, data, (size_t)len);
	return len;
}

/* OpenSSL requires BIO_flush() to succeed. */
static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	return cmd == BIO_CTRL_FLUSH;
}

/* Prepare the TLS client: name to verify, SNI and ALPN. http/1.1 is offered too, so that a server
 * without h2 completes the handshake and is recognised. */
static void tls_begin(struct h2c_conn *n)
{
	static const unsigned char alpn[] = "\x02h2\x08http/1.1";
	const struct h2c_site *s = n->site;
	const char *name = s->tls->server_name ? s->tls->server_name : s->host;
	struct h2c_wire *w = &n->wire;
	SSL_CTX *ctx = httpc_tls_ctx(s->tls);
	BIO *bio = BIO_new(s->c->bio);
	uint8_t addr[sizeof(struct in6_addr)];
	bool ok;

	w->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	if (!w->ssl || !bio)
		DIE("out of memory: SSL_new");
	BIO_set_data(bio, n);
	BIO_set_init(bio, 1);
	SSL_set_bio(w->ssl, bio, bio);
	SSL_set_read_ahead(w->ssl, 1);
	SSL_set_connect_state(w->ssl);
	/* An IP address is verified against the certificate's IP addresses and is never sent as SNI
	 * (RFC 6066 section 3). */
	if (inet_pton(AF_INET, name, addr) == 1 || inet_pton(AF_INET6, name, addr) == 1)
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
static int tls_check(const struct h2c_wire *w, int rc, struct err *err)
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
		return err_set(err, ERR_DENIED,
			"the server's certificate is not accepted: %s; next step: compare its address and its CA with those of the kubeconfig",
			X509_verify_cert_error_string(verdict));
	return err_set(err, kind, "TLS: %s", reason ? reason : "protocol error");
}

/* Continue the handshake; when it is complete, check that the server selected h2. */
static int handshake(struct h2c_conn *n, struct err *err)
{
	struct h2c_site *s = n->site;
	const unsigned char *proto = NULL;
	unsigned len = 0;
	int rc;

	clear_errors();
	rc = SSL_do_handshake(n->wire.ssl);
	if (rc != 1)
		return tls_check(&n->wire, rc, err);
	SSL_get0_alpn_selected(n->wire.ssl, &proto, &len);
	n->wire.open = true;
	if (len == 2 && memcmp(proto, "h2", 2) == 0) {
		session_start(n);
		return 0;
	}
	log_info(NULL, "the server does not support HTTP/2, using HTTP/1.1", "server=%s",
		log_esc(s->origin));
	s->no_h2 = true;
	timer_set(&s->probe, H2C_PROBE_MS);
	return err_set(err, ERR_TRANSIENT, "the server does not support HTTP/2");
}

/* ---- the life of a connection ---- */

/* Free a connection without calls. */
static void conn_free(struct h2c_conn *n)
{
	struct h2c_site *s = n->site;
	struct h2c_wire *w = &n->wire;

	assert(n->n_calls == 0);
	op_scope_cancel(&n->dial);
	timer_fini(&n->timer);
	nghttp2_session_del(n->session);
	if (w->ssl) {
		if (n->state >= H2C_OPEN && !w->out.len)
			(void)SSL_shutdown(w->ssl); /* sends close_notify, does not wait */
		SSL_free(w->ssl);
		ERR_clear_error();
	}
	loop_fd_free(w->reads);
	loop_fd_free(w->writes);
	if (w->fd >= 0)
		close(w->fd);
	strbuf_fini(&w->out);
	TAILQ_REMOVE(&s->conns, n, link);
	s->n_conns--;
	site_wake(s);
	free(n);
}

/* `used` tells a connection that broke from one that never worked. */
static void conn_lose(struct h2c_conn *n, const struct err *err)
{
	struct h2c_site *s = n->site;
	bool used = n->used;
	struct h2c_call *k;

	log_at(used ? LOG_INFO : LOG_DEBUG, NULL, "HTTP/2 connection lost",
		"server=%s state=%s reason=%s", log_esc(s->origin), state_names[n->state],
		log_esc(err->text));
	while ((k = TAILQ_FIRST(&n->calls)) != NULL) {
		call_leave(k);
		call_over(k, err->kind, err->text);
	}
	conn_free(n);
	if (!used)
		site_fail(s, err);
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
		conn_lose(n, &err);
	} else if (n->n_calls == 0 && idle >= H2C_IDLE_MS) {
		conn_free(n);
	} else if (n->n_calls == 0) {
		timer_set(&n->timer,
			H2C_IDLE_MS - idle < H2C_SILENCE_MS ? H2C_IDLE_MS - idle : H2C_SILENCE_MS);
	} else if (n->pinged) {
		err_set(&err, ERR_TRANSIENT, "connection lost: no answer to a PING");
		conn_lose(n, &err);
	} else if (silent >= H2C_SILENCE_MS) {
		if (nghttp2_submit_ping(n->session, NGHTTP2_FLAG_NONE, NULL) != 0)
			DIE("out of memory: nghttp2_submit_ping");
		n->pinged = true;
		timer_set(&n->timer, H2C_PONG_MS);
		site_wake(n->site);
	} else {
		timer_set(&n->timer, H2C_SILENCE_MS - silent);
	}
}

/* ---- writing ---- */

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

/* Send, then check whether the connection has ended: drained, or closed by nghttp2 because of a
 * protocol error. */
static void conn_write(struct h2c_conn *n)
{
	uint8_t *plain = n->site->c->plain;
	struct h2c_wire *w = &n->wire;
	struct err err = ERR_INIT;
	size_t len;

	if (!n->session)
		return;
	if (!w->out.len && !w->unwritable) {
		len = next_record(n, plain);
		clear_errors();
		if (len && !w->ssl)
			wire_send(n, plain, len);
		else if (len && SSL_write(w->ssl, plain, (int)len) != (int)len)
			w->unwritable = true;
		secret_wipe(plain, len);
		/* One record per turn and connection, so that a large body does not delay other
		 * connections. */
		if (len == H2C_RECORD_LEN)
			site_wake(n->site);
	}
	if (n->state == H2C_DRAINING && n->n_calls == 0 && n->used) {
		conn_free(n);
	} else if (n->state == H2C_DRAINING && n->n_calls == 0) {
		err_set(&err, ERR_TRANSIENT, "the server closed the connection");
		conn_lose(n, &err);
	} else if (!nghttp2_session_want_read(n->session) &&
		   !nghttp2_session_want_write(n->session)) {
		err_set(&err, ERR_TRANSIENT, "the server violates HTTP/2");
		conn_lose(n, &err);
	}
}

/* ---- delivery ---- */

/* Deliver until both lists are empty, answers first. User code may make further calls ready, or
 * free the h2c: then `gone` is set. */
static void deliver(void *arg)
{
	struct h2c *c = arg;
	struct h2c_call *k;
	bool gone = false;

	defer_cancel(&c->deliver);
	c->gone = &gone;
	while (!TAILQ_EMPTY(&c->answers) || !TAILQ_EMPTY(&c->streams)) {
		if ((k = TAILQ_FIRST(&c->answers)) == NULL)
			k = TAILQ_FIRST(&c->streams);
		if (k->on_data)
			call_deliver(k);
		else
			call_end(k);
		if (gone)
			return;
	}
	c->gone = NULL;
}

/* ---- reading ---- */

/* Decrypt what arrived and pass it on, record by record; the plaintext is wiped. */
static int feed_tls(struct h2c_conn *n, struct err *err)
{
	struct h2c_wire *w = &n->wire;
	uint8_t *plain = n->site->c->plain;

	if (!w->open && handshake(n, err) < 0)
		return -1;
	/* Without buffered bytes another SSL_read() would only return WANT_READ. */
	while (w->open && (w->in_len || SSL_has_pending(w->ssl))) {
		int len, rc;

		clear_errors();
		len = SSL_read(w->ssl, plain, H2C_RECORD_LEN);
		if (len <= 0)
			return tls_check(w, len, err);
		rc = session_feed(n, plain, (size_t)len, err);
		secret_wipe(plain, (size_t)len);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* One recv() per wakeup, then deliver. deliver() comes last, because it may free everything. */
static void on_readable(int fd, bool readable, bool writable, void *arg)
{
	struct h2c_conn *n = arg;
	struct h2c *c = n->site->c;
	struct err err = ERR_INIT;
	ssize_t len = recv(fd, c->raw, H2C_RAW_LEN, 0);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len < 0)
		err_set(&err, ERR_TRANSIENT, "%s", strerror(errno));
	else if (len == 0)
		err_set(&err, ERR_TRANSIENT, "the server closed the connection");
	n->heard_ms = clock_boot_ms();
	n->pinged = false;
	n->wire.in = c->raw;
	n->wire.in_len = len > 0 ? (size_t)len : 0;
	if (len > 0 && n->wire.ssl)
		(void)feed_tls(n, &err);
	else if (len > 0)
		(void)session_feed(n, c->raw, (size_t)len, &err);
	if (err_is_set(&err))
		conn_lose(n, &err);
	else
		site_wake(n->site); /* acknowledgements, windows */
	deliver(c);
}

/* ---- connecting ---- */

static struct h2c_conn *conn_new(struct h2c_site *s)
{
	struct h2c_conn *n = xcalloc(1, sizeof(*n));

	n->site = s;
	n->wire.fd = -1;
	TAILQ_INIT(&n->calls);
	TAILQ_INSERT_TAIL(&s->conns, n, link);
	s->n_conns++;
	timer_init(&n->timer, s->c->loop, on_timer, n);
	timer_set(&n->timer, H2C_DIAL_MS);
	return n;
}

/* The TCP connection is established, or cannot be: start TLS. */
static void on_dialled(void *arg, const struct err *dialled, int take_fd)
{
	struct h2c_conn *n = arg;
	struct err err = *dialled;

	if (!err_is_set(&err)) {
		n->heard_ms = n->idle_ms = clock_boot_ms();
		conn_set_state(n, H2C_HANDSHAKE, NULL);
		n->wire.fd = take_fd;
		n->wire.reads = loop_fd_new(n->site->c->loop, take_fd, true, false, on_readable, n);
		if (!n->site->tls) {
			session_start(n);
		} else {
			tls_begin(n);
			(void)handshake(n, &err);
		}
	}
	if (err_is_set(&err))
		conn_lose(n, &err);
}

/* ---- the work of a site ---- */

/* The first connection with room: older ones are filled first, so that newer ones become idle and
 * are closed. Requests that yield and others have separate limits, so that neither fills the
 * connection for the other. */
static struct h2c_conn *find_place(const struct h2c_site *s, const struct h2c_call *k)
{
	struct h2c_conn *n;

	/* The moment after the last urgent request (H2C_FIRST_MS) counts too: a caller often sends
	 * its next request from done. */
	if (k->yields && s->n_yielding >= HTTPC_YIELDING &&
		(s->n_first || (s->first_ms && clock_boot_ms() - s->first_ms < H2C_FIRST_MS)))
		return NULL;
	TAILQ_FOREACH (n, &s->conns, link) {
		size_t beside = k->yields ? n->n_yielding : n->n_calls - n->n_long - n->n_yielding;

		if (n->state == H2C_OPEN && n->n_streams < places(n) &&
			(k->long_lived || beside < HTTPC_PER_ORIGIN))
			return n;
	}
	return NULL;
}

/* Send calls in order until the first one without a place: later ones must not overtake it. */
static void send_queue(struct h2c_site *s, struct h2c_calls *queue)
{
	struct h2c_conn *n;
	struct h2c_call *k;

	while ((k = TAILQ_FIRST(queue)) != NULL && (n = find_place(s, k)) != NULL)
		session_send(n, k);
}

/* The site's deferred work. It may free the site, so nothing may use it afterwards. */
static void on_work(void *arg)
{
	struct h2c_site *s = arg;
	struct h2c_conn *n, *next;
	bool is_enough = false;

	if (s->no_h2 || (!s->tls && s->n_conns == 0)) {
		struct err err = ERR_INIT;

		s->no_h2 = true;
		err_set(&err, ERR_TRANSIENT, "the server does not support HTTP/2");
		site_fail(s, &err);
		/* Without TLS there is no ALPN to learn h2 from, and no probe. */
		s->no_h2 = timer_is_set(&s->probe);
	}
	send_queue(s, &s->queue);
	send_queue(s, &s->yielding);
	/* conn_write() may free n. */
	for (n = TAILQ_FIRST(&s->conns); n; n = next) {
		next = TAILQ_NEXT(n, link);
		conn_write(n);
	}
	/* One connection is enough, unless long-lived streams fill it. A connection that is still
	 * opening counts: the queue waits for it. */
	TAILQ_FOREACH (n, &s->conns, link)
		if (n->state < H2C_OPEN ||
			(n->state == H2C_OPEN && (places(n) == 0 || n->n_long < places(n))))
			is_enough = true;
	if (!(TAILQ_EMPTY(&s->queue) && TAILQ_EMPTY(&s->yielding)) && !is_enough &&
		s->n_conns < H2C_CONNS_MAX) {
		n = conn_new(s);
		/* httpc resolves the name and tries all addresses. */
		(void)httpc_dial(s->c->http, &n->dial, s->origin, s->connect_to, s->proxy,
			H2C_DIAL_MS, on_dialled, n);
	}
	if (s->n_calls == 0 && s->n_conns == 0 && !s->no_h2)
		site_free(s);
}

/* ---- the interface ---- */

struct h2c *h2c_new(struct loop *l, struct httpc *http)
{
	struct h2c *c = xcalloc(1, sizeof(*c));

	loop_ignore_sigpipe();
	c->loop = l;
	c->http = http;
	TAILQ_INIT(&c->sites);
	TAILQ_INIT(&c->answers);
	TAILQ_INIT(&c->streams);
	if (nghttp2_session_callbacks_new(&c->callbacks) || nghttp2_option_new(&c->option))
		DIE("out of memory: nghttp2");
	nghttp2_session_callbacks_set_on_begin_frame_callback(c->callbacks, on_begin_frame);
	nghttp2_session_callbacks_set_on_header_callback(c->callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c->callbacks, on_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(c->callbacks, on_close);
	nghttp2_option_set_max_outbound_ack(c->option, MAX_REPLIES);
	/* nghttp2 would otherwise remember closed streams for priorities, which are not used. */
	nghttp2_option_set_no_closed_streams(c->option, 1);
	c->raw = xmalloc(H2C_RAW_LEN);
	c->plain = xmalloc(H2C_RECORD_LEN);
	c->bio = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "h2c");
	if (!c->bio || BIO_meth_set_read(c->bio, bio_read) != 1 ||
		BIO_meth_set_write(c->bio, bio_write) != 1 ||
		BIO_meth_set_ctrl(c->bio, bio_ctrl) != 1)
		DIE("out of memory: BIO_meth_new");
	return c;
}

/* Setting *gone lets deliver() stop if user code freed the h2c inside of it. */
void h2c_free(struct h2c *c)
{
	struct h2c_site *s;

	if (!c)
		return;
	assert(c->n_calls == 0 && TAILQ_EMPTY(&c->answers) && TAILQ_EMPTY(&c->streams));
	while ((s = TAILQ_FIRST(&c->sites)) != NULL) {
		while (!TAILQ_EMPTY(&s->conns))
			conn_free(TAILQ_FIRST(&s->conns));
		site_free(s);
	}
	if (c->gone)
		*c->gone = true;
	defer_cancel(&c->deliver);
	nghttp2_session_callbacks_del(c->callbacks);
	nghttp2_option_del(c->option);
	BIO_meth_free(c->bio);
	free(c->raw);
	free(c->plain);
	free(c);
}

/* An invalid request is reported through done like every other failure. */
struct op *h2c_start(struct h2c *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg)
{
	size_t origin_len = check_url(req);
	struct h2c_call *k = xcalloc(1, sizeof(*k));

	k->c = c;
	k->on_data = on_data;
	k->done = done;
	k->arg = arg;
	c->n_calls++;
	timer_init(&k->deadline, c->loop, on_deadline, k);
	timer_init(&k->silence, c->loop, on_silence, k);
	op_begin(&k->op, scope, call_abort);
	/* A caller that sets options of httpc only is a bug; other faults may come from
	 * configuration. */
	if (req->take_body || req->reach || req->max_in_flight)
		DIE("h2c: take_body, reach and max_in_flight are not supported");
	if (!origin_len)
		err_set(&k->err, ERR_INVALID, "invalid URL");
	else if (!*req->method || strlen(req->method) >= sizeof(k->method))
		err_set(&k->err, ERR_INVALID, "invalid method");
	if (err_is_set(&k->err) || httpc_check_fields(req, &k->err) < 0) {
		k->over = true;
		call_ready(k);
		return &k->op;
	}
	cleanup_free char *origin = xstrndup(req->url, origin_len);
	copy_request(k, req, origin_len);
	k->site = site_get(c, origin, req->connect_to, req->proxy, req->tls);
	k->site->n_calls++;
	k->site->n_first += !k->yields && !k->long_lived;
	if (k->deadline_ms)
		timer_set(&k->deadline, k->deadline_ms);
	call_queue(k);
	return &k->op;
}

void h2c_adopt(struct h2c *c, const char *origin, int take_fd)
{
	on_dialled(conn_new(site_get(c, origin, NULL, NULL, NULL)), &(struct err)ERR_INIT, take_fd);
}
