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
#include <stdio.h>

#include "tec/apistore/events.h"
#include "tec/apistore/list.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

struct apistore_watch {
	struct apistore_watcher watcher; /* first */
	struct apistore_objects *s;
	struct apistore_target target;
	apistore_watch_fn ready;
	void *arg;
	uint64_t at;                      /* all changes up to this version were sent */
	struct apistore_listing *initial; /* owned: initial events in progress; NULL: none */
	/* Initial events are not complete; a bookmark ends them; the client takes bookmarks. */
	bool wants_initial, initial_bookmark, bookmarks;
	bool bookmark; /* one is due */
	bool waits;    /* for the open transaction to end */
	bool idle;     /* up to date: `at` follows the commits */
	bool end;
	bool told; /* the column definitions of a table were sent */
};

/* A watch that is up to date and not concerned moves along without being read, so that its position
 * is not compacted away while nothing happens to its objects. */
static void wake(struct apistore_watcher *watcher, char *const *changed, size_t n)
{
	struct apistore_watch *w = (struct apistore_watch *)watcher;
	bool due = w->waits;

	w->waits = false;
	for (size_t i = 0; !due && i < n; i++)
		due = str_eq(changed[i], w->target.qualified);
	if (!due && w->idle)
		w->at = w->s->committed;
	w->idle &= !due;
	if (due)
		w->ready(w->arg);
}

/* Check resourceVersionMatch, in the words of kube-apiserver. */
static int check_match(const char *initial, const char *match, struct apistore_answer *refused)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	static const char field[] = "resourceVersionMatch";
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	bool given = match && *match;

	if (initial && !str_eq(match, "NotOlderThan"))
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, field, NULL,
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (!initial && given)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, field, NULL,
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
	if (given && !str_eq(match, "NotOlderThan"))
		schema_cause_add_text(&causes, SCHEMA_UNSUPPORTED, field, match,
			"supported values: \"NotOlderThan\"");
	if (causes.n == 0)
		return 0;
	*refused = apistore_status_causes(&options, "ListOptions", &causes);
	return -1;
}

/* Read the options. Without a resourceVersion, or with "0", a watch starts with the current objects
 * unless the client declined initial events. */
static int read_options(struct apistore_watch *w, struct apistore_answer *refused)
{
	const struct apistore_target *t = &w->target;
	cleanup_free char *rv = apistore_target_param(t, "resourceVersion"),
			  *match = apistore_target_param(t, "resourceVersionMatch"),
			  *initial = apistore_target_param(t, "sendInitialEvents");
	bool send = apistore_target_flag(t, "sendInitialEvents");

	w->bookmarks = apistore_target_flag(t, "allowWatchBookmarks");
	if (rv && *rv && str_to_u64(rv, INT64_MAX, &w->at) < 0) {
		*refused = apistore_status_refusal(
			400, "BadRequest", "Invalid value for resourceVersion: %s", log_esc(rv));
		return -1;
	}
	if (check_match(initial, match, refused) < 0)
		return -1;
	if (send && w->at > apistore_objects_rv(w->s)) {
		*refused = apistore_status_too_large(w->at, apistore_objects_rv(w->s));
		return -1;
	}
	w->initial_bookmark = send && w->bookmarks;
	w->wants_initial = send || (!initial && w->at == 0);
	if (initial && !send && w->at == 0)
		w->at = apistore_objects_rv(w->s);
	return 0;
}

/* Options are checked before the watch is linked, so a refused one was never woken. */
struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	struct apistore_target *take_t, apistore_watch_fn ready, void *arg,
	struct apistore_answer *refused)
{
	struct apistore_watch *w = xcalloc(1, sizeof(*w));

	*w = (struct apistore_watch){
		.watcher = {.wake = wake}, .s = s, .target = *take_t, .ready = ready, .arg = arg};
	*take_t = (struct apistore_target){0};
	if (read_options(w, refused) < 0) {
		apistore_target_fini(&w->target);
		free(w);
		return NULL;
	}
	LIST_INSERT_HEAD(&s->watchers, &w->watcher, link);
	return w;
}

void apistore_watch_free(struct apistore_watch *w)
{
	if (!w)
		return;
	LIST_REMOVE(&w->watcher, link);
	apistore_list_free(w->initial);
	apistore_target_fini(&w->target);
	free(w);
}

/* ---- lines */

/* Add one line: an event with the text of its object. */
static void add_event(struct body *out, const char *type, const char *object, size_t len)
{
	cleanup_free char *head = xasprintf("{\"type\":\"%s\",\"object\":", type);

	body_add(out, head, strlen(head), 0);
	body_add(out, object, len, 0);
	body_add(out, "}\n", 2, 0);
}

/* Add an event with its object in the form that the client asked for. */
static void add_shown(struct apistore_watch *w, struct body *out, const char *type,
	const char *object, size_t len)
{
	const struct apistore_target *t = &w->target;
	struct body shown = BODY_INIT;

	const struct schema_kind *k = apistore_objects_kind(w->s, t->group, t->resource)->schema;

	if (t->form.shape != APISTORE_SHAPE_OBJECT) {
		apistore_form_object(&t->form, k, object, len, !w->told, &shown);
	} else if (apistore_events_renames(t->group)) {
		apistore_form_event(object, len, false, &shown);
	} else {
		add_event(out, type, object, len);
		return;
	}
	w->told = true;
	add_event(out, type, shown.data, shown.len);
	body_fini(&shown);
}

/* End the watch with an ERROR event, the only way to report an error after the 200. */
static enum apistore_watch_next give_error(
	struct apistore_watch *w, struct body *out, struct apistore_answer take_a)
{
	add_event(out, "ERROR", take_a.body, take_a.len);
	apistore_answer_fini(&take_a);
	w->end = true;
	return APISTORE_WATCH_END;
}

/* End the watch because its position is no longer in the history; the client must list again. */
static enum apistore_watch_next give_gone(struct apistore_watch *w, struct body *out)
{
	return give_error(w, out,
		apistore_status_refusal(410, "Expired",
			"too old resource version: %" PRIu64 " (%" PRIu64 ")", w->at,
			apistore_db_oldest(w->s->db)));
}

/* Add a bookmark: an object with nothing but the position to resume from. */
static void give_bookmark(struct apistore_watch *w, struct body *out, bool initial_end)
{
	const struct apistore_target *t = &w->target;
	const char *kind = apistore_objects_kind(w->s, t->group, t->resource)->kind;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	strbuf_addc(&b, '{');
	if (kind)
		strbuf_addf(&b, "\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\",", kind, t->group,
			t->group[0] ? "/" : "", t->version);
	strbuf_addf(&b, "\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"", w->at);
	strbuf_adds(&b, ",\"creationTimestamp\":null");
	if (initial_end)
		strbuf_adds(&b, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
	strbuf_adds(&b, "}}");
	add_shown(w, out, "BOOKMARK", b.data, b.len);
}

struct take {
	struct apistore_watch *w;
	struct body *out;
	size_t end; /* the length of out at which to stop */
	bool full;  /* it stopped for that */
};

/* A look at the version before a change. */
struct before {
	const struct apistore_selector *select;
	bool there, matched;
};

/* Note whether the version before matched. A deletion matches nothing. */
static bool look_before(void *arg, const struct apistore_version *v)
{
	struct before *b = arg;

	b->there = true;
	b->matched = v->event != APISTORE_DELETED &&
		     apistore_selector_matches(b->select, v->key.ns, v->key.name, v->meta);
	return false;
}

/* Did the version before match the selector? One that was compacted away counts as a match: a
 * DELETED event for an unknown object is harmless, but a missing one leaves the object with the
 * client for ever. */
static bool matched_before(struct apistore_watch *w, const struct apistore_version *v)
{
	struct before b = {.select = w->target.select};
	struct err err = ERR_INIT;

	if (!v->prev)
		return false;
	if (apistore_db_get(w->s->db, &v->key, v->prev, look_before, &b, &err) < 0)
		return true;
	return !b.there || b.matched;
}

/* Add one change to the output, as the event that the client must see. */
static bool take_change(void *arg, const struct apistore_version *v)
{
	struct take *t = arg;
	struct apistore_watch *w = t->w;
	const struct apistore_selector *select = w->target.select;
	enum apistore_event event = v->event;

	if (t->out->len >= t->end) {
		t->full = true;
		return false;
	}
	/* The position moves even if the change is not sent, so that it is not looked at again. */
	w->at = v->rv;
	if (select && !apistore_selector_matches(select, v->key.ns, v->key.name, v->meta)) {
		if (v->event == APISTORE_ADDED || !matched_before(w, v))
			return true;
		event = APISTORE_DELETED;
	} else if (select && v->event == APISTORE_MODIFIED && !matched_before(w, v)) {
		event = APISTORE_ADDED;
	}
	add_shown(w, t->out, apistore_event_name(event), v->body, v->len);
	return true;
}

/* ---- taking */

/* Send the objects as of the last commit, then switch to changes after it. */
static enum apistore_watch_next take_initial(struct apistore_watch *w, struct body *out, size_t max)
{
	struct err err = ERR_INIT;
	int rc;

	if (!w->initial) {
		w->at = w->s->committed;
		w->initial = apistore_list_events(w->s, &w->target, w->at);
	}
	rc = apistore_list_pull(w->initial, out, max, &err);
	if (rc < 0 && err.kind == ERR_GONE)
		return give_gone(w, out);
	if (rc < 0)
		return give_error(w, out, apistore_status_storage(&err));
	if (rc > 0)
		return APISTORE_WATCH_MORE;
	/* The first row of a listing carries the column definitions. */
	w->told = !apistore_list_is_empty(w->initial);
	apistore_list_free(w->initial);
	w->initial = NULL;
	w->wants_initial = false;
	if (w->initial_bookmark)
		give_bookmark(w, out, true);
	return APISTORE_WATCH_MORE;
}

/* Send changes up to the last commit. A watch from a future version stays silent until it is
 * reached. */
static enum apistore_watch_next take_changes(struct apistore_watch *w, struct body *out, size_t max)
{
	struct take t = {.w = w, .out = out, .end = out->len + max};
	const char *ns = w->target.ns[0] ? w->target.ns : NULL;
	struct err err = ERR_INIT;

	if (w->at < apistore_db_oldest(w->s->db))
		return give_gone(w, out);
	if (w->at < w->s->committed && apistore_db_changes(w->s->db, w->target.qualified, ns, w->at,
					       w->s->committed, take_change, &t, &err) < 0)
		return give_error(w, out, apistore_status_storage(&err));
	if (t.full)
		return APISTORE_WATCH_MORE;
	w->idle = w->at <= w->s->committed; /* false: a position in the future */
	if (w->idle)
		w->at = w->s->committed;
	if (w->bookmark)
		give_bookmark(w, out, false);
	w->bookmark = false;
	return APISTORE_WATCH_IDLE;
}

/* While a transaction is open nothing is sent; the commit or rollback wakes the watch. */
enum apistore_watch_next apistore_watch_take(struct apistore_watch *w, struct body *out, size_t max)
{
	enum apistore_watch_next next;

	if (w->end)
		return APISTORE_WATCH_END;
	if (w->s->open) {
		w->waits = true;
		return APISTORE_WATCH_IDLE;
	}
	next = w->wants_initial ? take_initial(w, out, max) : take_changes(w, out, max);
	return next;
}

void apistore_watch_bookmark(struct apistore_watch *w)
{
	if (!w->bookmarks)
		return;
	w->bookmark = true;
	w->ready(w->arg);
}

void apistore_watch_bookmark_all(struct apistore_objects *s)
{
	struct apistore_watcher *w, *next;

	for (w = LIST_FIRST(&s->watchers); w; w = next) {
		next = LIST_NEXT(w, link);
		apistore_watch_bookmark((struct apistore_watch *)w);
	}
}

/* Each watch ends when its owner takes the next time. */
void apistore_watch_end_all(struct apistore_objects *s)
{
	struct apistore_watcher *watcher, *next;

	for (watcher = LIST_FIRST(&s->watchers); watcher; watcher = next) {
		struct apistore_watch *w = (struct apistore_watch *)watcher;

		next = LIST_NEXT(watcher, link);
		w->end = true;
		w->ready(w->arg);
	}
}

void apistore_watch_compact(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (apistore_objects_commit(s, &err) < 0)
		return;
	/* One beyond the last version, so that even a watch from the last version gets 410. */
	apistore_txn_keep_history_from(s, apistore_db_rv(s->db) + 1);
	(void)!apistore_objects_commit(s, &err);
}
