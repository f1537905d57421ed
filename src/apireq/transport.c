/* SPDX-License-Identifier: MIT */
/*
 * A call is either an answer that waits for its commit, or a watch. on_data is always called from
 * the loop, never from within the request, and may cancel the call: `gone` detects that. Long lists
 * and watches are passed on piece by piece.
 */
#include "config.h"

#include "tec/apireq/transport.h"

#include <assert.h>

#include "tec/apireq/listing.h"
#include "tec/apireq/request.h"
#include "tec/apireq/stream.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/loop/timer.h"

#define BOOKMARK_MS 60000
#define PIECE       (128u << 10) /* bytes of a list per turn of the loop */
/* Bytes of a watch per turn: enough that what was written in one turn arrives in one. */
#define EVENTS (2u << 20)

struct transport {
	struct k8s_transport base; /* first */
	struct store_objects *objects;
	size_t in_flight;
};

struct call {
	struct k8s_exchange x; /* first */
	struct store_wait wait;
	struct defer defer;
	struct timer tick;           /* of a watch: the next bookmark or its end */
	uint64_t end_ms;             /* of a watch; 0: no end */
	struct apireq_stream *watch; /* owned; NULL: not a watch */
	struct apireq_answer answer;
	bool *gone; /* while on_data runs: set to true when the call is cancelled */
};

/* Release a call when it is cancelled or has ended. */
static void stop(struct k8s_exchange *x)
{
	struct call *c = (struct call *)x;

	if (c->gone)
		*c->gone = true;
	store_wait_cancel(&c->wait);
	apireq_stream_free(c->watch);
	timer_fini(&c->tick);
	defer_cancel(&c->defer);
	apireq_answer_fini(&c->answer);
	((struct transport *)x->t)->in_flight--;
}

/* End a call with its answer, or with an error. The answer is moved out first: the call is freed by
 * the end. */
static void call_done(struct call *c, const struct err *err)
{
	struct apireq_answer answer = c->answer;
	struct k8s_answer a = {.status = answer.code,
		.body = answer.body ? answer.body : "",
		.body_len = answer.len};

	c->answer = (struct apireq_answer){0};
	k8s_transport_end(&c->x, err, &a);
	apireq_answer_fini(&answer);
}

/* Pass data to on_data. False: the call is over, because on_data cancelled it or failed. */
static bool give(struct call *c, const char *data, size_t len)
{
	struct err err = ERR_INIT;
	bool gone = false;
	int rc;

	if (len == 0)
		return true;
	c->gone = &gone;
	rc = c->x.to.on_data(c->x.arg, data, len, &err);
	if (gone)
		return false;
	c->gone = NULL;
	if (rc < 0)
		call_done(c, &err);
	return rc == 0;
}

/* ---- answers */

/* Pass on the next piece of a list and schedule the one after it. */
static void next_piece(void *arg)
{
	struct call *c = arg;
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	body_add(&out, "", 0, PIECE + PIECE / 8); /* reserve: growing copies and wipes the buffer */
	rc = apireq_listing_pull(c->answer.more, &out, PIECE, &err);
	if (rc < 0)
		call_done(c, &err);
	else if (give(c, out.data, out.len)) {
		if (rc > 0)
			defer_call(&c->defer, c->x.t->loop, next_piece, c);
		else
			call_done(c, &err);
	}
	body_fini(&out);
}

/* Answer after the commit, or report its failure. Error answers are never streamed. */
static void on_stored(void *arg, const struct err *failed)
{
	struct call *c = arg;
	struct apireq_answer *a = &c->answer;
	struct err err = ERR_INIT;
	char *body;
	size_t len;
	bool more;

	if (err_is_set(failed)) {
		apireq_answer_fini(a);
		*a = apireq_status_storage(failed);
	}
	/* A caller that does not take a list in pieces gets the whole. */
	if (!c->x.to.on_data && a->more)
		(void)!apireq_answer_whole(a, &err);
	if (a->code / 100 != 2 || !c->x.to.on_data) {
		call_done(c, &err);
		return;
	}
	body = steal_ptr(&a->body);
	len = a->len;
	a->len = 0;
	more = a->more != NULL;
	if (give(c, body, len)) {
		if (more)
			defer_call(&c->defer, c->x.t->loop, next_piece, c);
		else
			call_done(c, &err);
	}
	file_wipe(body, len);
}

/* ---- watches */

static void on_ready(void *arg);

/* Pass on the next events. The next turn is scheduled first: on_data may cancel the call, and with
 * it the turn. */
static void take_more(void *arg)
{
	struct call *c = arg;
	struct body out = BODY_INIT;
	enum store_watch_next next = apireq_stream_take(c->watch, &out, EVENTS);
	struct err none = ERR_INIT;

	if (next == STORE_WATCH_MORE)
		on_ready(c);
	if (give(c, out.data, out.len) && next == STORE_WATCH_END) {
		c->answer.code = 200;
		call_done(c, &none);
	}
	body_fini(&out);
}

static void on_ready(void *arg)
{
	struct call *c = arg;

	defer_call(&c->defer, c->x.t->loop, take_more, c);
}

/* Send a bookmark, or end the watch if its time is over. */
static void on_tick(void *arg)
{
	struct call *c = arg;
	struct err none = ERR_INIT;
	uint64_t now = clock_boot_ms(), left = c->end_ms > now ? c->end_ms - now : 0;

	if (c->end_ms && !left) { /* its timeoutSeconds: 200, as an API server ends it */
		c->answer.code = 200;
		call_done(c, &none);
		return;
	}
	apireq_stream_bookmark(c->watch);
	timer_set(&c->tick, c->end_ms && left < BOOKMARK_MS ? left : BOOKMARK_MS);
}

/* Answer after the commit of this turn, and never before the start of the request has returned. */
static void answer_later(struct call *c, struct apireq_answer take_answer)
{
	c->answer = take_answer;
	store_objects_when_stored(
		((const struct transport *)c->x.t)->objects, &c->wait, on_stored, c);
}

/* Start a watch. Without on_data nobody would receive its events. */
static void start_watch(struct call *c, struct apireq_request_info *take_t)
{
	cleanup_free char *seconds = apireq_request_info_param(take_t, "timeoutSeconds");
	struct apireq_answer refused = {0};
	uint64_t s = 0;

	if (!c->x.to.on_data || (seconds && str_to_u64(seconds, UINT32_MAX, &s) < 0)) {
		answer_later(
			c, apireq_status_refusal(400,
				   "a watch needs a stream, and timeoutSeconds must be a number"));
		return;
	}
	c->watch = apireq_stream_new(
		((const struct transport *)c->x.t)->objects, take_t, on_ready, c, &refused);
	if (!c->watch) {
		answer_later(c, refused);
		return;
	}
	c->end_ms = s ? clock_boot_ms() + s * 1000 : 0;
	timer_set(&c->tick, s && s * 1000 < BOOKMARK_MS ? s * 1000 : BOOKMARK_MS);
	on_ready(c);
}

/* Make the request. Nothing is reported before this returns: answers come from the loop. */
static void start(struct k8s_exchange *x)
{
	struct call *c = (struct call *)x;
	const struct k8s_request *req = &x->req;
	cleanup_apireq_request_info struct apireq_request_info t;
	struct err err = ERR_INIT;

	((struct transport *)x->t)->in_flight++;
	timer_init(&c->tick, x->t->loop, on_tick, c);
	if (apireq_request_info_parse(req->path, &t, &err) < 0) {
		answer_later(c, apireq_status_no_target(&err));
	} else if (str_eq(req->method, "GET") && !t.name[0] &&
		   apireq_request_info_flag(&t, "watch")) {
		start_watch(c, &t);
	} else {
		cleanup_free char *next = apireq_request_info_param(&t, "continue");

		/* A streamed list is bounded by its pieces, and each page would cost a scan to find
		 * its end and a count of the rest. */
		if (c->x.to.on_data && !next && str_eq(req->method, "GET") && !t.name[0])
			apireq_request_info_drop(&t, "limit");
		answer_later(c, apireq_request(((const struct transport *)c->x.t)->objects, &t,
					&(const struct apireq_request){.method = req->method,
						.content_type = req->content_type,
						.body = req->body.data,
						.len = req->body.len,
						.user_agent = "tec-operator"}));
	}
}

static void transport_free(struct k8s_transport *base)
{
	struct transport *t = (struct transport *)base;

	assert(t->in_flight == 0);
	free(t);
}

struct k8s_transport *apireq_transport_new(struct loop *l, struct store_objects *objects)
{
	static const struct k8s_transport_ops ops = {start, stop, transport_free};
	struct transport *t = xcalloc(1, sizeof(*t));

	t->base = (struct k8s_transport){&ops, l, sizeof(struct call)};
	t->objects = objects;
	return &t->base;
}
