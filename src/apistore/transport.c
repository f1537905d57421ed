/* SPDX-License-Identifier: MIT */
/*
 * One call = bytes for on_data and an answer, both given from a deferred call. on_data may cancel
 * the call it is given by: `gone` says so.
 */
#include "config.h"

#include "tec/apistore/transport.h"

#include <assert.h>

#include "tec/apistore/request.h"
#include "tec/apistore/watch.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/loop/timer.h"

#define BOOKMARK_MS 60000

struct transport {
	struct k8s_transport base; /* first */
	struct apistore_objects *objects;
	size_t in_flight;
};

struct call {
	struct k8s_exchange x; /* first */
	struct defer defer;
	struct timer tick;            /* of a watch: the next bookmark or its end */
	uint64_t end_ms;              /* 0: none */
	struct apistore_watch *watch; /* owned; NULL: a plain request */
	struct strbuf out;            /* for on_data */
	bool ended;
	struct apistore_answer answer; /* with ended */
	bool *gone;                    /* set while on_data runs */
};

static void stop(struct k8s_exchange *x)
{
	struct call *c = (struct call *)x;

	if (c->gone)
		*c->gone = true;
	apistore_watch_free(c->watch);
	timer_fini(&c->tick);
	defer_cancel(&c->defer);
	if (c->out.data)
		secret_wipe(c->out.data, c->out.cap);
	strbuf_fini(&c->out);
	apistore_answer_fini(&c->answer);
	((struct transport *)x->t)->in_flight--;
}

static void call_done(struct call *c, const struct err *err)
{
	struct apistore_answer answer = c->answer;
	struct k8s_answer a = {.status = answer.code,
		.body = answer.body ? answer.body : "",
		.body_len = answer.len};

	c->answer = (struct apistore_answer){0};
	k8s_transport_end(&c->x, err, &a);
	apistore_answer_fini(&answer);
}

static void deliver(void *arg)
{
	struct call *c = arg;
	struct strbuf out = c->out;
	struct err err = ERR_INIT;
	bool gone = false;
	int rc = 0;

	c->out = (struct strbuf)STRBUF_INIT;
	if (out.len) {
		c->gone = &gone;
		rc = c->x.to.on_data(c->x.arg, out.data, out.len, &err);
		secret_wipe(out.data, out.cap);
	}
	strbuf_fini(&out);
	if (gone)
		return;
	c->gone = NULL;
	if (rc < 0 || c->ended)
		call_done(c, &err);
}

static void wake(struct call *c)
{
	defer_call(&c->defer, c->x.t->loop, deliver, c);
}

static void end(struct call *c, struct apistore_answer take_answer)
{
	c->ended = true;
	c->answer = take_answer;
	if (c->x.to.on_data && take_answer.code / 100 == 2 && take_answer.body) {
		strbuf_add(&c->out, take_answer.body, take_answer.len);
		apistore_answer_fini(&c->answer);
		c->answer.code = take_answer.code;
	}
	wake(c);
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct call *c = arg;

	if (c->ended)
		return;
	strbuf_add(&c->out, line, len);
	wake(c);
}

static void on_end(void *arg)
{
	struct call *c = arg;

	if (!c->ended)
		end(c, (struct apistore_answer){.code = 200});
}

static void on_tick(void *arg)
{
	struct call *c = arg;
	uint64_t now = clock_boot_ms(), left = c->end_ms > now ? c->end_ms - now : 0;

	if (c->end_ms && !left) {
		on_end(c);
		return;
	}
	apistore_watch_bookmark(c->watch);
	timer_set(&c->tick, c->end_ms && left < BOOKMARK_MS ? left : BOOKMARK_MS);
}

static struct apistore_objects *objects_of(const struct call *c)
{
	return ((const struct transport *)c->x.t)->objects;
}

static void start_watch(struct call *c, struct apistore_target *take_t)
{
	static const struct apistore_watch_ops ops = {on_line, on_end};
	cleanup_free char *rv = apistore_target_param(take_t, "resourceVersion"),
			  *seconds = apistore_target_param(take_t, "timeoutSeconds");
	uint64_t from = 0, s = 0;

	if (!c->x.to.on_data || (rv && str_to_u64(rv, UINT64_MAX, &from) < 0) ||
		(seconds && str_to_u64(seconds, UINT32_MAX, &s) < 0)) {
		end(c, apistore_status_refusal(400, "BadRequest",
			       "a watch needs a stream, a resourceVersion and timeoutSeconds that are numbers"));
		return;
	}
	c->end_ms = s ? clock_boot_ms() + s * 1000 : 0;
	timer_set(&c->tick, s && s * 1000 < BOOKMARK_MS ? s * 1000 : BOOKMARK_MS);
	c->watch = apistore_watch_new(objects_of(c), take_t, from, &ops, c);
}

static bool is_watch(const struct k8s_request *req, const struct apistore_target *t)
{
	cleanup_free char *watch = apistore_target_param(t, "watch");

	return str_eq(req->method, "GET") && !t->name[0] &&
	       (str_eq(watch, "true") || str_eq(watch, "1"));
}

static void start(struct k8s_exchange *x)
{
	struct call *c = (struct call *)x;
	const struct k8s_request *req = &x->req;
	cleanup_apistore_target struct apistore_target t;
	struct err err = ERR_INIT;

	((struct transport *)x->t)->in_flight++;
	timer_init(&c->tick, x->t->loop, on_tick, c);
	if (apistore_target_parse(req->path, &t, &err) < 0) {
		if (err.kind == ERR_NOT_FOUND)
			end(c, (struct apistore_answer){404, xstrdup(err.text), strlen(err.text)});
		else
			end(c, apistore_status_refusal(400, "BadRequest", "%s", err.text));
	} else if (is_watch(req, &t)) {
		start_watch(c, &t);
	} else {
		end(c, apistore_request(objects_of(c), &t,
			       &(const struct apistore_request){req->method, req->content_type,
				       req->body.data, req->body.len}));
	}
}

static void transport_free(struct k8s_transport *base)
{
	struct transport *t = (struct transport *)base;

	assert(t->in_flight == 0);
	free(t);
}

struct k8s_transport *apistore_transport_new(struct loop *l, struct apistore_objects *objects)
{
	static const struct k8s_transport_ops ops = {start, stop, transport_free};
	struct transport *t = xcalloc(1, sizeof(*t));

	t->base = (struct k8s_transport){&ops, l, sizeof(struct call)};
	t->objects = objects;
	return &t->base;
}
