/* SPDX-License-Identifier: MIT */
/*
 * The glue between libcurl's multi_socket interface and the loop, and the life of a call. There are two
 * pools, requests and streams, each with one CURLM. At most HTTPC_PER_ORIGIN requests are in flight to
 * one origin, and the others are queued here, so that thousands of callers cost neither connections
 * nor easy handles.
 *
 * curl forbids adding and removing transfers inside its callbacks, and on_data runs in one. So a call
 * started in there is queued, and one cancelled in there becomes a zombie, until
 * curl_multi_socket_action() has returned. Everything curl allocates is wiped when it is freed: its
 * buffers hold tokens, Secrets and keys.
 *
 *   WAITING (queue of its origin) -> RUNNING (in a multi) -> done
 *   an invalid request: FAILED, deferred -> done
 *   RUNNING, cancelled inside a callback: ZOMBIE -> freed when curl has returned
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/signal.h"

#include "httpc_internal.h"

struct fd_watch { /* owned by its multi */
	struct loop_fd *fd;
	struct fd_watch *next, **prevp;
};

struct httpc_pool;
struct httpc_multi {
	struct httpc_pool *pool; /* borrowed */
	CURLM *m;
	struct timer timer; /* curl's */
	struct fd_watch *fds;
	struct httpc_call *zombies;
	unsigned live; /* number of calls that are RUNNING or ZOMBIE */
	bool in_curl;  /* inside curl_multi_socket_action() */
	bool *gone;    /* on the stack of multi_act(): set when the multi is freed */
};

struct httpc_origin { /* lives while it has calls */
	struct httpc_pool *pool;
	char *key;
	unsigned running, yielding;        /* running calls, and how many of them yield */
	unsigned n_first;                  /* waiting or running calls that do not yield */
	struct httpc_call *first, **lastp; /* queue; calls that yield come last */
	struct httpc_origin *next;
};

struct httpc_pool {
	struct httpc *c;
	unsigned per_origin; /* 0: no limit */
	struct httpc_multi *multi;
	struct httpc_origin *origins;
};

struct httpc {
	struct loop *loop;
	struct httpc_pool pools[2]; /* requests, streams */
	CURL *idle[HTTPC_IDLE_HANDLES];
	unsigned n_idle, n_calls;
};

/* ---- curl's allocator: free wipes ---- */

/* malloc_usable_size() is at least the requested size, so the whole block is wiped. */
void httpc_wipe_free(void *p)
{
	if (p)
		secret_wipe(p, malloc_usable_size(p));
	free(p);
}

/* Shrink in place; grow by allocating, copying and wiping, because a real realloc() would leave an
 * unwiped copy when it moves the block. */
void *httpc_wipe_realloc(void *p, size_t size)
{
	size_t old = p ? malloc_usable_size(p) : 0;
	void *n;

	if (p && size && size <= old)
		return p;
	n = malloc(size ? size : 1);
	if (n && p) {
		memcpy(n, p, old < size ? old : size);
		httpc_wipe_free(p);
	}
	return n;
}

static unsigned n_users; /* of libcurl's globals */

/* libcurl's allocator is global, so it must be set before anything else in the process uses
 * libcurl. */
static void curl_use(void)
{
	if (n_users++ == 0 && curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, httpc_wipe_free,
				      httpc_wipe_realloc, strdup, calloc))
		DIE("cannot initialise libcurl");
}

static void curl_unuse(void)
{
	if (--n_users == 0)
		curl_global_cleanup();
}

/* ---- easy handles ---- */

/* Reuse a handle: creating one costs more than a small request. */
static CURL *easy_take(struct httpc *c)
{
	CURL *e = c->n_idle ? c->idle[--c->n_idle] : curl_easy_init();

	if (!e)
		DIE("out of memory: curl_easy_init");
	return e;
}

static void easy_give(struct httpc *c, CURL *e)
{
	if (c->n_idle == HTTPC_IDLE_HANDLES) {
		curl_easy_cleanup(e);
		return;
	}
	curl_easy_reset(e); /* drops the request; connections belong to the multi */
	c->idle[c->n_idle++] = e;
}

/* ---- multi ---- */

static void multi_act(struct httpc_multi *m, curl_socket_t fd, int events);

static void on_fd(int fd, bool readable, bool writable, void *arg)
{
	multi_act(arg, fd, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
}

static void on_timer(void *arg)
{
	multi_act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void fd_watch_free(struct fd_watch *w)
{
	loop_fd_free(w->fd);
	*w->prevp = w->next;
	if (w->next)
		w->next->prevp = w->prevp;
	free(w);
}

/* curl tells which events it wants on a descriptor. A change replaces the watch, as loop_fd has no
 * modify. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch)
{
	struct httpc_multi *m = arg;
	struct fd_watch *w = watch;

	if (what == CURL_POLL_REMOVE) {
		if (w)
			fd_watch_free(w);
		(void)curl_multi_assign(m->m, fd, NULL);
		return 0;
	}
	if (w) {
		loop_fd_free(w->fd);
	} else {
		w = xcalloc(1, sizeof(*w));
		w->next = m->fds;
		w->prevp = &m->fds;
		if (w->next)
			w->next->prevp = &w->next;
		m->fds = w;
		(void)curl_multi_assign(m->m, fd, w);
	}
	w->fd = loop_fd_new(
		m->pool->c->loop, fd, what & CURL_POLL_IN, what & CURL_POLL_OUT, on_fd, m);
	return 0;
}

/* Only set or cancel the timer: curl must not be called from its own callbacks. */
static int on_curl_timer(CURLM *cm, long ms, void *arg)
{
	struct httpc_multi *m = arg;

	if (ms < 0)
		timer_cancel(&m->timer);
	else
		timer_set(&m->timer, (uint64_t)ms);
	return 0;
}

/* PIPELINING is switched off, which also disables HTTP/2 multiplexing: h2c does that. */
static struct httpc_multi *multi_new(struct httpc_pool *pool)
{
	struct httpc_multi *m = xcalloc(1, sizeof(*m));

	m->pool = pool;
	timer_init(&m->timer, pool->c->loop, on_timer, m);
	m->m = curl_multi_init();
	if (!m->m || curl_multi_setopt(m->m, CURLMOPT_SOCKETFUNCTION, on_curl_socket) ||
		curl_multi_setopt(m->m, CURLMOPT_SOCKETDATA, m) ||
		curl_multi_setopt(m->m, CURLMOPT_TIMERFUNCTION, on_curl_timer) ||
		curl_multi_setopt(m->m, CURLMOPT_TIMERDATA, m) ||
		curl_multi_setopt(m->m, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) ||
		curl_multi_setopt(m->m, CURLMOPT_MAXCONNECTS, 4L * HTTPC_PER_ORIGIN))
		DIE("out of memory: curl_multi_init");
	return m;
}

/* Cleaning up closes the connections, and curl may remove their watches meanwhile. */
static void multi_free(struct httpc_multi *m)
{
	assert(m->live == 0 && !m->in_curl);
	if (m->gone)
		*m->gone = true;
	(void)curl_multi_cleanup(m->m);
	while (m->fds)
		fd_watch_free(m->fds);
	timer_fini(&m->timer);
	free(m);
}

/* ---- origins ---- */

/* Origins are few, as they only live while they have calls. */
static struct httpc_origin *origin_get(struct httpc_pool *pool, const char *key)
{
	struct httpc_origin *o;

	for (o = pool->origins; o; o = o->next)
		if (strcmp(o->key, key) == 0)
			return o;
	o = xcalloc(1, sizeof(*o));
	o->pool = pool;
	o->key = xstrdup(key);
	o->lastp = &o->first;
	o->next = pool->origins;
	pool->origins = o;
	return o;
}

/* Free the origin if it has no calls. */
static void origin_put(struct httpc_origin *o)
{
	struct httpc_origin **p = &o->pool->origins;

	if (o->running || o->first)
		return;
	while (*p != o)
		p = &(*p)->next;
	*p = o->next;
	free(o->key);
	free(o);
}

/* Queue the call: one that does not yield goes before all that do. */
static void line_join(struct httpc_origin *o, struct httpc_call *k)
{
	struct httpc_call **at = o->lastp;

	if (!k->yields)
		for (at = &o->first; *at && !(*at)->yields;)
			at = &(*at)->next;
	k->state = HTTPC_CALL_WAITING;
	k->origin = o;
	k->next = *at;
	k->prevp = at;
	if (k->next)
		k->next->prevp = &k->next;
	else
		o->lastp = &k->next;
	*at = k;
	o->n_first += !k->yields;
}

static void line_leave(struct httpc_call *k)
{
	*k->prevp = k->next;
	if (k->next)
		k->next->prevp = k->prevp;
	else
		k->origin->lastp = k->prevp;
}

/* ---- calls ---- */

/* Return k's easy handle and remove k from its place; its origin may start the next call, or end. */
static void call_leave(struct httpc_call *k);

/* Report the result. done may free the httpc, so the call is detached and finished first and freed
 * last. */
static void call_end(struct httpc_call *k)
{
	struct httpc_answer a = {0};
	int fd = k->fd;

	call_leave(k);
	k->fd = -1;
	a.status = (int)k->status;
	a.scope = k->scope;
	a.retry_after_ms = k->retry_after_ms;
	a.body = k->answer.data ? k->answer.data : "";
	a.body_len = k->answer.len;
	a.sent = &k->body;
	a.content_type = k->content_type;
	a.location = k->location;
	a.set_cookie = k->set_cookie;
	a.www_authenticate = k->www_authenticate;
	k->c->n_calls--;
	op_finish(&k->op);
	if (k->dialled) /* may free c */
		k->dialled(k->arg, &k->err, fd);
	else
		k->done(k->arg, &k->err, &a);
	httpc_call_free(k);
}

static void on_fail(void *arg)
{
	call_end(arg);
}

/* Report a failure in the next turn, because done must not run before the starting function
 * returned. */
static void call_fail(struct httpc_call *k)
{
	timer_cancel(&k->deadline);
	k->state = HTTPC_CALL_FAILED;
	defer_call(&k->fail, k->c->loop, on_fail, k);
}

/* Sets ETIMEDOUT, by which callers tell an expired deadline from other transient errors. */
static void on_deadline(void *arg)
{
	struct httpc_call *k = arg;

	err_set(&k->err, ERR_TRANSIENT, "%s %s: no answer within %u ms%s", k->method, k->where,
		k->deadline_ms,
		k->state == HTTPC_CALL_WAITING ? ", waiting for earlier requests" : "");
	k->err.sys = ETIMEDOUT;
	call_end(k);
}

static void on_silence(void *arg)
{
	struct httpc_call *k = arg;

	err_set(&k->err, ERR_TRANSIENT, "%s %s: silent for %u ms", k->method, k->where,
		k->silence_ms);
	k->err.sys = ETIMEDOUT;
	call_end(k);
}

/* Move the call from its queue into the multi. A request that curl refuses fails like an invalid
 * one. */
static void call_launch(struct httpc_call *k)
{
	struct httpc_multi *m = k->origin->pool->multi;
	CURLMcode refused = CURLM_OK;
	CURLcode rc;

	line_leave(k);
	k->easy = easy_take(k->c);
	rc = httpc_call_setup(k);
	if (!rc)
		refused = curl_multi_add_handle(m->m, k->easy);
	if (rc || refused) {
		err_set(&k->err, ERR_INVALID, "%s %s: %s", k->method, k->where,
			rc ? curl_easy_strerror(rc) : curl_multi_strerror(refused));
		easy_give(k->c, steal_ptr(&k->easy));
		k->origin->n_first -= !k->yields;
		k->origin = NULL; /* origin_pump(), the caller, frees it if it is empty */
		call_fail(k);
		return;
	}
	k->state = HTTPC_CALL_RUNNING;
	k->multi = m;
	m->live++;
	k->origin->running++;
	k->origin->yielding += k->yields;
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
}

/* The first call decides for all: the queue is in order of priority. */
static bool may_launch(const struct httpc_origin *o)
{
	const struct httpc_call *k = o->first;

	if (!o->pool->per_origin)
		return true;
	return o->running < k->max_in_flight &&
	       !(k->yields && o->n_first && o->yielding >= HTTPC_YIELDING);
}

/* Start calls while the limits permit; free the origin when it has none. */
static void origin_pump(struct httpc_origin *o)
{
	while (o->first && !o->pool->multi->in_curl && may_launch(o))
		call_launch(o->first);
	origin_put(o);
}

static void pool_pump(struct httpc_pool *pool)
{
	struct httpc_origin *o, *next;

	for (o = pool->origins; o; o = next) {
		next = o->next;
		origin_pump(o);
	}
}

/* Continue with the origin's next call at the end, as this one's place is free. */
static void call_leave(struct httpc_call *k)
{
	struct httpc_multi *m = k->multi;
	struct httpc_origin *o = k->origin;

	timer_fini(&k->deadline);
	timer_fini(&k->silence);
	defer_cancel(&k->fail);
	if (k->state == HTTPC_CALL_WAITING)
		line_leave(k);
	if (m) {
		(void)curl_multi_remove_handle(m->m, k->easy);
		easy_give(k->c, steal_ptr(&k->easy));
		k->multi = NULL;
		m->live--;
		o->running--;
		o->yielding -= k->yields;
	}
	if (o)
		o->n_first -= !k->yields;
	k->origin = NULL;
	if (o)
		origin_pump(o);
}

/* Cancelled: inside a curl callback the transfer cannot be removed yet, so the call stays as a
 * zombie. */
static void call_abort(struct op *op)
{
	struct httpc_call *k = (struct httpc_call *)op;

	if (k->state == HTTPC_CALL_RUNNING && k->multi->in_curl) {
		timer_fini(&k->deadline);
		timer_fini(&k->silence);
		k->state = HTTPC_CALL_ZOMBIE;
		k->next = k->multi->zombies;
		k->multi->zombies = k;
		return;
	}
	call_leave(k);
	k->c->n_calls--;
	httpc_call_free(k);
}

/* Free the zombies after curl has returned. */
static void multi_bury(struct httpc_multi *m)
{
	struct httpc_call *k;

	while ((k = m->zombies) != NULL) {
		m->zombies = k->next;
		call_leave(k);
		k->c->n_calls--;
		httpc_call_free(k);
	}
}

/* Let curl work; this is the only place that does. Ended calls are reported only after curl has
 * returned. */
static void multi_act(struct httpc_multi *m, curl_socket_t fd, int events)
{
	struct httpc_call *k;
	bool gone = false;
	CURLMsg *msg;
	int n;

	m->gone = &gone;
	m->in_curl = true;
	(void)curl_multi_socket_action(m->m, fd, events, &n);
	m->in_curl = false;
	multi_bury(m);
	while ((msg = curl_multi_info_read(m->m, &n)) != NULL) {
		CURLcode rc = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		k = NULL;
		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &k);
		httpc_call_result(k, rc);
		call_end(k);
		if (gone)
			return;
	}
	m->gone = NULL;
	pool_pump(m->pool);
}

/* ---- the interface ---- */

/* Streams have no limit per origin: each watch needs its connection for hours. */
struct httpc *httpc_new(struct loop *l)
{
	struct httpc *c = xcalloc(1, sizeof(*c));

	curl_use();
	loop_ignore_sigpipe(); /* OpenSSL writes to sockets that the server has closed */
	c->loop = l;
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++) {
		c->pools[i].c = c;
		c->pools[i].multi = multi_new(&c->pools[i]);
	}
	c->pools[0].per_origin = HTTPC_PER_ORIGIN;
	return c;
}

void httpc_free(struct httpc *c)
{
	if (!c)
		return;
	assert(c->n_calls == 0);
	for (size_t i = 0; i < ARRAY_LEN(c->pools); i++) {
		struct httpc_pool *p = &c->pools[i];

		assert(!p->origins);
		multi_free(p->multi);
	}
	while (c->n_idle)
		curl_easy_cleanup(c->idle[--c->n_idle]);
	free(c);
	curl_unuse();
}

static struct httpc_call *call_start(struct httpc *c, struct op_scope *scope,
	const struct httpc_request *req, httpc_data_fn on_data, httpc_done_fn done,
	httpc_dial_fn dialled, void *arg)
{
	struct httpc_origin *o;
	bool ok;
	struct httpc_call *k = httpc_call_new(req, &ok);

	k->c = c;
	k->on_data = on_data;
	k->done = done;
	k->dialled = dialled;
	k->arg = arg;
	c->n_calls++;
	timer_init(&k->deadline, c->loop, on_deadline, k);
	timer_init(&k->silence, c->loop, on_silence, k);
	op_begin(&k->op, scope, call_abort);
	if (!ok) {
		call_fail(k);
		return k;
	}
	if (k->deadline_ms)
		timer_set(&k->deadline, k->deadline_ms);
	o = origin_get(&c->pools[k->stream], k->origin_key);
	line_join(o, k);
	origin_pump(o);
	return k;
}

struct op *httpc_start(struct httpc *c, struct op_scope *scope, const struct httpc_request *req,
	httpc_data_fn on_data, httpc_done_fn done, void *arg)
{
	return &call_start(c, scope, req, on_data, done, NULL, arg)->op;
}

/* Let curl resolve and connect without sending anything (CURLOPT_CONNECT_ONLY), and take the
 * socket. The URL is http even for https, as TLS is made by the caller. */
struct op *httpc_dial(struct httpc *c, struct op_scope *scope, const char *origin,
	const char *connect_to, uint32_t connect_ms, httpc_dial_fn done, void *arg)
{
	const char *host = strstr(origin, "://") + 3, *port = strrchr(host, ':');
	bool has_port = port && !strchr(port, ']');
	cleanup_free char *url = xasprintf(
		"http://%s%s", host, has_port || str_starts(origin, "http://") ? "" : ":443");
	struct httpc_request req = {.method = "GET",
		.url = url,
		.connect_to = connect_to,
		.connect_ms = connect_ms,
		.stream = true}; /* does not occupy a request's place */

	return &call_start(c, scope, &req, NULL, NULL, done, arg)->op;
}
