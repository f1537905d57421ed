/* SPDX-License-Identifier: MIT */
/*
 * Requests, the queues they wait in and how they end. nghttp2's callbacks only collect: what
 * arrived for a call is stored in it until the read is complete, and h2c_deliver() alone runs user
 * code. So user code never runs inside nghttp2 and may start, cancel and free anything. nghttp2
 * gets no more requests than the server allows streams; the others wait here, where they are easy
 * to cancel and to send on another connection.
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/signal.h"

#include "h2c_internal.h"

/* ---- sites ---- */

static void on_work(void *arg);

void h2c_site_wake(struct h2c_site *s)
{
	defer_call(&s->work, s->c->loop, on_work, s);
}

static void on_probe(void *arg)
{
	struct h2c_site *s = arg;

	s->no_h2 = false;
	h2c_site_wake(s);
}

struct h2c_site *h2c_site_get(
	struct h2c *c, const char *origin, const char *connect_to, struct httpc_tls *tls)
{
	const char *host = strstr(origin, "://") + 3;
	struct h2c_site *s;

	TAILQ_FOREACH (s, &c->sites, link)
		if (s->tls == tls && str_eq(s->origin, origin) && str_eq(s->connect_to, connect_to))
			return s;
	s = xcalloc(1, sizeof(*s));
	s->c = c;
	s->origin = xstrdup(origin);
	s->host = *host == '[' ? xstrndup(host + 1, strcspn(host + 1, "]"))
			       : xstrndup(host, strcspn(host, ":"));
	s->connect_to = xstrdup(connect_to);
	s->tls = tls ? httpc_tls_ref(tls) : NULL;
	TAILQ_INIT(&s->queue);
	TAILQ_INIT(&s->conns);
	timer_init(&s->probe, c->loop, on_probe, s);
	TAILQ_INSERT_TAIL(&c->sites, s, link);
	return s;
}

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
	free(s);
}

void h2c_site_fail(struct h2c_site *s, const struct err *err)
{
	struct h2c_call *k;

	while ((k = TAILQ_FIRST(&s->queue)) != NULL) {
		k->no_h2 = s->no_h2;
		h2c_call_over(k, err->kind, err->text);
	}
}

static struct h2c_conn *find_place(const struct h2c_site *s)
{
	struct h2c_conn *n;

	TAILQ_FOREACH (n, &s->conns, link)
		if (h2c_session_has_place(n))
			return n;
	return NULL;
}

/* One connection is enough, unless the streams that fill it do not end. */
static bool needs_connection(const struct h2c_site *s)
{
	struct h2c_conn *n;

	TAILQ_FOREACH (n, &s->conns, link)
		if (n->state != H2C_DRAINING && !h2c_session_only_long(n))
			return false;
	return s->n_conns < H2C_CONNS_MAX;
}

static void on_work(void *arg)
{
	struct h2c_site *s = arg;
	struct h2c_conn *n, *next;
	struct h2c_call *k;

	if (s->no_h2 || (!s->tls && s->n_conns == 0)) {
		struct err err = ERR_INIT;

		s->no_h2 = true;
		err_set(&err, ERR_TRANSIENT, "the server does not support HTTP/2");
		h2c_site_fail(s, &err);
		s->no_h2 = timer_is_set(&s->probe);
	}
	while ((k = TAILQ_FIRST(&s->queue)) != NULL && (n = find_place(s)) != NULL)
		h2c_session_send(n, k);
	for (n = TAILQ_FIRST(&s->conns); n; n = next) {
		next = TAILQ_NEXT(n, link);
		h2c_conn_write(n);
	}
	if (!TAILQ_EMPTY(&s->queue) && needs_connection(s))
		h2c_conn_dial(s);
	if (s->n_calls == 0 && s->n_conns == 0 && !s->no_h2)
		site_free(s);
}

/* ---- the request ---- */

/* Appends to k->text, which was made large enough. */
static char *put_text(char **at, const char *s, size_t len)
{
	char *start = *at;

	memcpy(start, s, len);
	start[len] = '\0';
	*at += len + 1;
	return start;
}

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

/* The length of the origin part of the URL, or 0: not a usable URL. */
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

static int check_request(const struct httpc_request *req, size_t origin_len, struct err *err)
{
	if (req->take_body || req->reach || req->max_in_flight)
		DIE("h2c: take_body, reach and max_in_flight are for httpc");
	if (!origin_len)
		return err_set(err, ERR_INVALID, "not a usable URL");
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct httpc_header *h = &req->headers[i];

		if (!*h->name || strpbrk(h->name, " :") || !httpc_printable(h->name) ||
			!httpc_printable(h->value))
			return err_set(
				err, ERR_INVALID, "a request header holds control characters");
	}
	if (req->bearer &&
		(!*req->bearer || strpbrk(req->bearer, " \t\r\n") || !httpc_printable(req->bearer)))
		return err_set(
			err, ERR_INVALID, "the bearer token holds blanks or control characters");
	return 0;
}

static void copy_request(struct h2c_call *k, const struct httpc_request *req, size_t origin_len)
{
	const char *authority = strstr(req->url, "://") + 3, *path = req->url + origin_len;
	size_t path_len = strcspn(path, "#"), len;
	char number[32], *at;

	snprintf(number, sizeof(number), "%zu", req->body_len);
	/* Every string with its NUL; the fixed names and prefixes are well below 256 bytes. */
	len = 256 + 2 * strlen(req->method) + strlen(req->url) + sizeof(number);
	for (size_t i = 0; i < req->n_headers; i++)
		len += strlen(req->headers[i].name) + strlen(req->headers[i].value) + 2;
	len += req->bearer ? strlen(req->bearer) : 0;
	at = k->text = xmalloc(len);
	k->text_len = len;
	k->nv = xcalloc(req->n_headers + 6, sizeof(*k->nv));
	k->method = put_text(&at, req->method, strlen(req->method));
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
}

/* ---- the end ---- */

void h2c_call_leave(struct h2c_call *k)
{
	struct h2c_conn *n = k->conn;

	if (k->queued)
		TAILQ_REMOVE(&k->site->queue, k, link);
	k->queued = false;
	if (!n)
		return;
	(void)nghttp2_session_set_stream_user_data(n->session, k->stream, NULL);
	TAILQ_REMOVE(&n->calls, k, link);
	k->conn = NULL;
	k->stream = 0;
	n->n_calls--;
	n->n_long -= k->long_lived;
	n->idle_ms = clock_boot_ms();
	h2c_site_wake(k->site); /* a place is free, or the connection may close */
}

/* Tells the server to stop: nobody waits for the answer. */
static void call_reset(struct h2c_call *k)
{
	if (k->conn && nghttp2_submit_rst_stream(
			       k->conn->session, NGHTTP2_FLAG_NONE, k->stream, NGHTTP2_CANCEL) != 0)
		DIE("out of memory: nghttp2_submit_rst_stream");
	h2c_call_leave(k);
}

static void on_deliver(void *arg)
{
	h2c_deliver(arg);
}

void h2c_call_ready(struct h2c_call *k)
{
	struct h2c *c = k->c;

	if (k->ready)
		return;
	k->ready = true;
	if (k->on_data)
		TAILQ_INSERT_TAIL(&c->streams, k, delivery);
	else
		TAILQ_INSERT_TAIL(&c->answers, k, delivery);
	defer_call(&c->deliver, c->loop, on_deliver, c);
}

static void call_unready(struct h2c_call *k)
{
	if (!k->ready)
		return;
	if (k->on_data)
		TAILQ_REMOVE(&k->c->streams, k, delivery);
	else
		TAILQ_REMOVE(&k->c->answers, k, delivery);
	k->ready = false;
}

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
	k->queued = true;
	TAILQ_INSERT_TAIL(&k->site->queue, k, link);
	h2c_site_wake(k->site);
}

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

/* Afterwards nothing in the h2c refers to k. */
static void call_detach(struct h2c_call *k)
{
	call_reset(k);
	call_unready(k);
	timer_fini(&k->deadline);
	timer_fini(&k->silence);
	if (k->site && --k->site->n_calls == 0)
		h2c_site_wake(k->site);
	k->site = NULL;
	k->c->n_calls--;
}

static void call_free(struct h2c_call *k)
{
	if (k->freed)
		*k->freed = true;
	if (k->text)
		secret_wipe(k->text, k->text_len);
	free(k->text);
	free(k->nv);
	free(k->content_type);
	body_fini(&k->got);
	free(k);
}

static void call_abort(struct op *op)
{
	struct h2c_call *k = (struct h2c_call *)op;

	call_detach(k);
	call_free(k);
}

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

static void deliver_stream(struct h2c_call *k)
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
		call_end(k);
}

void h2c_deliver(struct h2c *c)
{
	struct h2c_call *k;
	bool gone = false;

	defer_cancel(&c->deliver);
	c->gone = &gone;
	while (!TAILQ_EMPTY(&c->answers) || !TAILQ_EMPTY(&c->streams)) {
		if ((k = TAILQ_FIRST(&c->answers)) != NULL)
			call_end(k);
		else
			deliver_stream(TAILQ_FIRST(&c->streams));
		if (gone)
			return;
	}
	c->gone = NULL;
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
	h2c_session_setup(c);
	h2c_io_setup(c);
	return c;
}

void h2c_free(struct h2c *c)
{
	struct h2c_site *s;

	if (!c)
		return;
	assert(c->n_calls == 0 && TAILQ_EMPTY(&c->answers) && TAILQ_EMPTY(&c->streams));
	while ((s = TAILQ_FIRST(&c->sites)) != NULL) {
		while (!TAILQ_EMPTY(&s->conns))
			h2c_conn_free(TAILQ_FIRST(&s->conns));
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
	if (check_request(req, origin_len, &k->err) < 0) {
		k->over = true;
		h2c_call_ready(k);
		return &k->op;
	}
	cleanup_free char *origin = xstrndup(req->url, origin_len);
	copy_request(k, req, origin_len);
	k->site = h2c_site_get(c, origin, req->connect_to, req->tls);
	k->site->n_calls++;
	k->queued = true;
	TAILQ_INSERT_TAIL(&k->site->queue, k, link);
	if (k->deadline_ms)
		timer_set(&k->deadline, k->deadline_ms);
	h2c_site_wake(k->site);
	return &k->op;
}

void h2c_probe(struct h2c *c)
{
	struct h2c_site *s;

	TAILQ_FOREACH (s, &c->sites, link)
		if (s->no_h2) {
			timer_cancel(&s->probe);
			on_probe(s);
		}
}
