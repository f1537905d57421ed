/* SPDX-License-Identifier: MIT */
/*
 * One transaction per turn: begun by the first write, committed by a deferred call, which runs in
 * the next turn, after everything that this one still does. Then, in this order, watches learn of
 * it and waiting answers go out. Upkeep (history, write-ahead log) has timers that are only set
 * when there is something to do.
 */
#include "config.h"

#include <inttypes.h>

#include "tec/apistore/objects.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

/* How long history is kept at least, as kube-apiserver does. */
#define HISTORY_MS  300000
#define HISTORY_MAX 20000 /* versions, kept or not */
#define SETTLE_MS   1000
/* Sealing again: a little per turn of the loop. */
#define RESEAL_ROWS     128
#define RESEAL_BYTES    (256u << 10)
#define RESEAL_MS       10
#define RESEAL_LATER_MS 30000 /* after one that failed */

static void on_commit(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;

	if (apistore_objects_commit(s, &err) < 0)
		log_err(LOG_ERROR, NULL, "writes could not be stored", &err);
}

static void on_settle(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;

	if (s->open || apistore_db_settle(s->db, &err) < 0)
		timer_set(&s->settle, SETTLE_MS);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL, "the database keeps what was deleted for now", &err);
}

void apistore_objects_keep_history_from(struct apistore_objects *s, uint64_t rv)
{
	struct err err = ERR_INIT;

	if (rv <= apistore_db_oldest(s->db) || apistore_objects_begin(s) < 0)
		return;
	if (apistore_db_compact(s->db, rv, &err) < 0)
		(void)apistore_objects_failed(s, &err);
}

/* Each version lives for one whole interval at least. */
static void on_compact(void *arg)
{
	struct apistore_objects *s = arg;

	apistore_objects_keep_history_from(s, s->mark);
	s->mark = s->committed;
	if (apistore_db_oldest(s->db) < s->mark)
		timer_set_earlier(&s->compact, HISTORY_MS);
}

static void on_reseal(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;
	int rc = s->open ? 1 : apistore_db_reseal(s->db, RESEAL_ROWS, RESEAL_BYTES, &err);

	if (rc > 0) {
		timer_set(&s->reseal, RESEAL_MS);
	} else if (rc < 0) {
		timer_set(&s->reseal, RESEAL_LATER_MS);
		log_err(LOG_WARN, NULL, "the rows of the store keep their earlier key for now",
			&err);
	} else {
		timer_set_earlier(&s->settle, SETTLE_MS);
		log_info(NULL, "every row of the store is sealed by its new key", NULL);
	}
}

void apistore_objects_reseal(struct apistore_objects *s)
{
	if (s->loop && apistore_db_is_resealing(s->db))
		timer_set_earlier(&s->reseal, RESEAL_MS);
}

struct apistore_objects *apistore_objects_new(
	struct apistore_db *take_db, const struct apistore_schema *schema, struct loop *l)
{
	struct apistore_objects *s = xcalloc(1, sizeof(*s));

	s->db = take_db;
	s->schema = schema;
	s->loop = l;
	s->committed = s->mark = apistore_db_rv(take_db);
	TAILQ_INIT(&s->waits);
	TAILQ_INIT(&s->ringing);
	LIST_INIT(&s->watches);
	if (l) {
		timer_init(&s->settle, l, on_settle, s);
		timer_init(&s->compact, l, on_compact, s);
		timer_init(&s->reseal, l, on_reseal, s);
		apistore_objects_reseal(s); /* an earlier process did not come to the end of it */
		if (apistore_db_oldest(take_db) < s->mark)
			timer_set(&s->compact, HISTORY_MS);
	}
	return s;
}

static void forget_changes(struct apistore_objects *s)
{
	while (s->n_changed > 0)
		free(s->changed[--s->n_changed]);
	free(s->changed);
	s->changed = NULL;
}

void apistore_objects_free(struct apistore_objects *s)
{
	if (!s)
		return;
	if (!LIST_EMPTY(&s->watches) || !TAILQ_EMPTY(&s->waits) || !TAILQ_EMPTY(&s->ringing))
		DIE("the objects of an API are freed before its watches and answers");
	defer_cancel(&s->commit);
	if (s->loop) {
		timer_fini(&s->settle);
		timer_fini(&s->compact);
		timer_fini(&s->reseal);
	}
	forget_changes(s);
	apistore_db_close(s->db);
	free(s);
}

int apistore_objects_failed(struct apistore_objects *s, const struct err *err)
{
	if (!err_is_set(&s->trouble))
		s->trouble = *err;
	if (s->open && !err_is_set(&s->doomed))
		s->doomed = *err;
	return -1;
}

bool apistore_objects_trouble(struct apistore_objects *s, struct err *err)
{
	if (!err_is_set(&s->trouble) && !err_is_set(&s->doomed))
		return false;
	*err = err_is_set(&s->trouble) ? s->trouble : s->doomed;
	s->trouble = (struct err)ERR_INIT;
	return true;
}

int apistore_objects_begin(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (s->open)
		return err_is_set(&s->doomed) ? -1 : 0;
	s->open = true; /* what cannot begin is a turn that fails as well */
	if (s->loop)
		defer_call(&s->commit, s->loop, on_commit, s);
	return apistore_db_begin(s->db, &err) < 0 ? apistore_objects_failed(s, &err) : 0;
}

/* One by one: each may cancel others or wait again. */
static void ring(struct apistore_objects *s, const struct err *err)
{
	struct apistore_wait *w;

	TAILQ_FOREACH (w, &s->waits, link)
		w->ringing = true;
	TAILQ_CONCAT(&s->ringing, &s->waits, link);
	while ((w = TAILQ_FIRST(&s->ringing))) {
		TAILQ_REMOVE(&s->ringing, w, link);
		w->s = NULL;
		w->fn(w->arg, err);
	}
}

int apistore_objects_commit(struct apistore_objects *s, struct err *err)
{
	struct err result = ERR_INIT;
	char **changed = s->changed;
	size_t n = s->n_changed;

	if (!s->open)
		return 0;
	defer_cancel(&s->commit);
	result = s->doomed;
	if (err_is_set(&result))
		apistore_db_rollback(s->db);
	else
		(void)!apistore_db_commit(s->db, &result);
	s->open = false;
	s->doomed = s->trouble = (struct err)ERR_INIT;
	s->changed = NULL;
	s->n_changed = 0;
	if (!err_is_set(&result)) {
		s->committed = apistore_db_rv(s->db);
		apistore_watch_wake(s, changed, n);
		if (s->loop && apistore_db_unsettled(s->db))
			timer_set_earlier(&s->settle, SETTLE_MS);
		if (s->loop && n > 0)
			timer_set_earlier(
				&s->compact, s->committed - apistore_db_oldest(s->db) > HISTORY_MAX
						     ? 0
						     : HISTORY_MS);
	} else {
		apistore_watch_wake(s, NULL, 0); /* those that waited for the end of it */
		if (s->gc)
			apistore_gc_undone(s->gc);
	}
	while (n > 0)
		free(changed[--n]);
	free(changed);
	ring(s, &result);
	*err = result;
	return err_is_set(&result) ? -1 : 0;
}

static void on_now(void *arg)
{
	static const struct err none = ERR_INIT;
	struct apistore_wait *w = arg;

	w->s = NULL;
	w->fn(w->arg, &none);
}

void apistore_objects_when_stored(struct apistore_objects *s, struct apistore_wait *w,
	void (*fn)(void *arg, const struct err *err), void *arg)
{
	if (w->s)
		DIE("one wait for two answers");
	w->s = s;
	w->fn = fn;
	w->arg = arg;
	w->ringing = false;
	if (s->open)
		TAILQ_INSERT_TAIL(&s->waits, w, link);
	else
		defer_call(&w->now, s->loop, on_now, w);
}

void apistore_wait_cancel(struct apistore_wait *w)
{
	if (!w->s)
		return;
	if (w->now.loop)
		defer_cancel(&w->now);
	else if (w->ringing)
		TAILQ_REMOVE(&w->s->ringing, w, link);
	else
		TAILQ_REMOVE(&w->s->waits, w, link);
	w->s = NULL;
}
