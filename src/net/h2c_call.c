/* SPDX-License-Identifier: MIT */
/*
 * One request: checked, copied, queued, sent on a connection, and ended. Only h2c_call_end() and
 * h2c_call_deliver() run user code, and only h2c_deliver() calls them.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "h2c_internal.h"

/* ---- the request ---- */

/* Append a string to k->text, which was allocated large enough, and return its address. */
static char *put_text(char **at, const char *s, size_t len)
{
	char *start = *at;

	memcpy(start, s, len);
	start[len] = '\0';
	*at += len + 1;
	return start;
}

/* Add a header field. HTTP/2 needs lower-case names; nghttp2 converts them. */
static void put_nv(struct h2c_call *k, char **at, const char *name, const char *prefix,
	const char *value, size_t len)
{
	nghttp2_nv *nv = &k->nv[k->n_nv++];
	size_t prefix_len = strlen(prefix);

	nv->namelen = strlen(name);
	nv->name = (uint8_t *)put_text(at, name, nv->namelen);
	nv->valuelen = prefix_len + len;
	nv->value = (uint8_t *)*at;
	memcpy(*at, prefix, prefix_len);
	*at += prefix_len;
	(void)put_text(at, value, len);
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

/* A caller that sets options of httpc only is a bug; other faults may come from configuration. */
static int check_request(const struct httpc_request *req, size_t origin_len, struct err *err)
{
	if (req->take_body || req->reach || req->max_in_flight)
		DIE("h2c: take_body, reach and max_in_flight are not supported");
	if (!origin_len)
		return err_set(err, ERR_INVALID, "invalid URL");
	if (!*req->method || strlen(req->method) >= sizeof(((struct h2c_call *)NULL)->method))
		return err_set(err, ERR_INVALID, "invalid method");
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct httpc_header *h = &req->headers[i];

		if (!*h->name || strpbrk(h->name, " :") || !httpc_printable(h->name) ||
			!httpc_printable(h->value))
			return err_set(
				err, ERR_INVALID, "a request header contains control characters");
	}
	if (req->bearer &&
		(!*req->bearer || strpbrk(req->bearer, " \t\r\n") || !httpc_printable(req->bearer)))
		return err_set(
			err, ERR_INVALID, "the bearer token contains blanks or control characters");
	return 0;
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

/* ---- the end ---- */

/* The site's queue that the call belongs to. */
static struct h2c_calls *queue_of(const struct h2c_call *k)
{
	return k->yields ? &k->site->yielding : &k->site->queue;
}

void h2c_call_queue(struct h2c_call *k)
{
	k->queued = true;
	TAILQ_INSERT_TAIL(queue_of(k), k, link);
	h2c_site_wake(k->site);
}

/* Detach the call from its queue or stream. The stream itself goes on in nghttp2 until it is closed
 * or reset. */
void h2c_call_leave(struct h2c_call *k)
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
	h2c_site_wake(k->site); /* a place is free, or the connection may close */
}

/* Tell the server that the answer is no longer wanted (RST_STREAM with CANCEL), and leave the
 * connection. */
static void call_reset(struct h2c_call *k)
{
	if (k->conn && nghttp2_submit_rst_stream(
			       k->conn->session, NGHTTP2_FLAG_NONE, k->stream, NGHTTP2_CANCEL) != 0)
		DIE("out of memory: nghttp2_submit_rst_stream");
	h2c_call_leave(k);
}

/* Only data of long-lived streams waits for all answers. */
static struct h2c_calls *delivery_of(const struct h2c_call *k)
{
	return k->on_data && k->long_lived ? &k->c->streams : &k->c->answers;
}

void h2c_call_ready(struct h2c_call *k)
{
	if (k->ready)
		return;
	k->ready = true;
	TAILQ_INSERT_TAIL(delivery_of(k), k, delivery);
	h2c_deliver_soon(k->c);
}

static void call_unready(struct h2c_call *k)
{
	if (!k->ready)
		return;
	TAILQ_REMOVE(delivery_of(k), k, delivery);
	k->ready = false;
}

/* Set the result; done follows from h2c_deliver(). A second end, for example a reset after the
 * answer, is ignored. */
void h2c_call_over(struct h2c_call *k, enum err_kind kind, const char *text)
{
	if (k->over)
		return;
	k->over = true;
	if (text)
		err_set(&k->err, kind, "%s %s: %s", k->method, k->site->origin, text);
	call_reset(k);
	timer_cancel(&k->deadline);
	timer_cancel(&k->silence);
	h2c_call_ready(k);
}

/* The server guarantees that it did not process the request (RFC 9113 section 8.7), so resending is
 * safe for every method. */
void h2c_call_retry(struct h2c_call *k)
{
	if (++k->tries >= H2C_TRIES) {
		h2c_call_over(k, ERR_TRANSIENT, "the server refused the request three times");
		return;
	}
	h2c_call_leave(k);
	timer_cancel(&k->silence);
	k->sent = 0;
	k->header_len = 0;
	h2c_call_queue(k);
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
	h2c_call_over(k, ERR_TRANSIENT, text);
}

static void on_silence(void *arg)
{
	struct h2c_call *k = arg;
	char text[40];

	snprintf(text, sizeof(text), "silent for %u ms", k->silence_ms);
	h2c_call_over(k, ERR_TRANSIENT, text);
}

/* True for requests that others yield to. */
static bool is_first(const struct h2c_call *k)
{
	return !k->yields && !k->long_lived;
}

/* Remove every reference to k in the h2c. */
static void call_detach(struct h2c_call *k)
{
	call_reset(k);
	call_unready(k);
	timer_fini(&k->deadline);
	timer_fini(&k->silence);
	if (k->site && is_first(k) && --k->site->n_first == 0)
		k->site->first_ms = clock_boot_ms();
	if (k->site && --k->site->n_calls == 0)
		h2c_site_wake(k->site);
	k->site = NULL;
	k->c->n_calls--;
}

/* Called when an answer begins: the token need not stay in memory for the life of a watch. */
void h2c_call_forget(struct h2c_call *k)
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
	h2c_call_forget(k);
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
void h2c_call_end(struct h2c_call *k)
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
void h2c_call_deliver(struct h2c_call *k)
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
		h2c_call_over(k, ERR_NONE, NULL);
		k->err = err;
		if (!err_is_set(&k->err))
			err_set(&k->err, ERR_BUG, "on_data failed without an error");
	}
	if (k->over)
		h2c_call_end(k);
}

/* An invalid request is reported through done like every other failure. */
struct h2c_call *h2c_call_new(struct h2c *c, struct op_scope *scope,
	const struct httpc_request *req, httpc_data_fn on_data, httpc_done_fn done, void *arg)
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
	if (check_request(req, origin_len, &k->err) < 0) {
		k->over = true;
		h2c_call_ready(k);
		return k;
	}
	cleanup_free char *origin = xstrndup(req->url, origin_len);
	copy_request(k, req, origin_len);
	k->site = h2c_site_get(c, origin, req->connect_to, req->tls);
	k->site->n_calls++;
	k->site->n_first += is_first(k);
	if (k->deadline_ms)
		timer_set(&k->deadline, k->deadline_ms);
	return k;
}
