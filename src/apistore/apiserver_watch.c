/* SPDX-License-Identifier: MIT */
/*
 * Streams of watch events. Lines are taken from the store only as fast as the client reads, so a
 * client that stops reading costs one connection and one piece of memory. It gets 410 Gone once the
 * store has compacted the history it had not read, unless the listener closes the connection first.
 */
#include "config.h"

#include "tec/apistore/stream.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/loop/timer.h"

#include "apiserver_internal.h"

#define PIECE       (64u << 10)
#define BOOKMARK_MS 60000
#define LAST_MS     2000 /* before its end a watch sends a bookmark to resume from */
/* A random-like lifetime, as in kube-apiserver: watches must end, but not all at once. */
#define LIFE_MIN_S  1800
#define LIFE_SPREAD 1800

static struct metric watches_gauge =
	METRIC_GAUGE_INIT("tec_api_watches", "Watches that clients have open.", NULL, NULL);

struct apiserver_watch {
	LIST_ENTRY(apiserver_watch) link;
	struct apiserver_shared *shared;
	struct apistore_stream *w; /* owned */
	struct timer tick;         /* the next bookmark, or the end */
	uint64_t end_ms;
	struct apiserver_stream stream;
};

/* Send the next lines, and ask for the next turn of the loop while the store has more. */
static void take_more(void *arg)
{
	struct apiserver_watch *w = arg;
	struct body out = BODY_INIT;
	enum apistore_watch_next next = apistore_stream_take(w->w, &out, PIECE);

	apiserver_stream_add(&w->stream, out.data, out.len);
	body_fini(&out);
	if (next == APISTORE_WATCH_END)
		httpd_stream_end(w->stream.req); /* w is gone */
	else if (next == APISTORE_WATCH_MORE)
		apiserver_stream_more(&w->stream);
}

/* Called by the store when there may be more. The work is deferred: the caller is in a commit. */
static void on_ready(void *arg)
{
	struct apiserver_watch *w = arg;

	apiserver_stream_more(&w->stream);
}

/* Return the time to the next timer: a bookmark each minute, the last one LAST_MS before the end,
 * and then the end itself. */
static uint64_t next_tick(uint64_t left_ms)
{
	uint64_t last = left_ms > LAST_MS ? left_ms - LAST_MS : left_ms;

	return last < BOOKMARK_MS ? last : BOOKMARK_MS;
}

/* Send the next bookmark, or end the stream. Ending it frees w. */
static void on_tick(void *arg)
{
	struct apiserver_watch *w = arg;
	uint64_t now = clock_boot_ms(), left = w->end_ms > now ? w->end_ms - now : 0;

	if (left == 0) {
		httpd_stream_end(w->stream.req);
		return;
	}
	apistore_stream_bookmark(w->w);
	timer_set(&w->tick, next_tick(left));
}

static void on_gone(void *arg)
{
	struct apiserver_watch *w = arg;

	apistore_stream_free(w->w);
	apiserver_stream_cancel(&w->stream);
	timer_fini(&w->tick);
	LIST_REMOVE(w, link);
	w->shared->n_watches--;
	metric_add(&watches_gauge, NULL, NULL, -1);
	free(w);
}

/* Return 0 to LIFE_SPREAD seconds, different for every watch. It need not be unpredictable. */
static uint64_t spread(const struct apiserver_shared *shared)
{
	return (clock_boot_us() / 7 + shared->n_watches * 61) % LIFE_SPREAD;
}

/* Start the stream. w is owned by the request from here on and freed by on_gone. */
static void start(const struct apiserver_call *c, struct apiserver_watch *w, uint64_t life_s)
{
	w->shared = c->shared;
	w->stream = (struct apiserver_stream){
		.req = c->req, .loop = c->shared->loop, .piece = take_more, .arg = w};
	w->end_ms = clock_boot_ms() + life_s * 1000;
	timer_init(&w->tick, c->shared->loop, on_tick, w);
	timer_set(&w->tick, next_tick(life_s * 1000));
	LIST_INSERT_HEAD(&c->shared->watches, w, link);
	c->shared->n_watches++;
	metric_add(&watches_gauge, NULL, NULL, 1);
	apiserver_stream_start(&w->stream, 200, APISERVER_JSON);
	httpd_req_on_gone(c->req, on_gone, w);
	on_ready(w);
}

/* Start a watch or refuse it. timeoutSeconds bounds its life; without it, the server chooses. */
void apiserver_watch_start(const struct apiserver_call *c)
{
	cleanup_free char *seconds = apistore_target_param(c->t, "timeoutSeconds");
	struct apiserver_watch *w = xcalloc(1, sizeof(*w));
	struct apistore_answer refused = {0};
	uint64_t life = 0;

	if (seconds && str_to_u64(seconds, UINT32_MAX, &life) < 0)
		refused = apistore_status_refusal(
			400, "BadRequest", "timeoutSeconds must be a number");
	else
		w->w = apistore_stream_new(c->shared->conf.objects, c->t, on_ready, w, &refused);
	if (w->w) {
		start(c, w, life ? life : LIFE_MIN_S + spread(c->shared));
		return;
	}
	free(w);
	apiserver_answer(c->req, refused);
}

void apiserver_watch_end_all(struct apiserver_shared *shared)
{
	while (!LIST_EMPTY(&shared->watches))
		httpd_stream_end(LIST_FIRST(&shared->watches)->stream.req);
}
