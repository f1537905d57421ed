/* SPDX-License-Identifier: MIT */
/*
 * Initial events come from a list, all later ones from the history. Nothing is read while a
 * transaction is open, because its changes may still be rolled back.
 *
 * With a selector, a change can make an object start or stop matching. It is then reported as ADDED
 * or DELETED, which takes a look at the version before.
 */
#include "config.h"

#include "tec/apistore/watch.h"

#include <inttypes.h>

#include "tec/apistore/list.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "apistore_internal.h"

struct apistore_watch {
	struct apistore_watcher watcher; /* first */
	struct apistore_objects *s;
	struct apistore_watch_options of; /* of.initial: not complete yet */
	apistore_watch_fn ready;
	void *arg;
	uint64_t at;                          /* all changes up to this version were given */
	struct apistore_list_cursor *initial; /* owned: in progress; NULL: not */
	bool bookmark;                        /* one is due */
	bool waits;                           /* for the open transaction to end */
	bool idle;                            /* up to date: `at` follows the commits */
	bool end;
};

/* A watch that is up to date and not concerned moves along without being read, so that its position
 * is not compacted away while nothing happens to its objects. */
static void wake(struct apistore_watcher *watcher, char *const *changed, size_t n)
{
	struct apistore_watch *w = (struct apistore_watch *)watcher;
	bool due = w->waits;

	w->waits = false;
	for (size_t i = 0; !due && i < n; i++)
		due = str_eq(changed[i], w->of.resource);
	if (!due && w->idle)
		w->at = w->s->committed;
	w->idle &= !due;
	if (due)
		w->ready(w->arg);
}

struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	const struct apistore_watch_options *of, apistore_watch_fn ready, void *arg)
{
	struct apistore_watch *w = xcalloc(1, sizeof(*w));

	*w = (struct apistore_watch){.watcher = {.wake = wake},
		.s = s,
		.of = *of,
		.ready = ready,
		.arg = arg,
		.at = of->at};
	LIST_INSERT_HEAD(&s->watchers, &w->watcher, link);
	return w;
}

void apistore_watch_free(struct apistore_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(&w->watcher, link);
	apistore_list_free(w->initial);
	free(w);
}

/* ---- changes */

struct take {
	struct apistore_watch *w;
	const struct apistore_watch_sink *to;
	bool enough; /* the sink wants no more */
	bool full;   /* there is more */
};

/* A look at the version before a change. */
struct before {
	const struct apistore_selector *select;
	bool matched;
};

/* Note whether the version before matched. A deletion matches nothing. */
static bool look_before(void *arg, const struct apistore_version *v)
{
	struct before *b = arg;

	b->matched = v->event != APISTORE_DELETED &&
		     apistore_selector_matches(b->select, v->key.ns, v->key.name, v->meta);
	return false;
}

/* Did the version before match the selector? One that was compacted away or cannot be read counts as
 * a match: a DELETED event for an unknown object is harmless, but a missing one leaves the object
 * with the client for ever. */
static bool matched_before(struct apistore_watch *w, const struct apistore_version *v)
{
	struct before b = {w->of.select, v->prev != 0};
	struct err ignored = ERR_INIT;

	if (v->prev)
		(void)!apistore_db_get(w->s->db, &v->key, v->prev, look_before, &b, &ignored);
	return b.matched;
}

/* Give one change, as the event that the client must see. */
static bool give_change(void *arg, const struct apistore_version *v)
{
	struct take *t = arg;
	struct apistore_watch *w = t->w;
	const struct apistore_selector *select = w->of.select;
	enum apistore_event event = v->event;

	if (t->enough) {
		t->full = true;
		return false;
	}
	/* The position moves even if the change is not given, so that it is not looked at again. */
	w->at = v->rv;
	if (select && !apistore_selector_matches(select, v->key.ns, v->key.name, v->meta)) {
		if (v->event == APISTORE_ADDED || !matched_before(w, v))
			return true;
		event = APISTORE_DELETED;
	} else if (select && v->event == APISTORE_MODIFIED && !matched_before(w, v)) {
		event = APISTORE_ADDED;
	}
	t->enough = !t->to->event(t->to->arg, event, v);
	return true;
}

/* ---- taking */

static enum apistore_watch_next end(struct apistore_watch *w)
{
	w->end = true;
	return APISTORE_WATCH_END;
}

/* The position is no longer in the history; the client must list again. */
static enum apistore_watch_next end_gone(struct apistore_watch *w, struct err *err)
{
	(void)err_set_http(err, ERR_GONE, 410,
		"too old resource version: %" PRIu64 " (%" PRIu64 ")", w->at,
		apistore_db_oldest(w->s->db));
	return end(w);
}

static bool give_initial(void *arg, const struct apistore_version *v)
{
	const struct take *t = arg;

	return t->to->event(t->to->arg, APISTORE_ADDED, v);
}

/* Give the objects as of the last commit, then switch to changes after it. */
static enum apistore_watch_next take_initial(struct take *t, struct err *err)
{
	struct apistore_watch *w = t->w;
	int rc;

	if (!w->initial) {
		const struct apistore_list_options of = {
			w->of.resource, w->of.ns, w->of.select, 0, 0, false, NULL};

		(void)!apistore_list_start(w->s, &of, &w->initial, err);
		w->at = w->initial->at;
	}
	rc = apistore_list_take(w->initial, give_initial, t, err);
	if (rc < 0 && err->kind == ERR_GONE) {
		err_clear(err);
		return end_gone(w, err);
	}
	if (rc < 0)
		return end(w);
	if (rc > 0)
		return APISTORE_WATCH_MORE;
	apistore_list_free(w->initial);
	w->initial = NULL;
	w->of.initial = false;
	if (w->of.initial_bookmark)
		t->to->bookmark(t->to->arg, w->at, true);
	return APISTORE_WATCH_MORE;
}

/* Give changes up to the last commit. A watch from a future version stays silent until it is
 * reached. */
static enum apistore_watch_next take_changes(struct take *t, struct err *err)
{
	struct apistore_watch *w = t->w;

	if (w->at < apistore_db_oldest(w->s->db))
		return end_gone(w, err);
	if (w->at < w->s->committed && apistore_db_changes(w->s->db, w->of.resource, w->of.ns,
					       w->at, w->s->committed, give_change, t, err) < 0)
		return end(w);
	if (t->full)
		return APISTORE_WATCH_MORE;
	w->idle = w->at <= w->s->committed; /* false: a position in the future */
	if (w->idle)
		w->at = w->s->committed;
	if (w->bookmark)
		t->to->bookmark(t->to->arg, w->at, false);
	w->bookmark = false;
	return APISTORE_WATCH_IDLE;
}

/* While a transaction is open nothing is given; the commit or rollback wakes the watch. */
enum apistore_watch_next apistore_watch_take(
	struct apistore_watch *w, const struct apistore_watch_sink *to, struct err *err)
{
	struct take t = {w, to, false, false};

	if (w->end)
		return APISTORE_WATCH_END;
	if (w->s->open) {
		w->waits = true;
		return APISTORE_WATCH_IDLE;
	}
	return w->of.initial ? take_initial(&t, err) : take_changes(&t, err);
}

void apistore_watch_bookmark(struct apistore_watch *w)
{
	if (!w->of.bookmarks)
		return;
	w->bookmark = true;
	w->ready(w->arg);
}

/* A watch ends when its owner takes the next time. */
void apistore_watch_all(struct apistore_objects *s, bool end)
{
	struct apistore_watcher *watcher, *next;

	for (watcher = LIST_FIRST(&s->watchers); watcher; watcher = next) {
		struct apistore_watch *w = (struct apistore_watch *)watcher;

		next = LIST_NEXT(watcher, link);
		w->end |= end;
		if (end)
			w->ready(w->arg);
		else
			apistore_watch_bookmark(w);
	}
}

void apistore_watch_compact(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (apistore_objects_commit(s, &err) < 0)
		return;
	/* One beyond the last version, so that even a watch from the last version gets 410. */
	apistore_objects_keep_history_from(s, apistore_db_rv(s->db) + 1);
	(void)!apistore_objects_commit(s, &err);
}
