/* SPDX-License-Identifier: MIT */
/*
 * Sites, their queues, and delivery. nghttp2's callbacks only collect: what arrives for a call is
 * stored in it until the read is complete, and only h2c_deliver() runs user code. So user code never
 * runs inside nghttp2 and may start, cancel and free anything. nghttp2 is given no more requests than
 * the server allows streams; the others wait here, where they can be cancelled or sent on another
 * connection.
 *
 * Path of one request: h2c_start() -> queue of its site -> on_work() -> h2c_session_send() ->
 * h2c_conn_write(). Path of its answer: on_readable() in h2c_io.c -> nghttp2's callbacks in
 * h2c_session.c -> lists of ready calls -> h2c_deliver() -> on_data, done.
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

/* Defer the work to the next turn: all requests of this turn then share one write. */
void h2c_site_wake(struct h2c_site *s)
{
	defer_call(&s->work, s->c->loop, on_work, s);
}

/* Forget that the server lacks h2, as it may have been upgraded. */
static void on_probe(void *arg)
{
	struct h2c_site *s = arg;

	s->no_h2 = false;
	h2c_site_wake(s);
}

/* Sites are few (API server, broker), so a list suffices. tls is compared by pointer, because two
 * objects never share a connection. */
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
	free(s);
}

/* A call of a site without h2 gets H2C_NO_H2, so that its caller uses httpc. */
void h2c_site_fail(struct h2c_site *s, const struct err *err)
{
	struct h2c_call *k;

	while ((k = TAILQ_FIRST(&s->queue)) != NULL || (k = TAILQ_FIRST(&s->yielding)) != NULL) {
		k->no_h2 = s->no_h2;
		h2c_call_over(k, err->kind, err->text);
	}
}

/* The moment after the last urgent request (H2C_FIRST_MS) counts too: a caller often sends its next
 * request from done. */
bool h2c_site_holds(const struct h2c_site *s, const struct h2c_call *k)
{
	return k->yields && s->n_yielding >= HTTPC_YIELDING &&
	       (s->n_first || (s->first_ms && clock_boot_ms() - s->first_ms < H2C_FIRST_MS));
}

/* The first connection with room: older ones are filled first, so that newer ones become idle and
 * are closed. */
static struct h2c_conn *find_place(const struct h2c_site *s, const struct h2c_call *k)
{
	struct h2c_conn *n;

	TAILQ_FOREACH (n, &s->conns, link)
		if (h2c_session_has_place(n, k))
			return n;
	return NULL;
}

/* One connection is enough, unless long-lived streams fill it. A connection that is still opening
 * counts: the queue waits for it. */
static bool needs_connection(const struct h2c_site *s)
{
	struct h2c_conn *n;

	TAILQ_FOREACH (n, &s->conns, link)
		if (n->state != H2C_DRAINING && !h2c_session_only_long(n))
			return false;
	return s->n_conns < H2C_CONNS_MAX;
}

/* Send calls in order until the first one without a place: later ones must not overtake it. */
static void send_queue(struct h2c_site *s, struct h2c_calls *queue)
{
	struct h2c_conn *n;
	struct h2c_call *k;

	while ((k = TAILQ_FIRST(queue)) != NULL && (n = find_place(s, k)) != NULL)
		h2c_session_send(n, k);
}

/* The site's deferred work. It may free the site, so nothing may use it afterwards. */
static void on_work(void *arg)
{
	struct h2c_site *s = arg;
	struct h2c_conn *n, *next;

	if (s->no_h2 || (!s->tls && s->n_conns == 0)) {
		struct err err = ERR_INIT;

		s->no_h2 = true;
		err_set(&err, ERR_TRANSIENT, "the server does not support HTTP/2");
		h2c_site_fail(s, &err);
		/* Without TLS there is no ALPN to learn h2 from, and no probe. */
		s->no_h2 = timer_is_set(&s->probe);
	}
	send_queue(s, &s->queue);
	send_queue(s, &s->yielding);
	/* h2c_conn_write() may free n. */
	for (n = TAILQ_FIRST(&s->conns); n; n = next) {
		next = TAILQ_NEXT(n, link);
		h2c_conn_write(n);
	}
	if (!(TAILQ_EMPTY(&s->queue) && TAILQ_EMPTY(&s->yielding)) && needs_connection(s))
		h2c_conn_dial(s);
	if (s->n_calls == 0 && s->n_conns == 0 && !s->no_h2)
		site_free(s);
}

/* ---- delivery ---- */

static void on_deliver(void *arg)
{
	h2c_deliver(arg);
}

void h2c_deliver_soon(struct h2c *c)
{
	defer_call(&c->deliver, c->loop, on_deliver, c);
}

/* Deliver until both lists are empty, answers first. User code may make further calls ready, or
 * free the h2c: then `gone` is set. */
void h2c_deliver(struct h2c *c)
{
	struct h2c_call *k;
	bool gone = false;

	defer_cancel(&c->deliver);
	c->gone = &gone;
	while (!TAILQ_EMPTY(&c->answers) || !TAILQ_EMPTY(&c->streams)) {
		if ((k = TAILQ_FIRST(&c->answers)) == NULL)
			k = TAILQ_FIRST(&c->streams);
		if (k->on_data)
			h2c_call_deliver(k);
		else
			h2c_call_end(k);
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

/* Setting *gone lets h2c_deliver() stop if user code freed the h2c inside of it. */
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
	struct h2c_call *k = h2c_call_new(c, scope, req, on_data, done, arg);

	if (k->site)
		h2c_call_queue(k);
	return &k->op;
}
