/* SPDX-License-Identifier: MIT */
/*
 * Initial events come from a list, all later ones from the history. Nothing is read while a
 * transaction is open, because its changes may still be rolled back.
 *
 * With a selector, a change can make an object start or stop matching. It is then reported as ADDED
 * or DELETED, which takes a look at the version before.
 */
#include "config.h"

#include "tec/store/watch.h"

#include <inttypes.h>

#include "tec/store/list.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "store_internal.h"

struct store_watch {
	struct store_watcher watcher; /* first */
	struct store_objects *s;
	struct store_watch_options of; /* of.initial: not complete yet */
	store_watch_fn ready;
	void *arg;
	uint64_t at;                       /* all changes up to this version were given */
	struct store_list_cursor *initial; /* owned: in progress; NULL: not */
	bool bookmark;                     /* one is due */
	bool waits;                        /* for the open transaction to end */
	bool idle;                         /* up to date: `at` follows the commits */
	bool end;
};

/* A watch that is up to date and not concerned moves along without being read, so that its position
 * is not compacted away while nothing happens to its objects. */
static void wake(struct store_watcher *watcher, char *const *changed, size_t n)
{
	struct store_watch *w = (struct store_watch *)watcher;
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

struct store_watch *store_watch_new(struct store_objects *s, const struct store_watch_options *of,
	store_watch_fn ready, void *arg)
{
	struct store_watch *w = xcalloc(1, sizeof(*w));

	*w = (struct store_watch){.watcher = {.wake = wake},
		.s = s,
		.of = *of,
		.ready = ready,
		.arg = arg,
		.at = of->at};
	LIST_INSERT_HEAD(&s->watchers, &w->watcher, link);
	return w;
}

void store_watch_free(struct store_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(&w->watcher, link);
	store_list_free(w->initial);
	free(w);
}

/* ---- changes */

struct take {
	struct store_watch *w;
	const struct store_watch_sink *to;
	bool enough; /* the sink wants no more */
	bool full;   /* there is more */
};

/* A look at the version before a change. */
struct before {
	const struct store_selector *select;
	bool matched;
};

/* Note whether the version before matched. A deletion matches nothing. */
static bool look_before(void *arg, const struct store_version *v)
{
	struct before *b = arg;

	b->matched = v->event != STORE_DELETED &&
		     store_selector_matches(b->select, v->key.ns, v->key.name, v->meta);
	return false;
}

/* Did the version before match the selector? One that was compacted away or cannot be read counts as
 * a match: a DELETED event for an unknown object is harmless, but a missing one leaves the object
 * with the client for ever. */
static bool matched_before(struct store_watch *w, const struct store_version *v)
{
	struct before b = {w->of.select, v->prev != 0};
	struct err ignored = ERR_INIT;

	if (v->prev)
		(void)!store_db_get(w->s->db, &v->key, v->prev, look_before, &b, &ignored);
	return b.matched;
}

/* Give one change, as the event that the client must see. */
static bool give_change(void *arg, const struct store_version *v)
{
	struct take *t = arg;
	struct store_watch *w = t->w;
	const struct store_selector *select = w->of.select;
	enum store_event event = v->event;

	if (t->enough) {
		t->full = true;
		return false;
	}
	/* The position moves even if the change is not given, so that it is not looked at again. */
	w->at = v->rv;
	if (select && !store_selector_matches(select, v->key.ns, v->key.name, v->meta)) {
		if (v->event == STORE_ADDED || !matched_before(w, v))
			return true;
		event = STORE_DELETED;
	} else if (select && v->event == STORE_MODIFIED && !matched_before(w, v)) {
		event = STORE_ADDED;
	}
	t->enough = !t->to->event(t->to->arg, event, v);
	return true;
}

/* ---- taking */

static enum store_watch_next end(struct store_watch *w)
{
	w->end = true;
	return STORE_WATCH_END;
}

/* The position is no longer in the history; the client must list again. */
static enum store_watch_next end_gone(struct store_watch *w, struct err *err)
{
	(void)err_set_http(err, ERR_GONE, 410,
		"too old resource version: %" PRIu64 " (%" PRIu64 ")", w->at,
		store_db_oldest(w->s->db));
	return end(w);
}

static bool give_initial(void *arg, const struct store_version *v)
{
	const struct take *t = arg;

	return t->to->event(t->to->arg, STORE_ADDED, v);
}

/* Give the objects as of the last commit, then switch to changes after it. */
static enum store_watch_next take_initial(struct take *t, struct err *err)
{
	struct store_watch *w = t->w;
	int rc;

	if (!w->initial) {
		const struct store_list_options of = {
			w->of.resource, w->of.ns, w->of.select, 0, 0, false, NULL};

		(void)!store_list_start(w->s, &of, &w->initial, err);
		w->at = w->initial->at;
	}
	rc = store_list_take(w->initial, give_initial, t, err);
	if (rc < 0 && err->kind == ERR_GONE) {
		err_clear(err);
		return end_gone(w, err);
	}
	if (rc < 0)
		return end(w);
	if (rc > 0)
		return STORE_WATCH_MORE;
	store_list_free(w->initial);
	w->initial = NULL;
	w->of.initial = false;
	if (w->of.initial_bookmark)
		t->to->bookmark(t->to->arg, w->at, true);
	return STORE_WATCH_MORE;
}

/* Give changes up to the last commit. A watch from a future version stays silent until it is
 * reached. */
static enum store_watch_next take_changes(struct take *t, struct err *err)
{
	struct store_watch *w = t->w;

	if (w->at < store_db_oldest(w->s->db))
		return end_gone(w, err);
	if (w->at < w->s->committed && store_db_changes(w->s->db, w->of.resource, w->of.ns, w->at,
					       w->s->committed, give_change, t, err) < 0)
		return end(w);
	if (t->full)
		return STORE_WATCH_MORE;
	w->idle = w->at <= w->s->committed; /* false: a position in the future */
	if (w->idle)
		w->at = w->s->committed;
	if (w->bookmark)
		t->to->bookmark(t->to->arg, w->at, false);
	w->bookmark = false;
	return STORE_WATCH_IDLE;
}

/* While a transaction is open nothing is given; the commit or rollback wakes the watch. */
enum store_watch_next store_watch_take(
	struct store_watch *w, const struct store_watch_sink *to, struct err *err)
{
	struct take t = {w, to, false, false};

	if (w->end)
		return STORE_WATCH_END;
	if (w->s->open) {
		w->waits = true;
		return STORE_WATCH_IDLE;
	}
	return w->of.initial ? take_initial(&t, err) : take_changes(&t, err);
}

void store_watch_bookmark(struct store_watch *w)
{
	if (!w->of.bookmarks)
		return;
	w->bookmark = true;
	w->ready(w->arg);
}

/* A watch ends when its owner takes the next time. */
void store_watch_all(struct store_objects *s, bool end)
{
	struct store_watcher *watcher, *next;

	for (watcher = LIST_FIRST(&s->watchers); watcher; watcher = next) {
		struct store_watch *w = (struct store_watch *)watcher;

		next = LIST_NEXT(watcher, link);
		w->end |= end;
		if (end)
			w->ready(w->arg);
		else
			store_watch_bookmark(w);
	}
}

void store_watch_compact(struct store_objects *s)
{
	struct err err = ERR_INIT;

	if (store_objects_commit(s, &err) < 0)
		return;
	/* One beyond the last version, so that even a watch from the last version gets 410. */
	store_objects_keep_history_from(s, store_db_rv(s->db) + 1);
	(void)!store_objects_commit(s, &err);
}
