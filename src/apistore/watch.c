/* SPDX-License-Identifier: MIT */
/*
 * The history is an array of changes that share their objects; a watch is given what it missed when
 * it is made and each change as it happens.
 */
#include "config.h"

#include "tec/apistore/watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/apistore/status.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

struct apistore_watch {
	struct apistore_objects *s;
	struct apistore_watch *next, **prevp;
	struct apistore_target target;
	const struct apistore_watch_ops *ops; /* borrowed */
	void *arg;
};

static void give(struct apistore_watch *w, const char *type, const char *object)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	strbuf_addf(&line, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
	w->ops->line(w->arg, line.data, line.len);
}

static void give_change(
	struct apistore_watch *w, const char *type, const char *collection, struct json_object *o)
{
	cleanup_free char *text = NULL;

	if (!str_eq(collection, w->target.collection) || !apistore_target_selects(&w->target, o))
		return;
	text = json_text(o);
	give(w, type, text);
}

void apistore_watch_note(
	struct apistore_objects *s, const char *type, const char *collection, struct json_object *o)
{
	if (s->n_history == s->cap_history) {
		s->cap_history = s->cap_history ? s->cap_history * 2 : 64;
		s->history = xreallocarray(s->history, s->cap_history, sizeof(*s->history));
	}
	s->history[s->n_history++] =
		(struct apistore_change){s->rv, type, xstrdup(collection), json_object_get(o)};
	for (struct apistore_watch *w = s->watches; w; w = w->next)
		give_change(w, type, collection, o);
}

struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	struct apistore_target *take_t, uint64_t rv, const struct apistore_watch_ops *ops,
	void *arg)
{
	struct apistore_watch *w = xcalloc(1, sizeof(*w));
	size_t from = s->n_history;

	*w = (struct apistore_watch){
		.s = s, .next = s->watches, .target = *take_t, .ops = ops, .arg = arg};
	*take_t = (struct apistore_target){0};
	w->prevp = &s->watches;
	if (w->next)
		w->next->prevp = &w->next;
	s->watches = w;
	if (rv < s->oldest_rv) {
		struct apistore_answer gone = apistore_status_refusal(410, "Expired",
			"too old resource version: %" PRIu64 " (%" PRIu64 ")", rv, s->oldest_rv);

		give(w, "ERROR", gone.body);
		apistore_answer_fini(&gone);
		ops->end(arg);
		return w;
	}
	while (from > 0 && s->history[from - 1].rv > rv)
		from--;
	for (size_t i = from; i < s->n_history; i++)
		give_change(w, s->history[i].type, s->history[i].collection, s->history[i].o);
	return w;
}

void apistore_watch_free(struct apistore_watch *w)
{
	if (!w)
		return;
	*w->prevp = w->next;
	if (w->next)
		w->next->prevp = w->prevp;
	apistore_target_fini(&w->target);
	free(w);
}

void apistore_watch_bookmark(struct apistore_watch *w)
{
	char text[80];

	snprintf(text, sizeof(text), "{\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"}}",
		w->s->rv);
	if (strstr(w->target.query, "allowWatchBookmarks=true"))
		give(w, "BOOKMARK", text);
}

void apistore_watch_bookmark_all(struct apistore_objects *s)
{
	for (struct apistore_watch *w = s->watches; w; w = w->next)
		apistore_watch_bookmark(w);
}

void apistore_watch_end_all(struct apistore_objects *s)
{
	for (struct apistore_watch *w = s->watches; w; w = w->next)
		w->ops->end(w->arg);
}

void apistore_watch_compact(struct apistore_objects *s)
{
	for (size_t i = 0; i < s->n_history; i++) {
		free(s->history[i].collection);
		json_object_put(s->history[i].o);
	}
	s->n_history = 0;
	s->oldest_rv = ++s->rv;
}
