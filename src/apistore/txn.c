/* SPDX-License-Identifier: MIT */
/*
 * One transaction per turn of the loop: the first write begins it, and a deferred call commits it
 * in the next turn, after everything else in this one. Then watches are woken, and after them
 * waiting answers are sent. Upkeep (history, write-ahead log, resealing) has timers that are set
 * only if there is work.
 */
#include "config.h"

#include <inttypes.h>

#include "tec/apistore/txn.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "apistore_internal.h"

/* How long the history is kept at least, as in kube-apiserver. */
#define HISTORY_MS  300000
#define HISTORY_MAX 20000 /* versions, beyond which it is compacted early */
#define SETTLE_MS   1000
/* Resealing: a little per turn of the loop. */
#define RESEAL_ROWS     128
#define RESEAL_BYTES    (256u << 10)
#define RESEAL_MS       10
#define RESEAL_LATER_MS 30000 /* after a failure */

static void on_commit(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;

	if (apistore_objects_commit(s, &err) < 0)
		log_err(LOG_ERROR, NULL, "cannot store writes", &err);
}

/* Remove deleted data from the write-ahead log, or retry later if a transaction is open or it
 * failed. */
static void on_settle(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;

	if (s->open || apistore_db_settle(s->db, &err) < 0)
		timer_set(&s->settle, SETTLE_MS);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL, "cannot remove deleted data from the database; will retry",
			&err);
}

/* Compact the history within the transaction of this turn. A failure dooms the transaction, like
 * any other write. */
void apistore_txn_keep_history_from(struct apistore_objects *s, uint64_t rv)
{
	struct err err = ERR_INIT;

	if (rv <= apistore_db_oldest(s->db) || apistore_txn_begin(s) < 0)
		return;
	if (apistore_db_compact(s->db, rv, &err) < 0)
		(void)apistore_objects_failed(s, &err);
}

/* Compact the history up to the version that was current at the previous run, so that each version
 * is kept for one whole interval at least. */
static void on_compact(void *arg)
{
	struct apistore_objects *s = arg;

	apistore_txn_keep_history_from(s, s->mark);
	/* The next run may drop what is current now. */
	s->mark = s->committed;
	if (apistore_db_oldest(s->db) < s->mark)
		timer_set_earlier(&s->compact, HISTORY_MS);
}

/* Reseal some rows between transactions; while one is open, try again shortly. */
static void on_reseal(void *arg)
{
	struct apistore_objects *s = arg;
	struct err err = ERR_INIT;
	int rc = s->open ? 1 : apistore_db_reseal(s->db, RESEAL_ROWS, RESEAL_BYTES, &err);

	if (rc > 0) {
		timer_set(&s->reseal, RESEAL_MS);
	} else if (rc < 0) {
		timer_set(&s->reseal, RESEAL_LATER_MS);
		log_err(LOG_WARN, NULL, "cannot seal rows with the new database key; will retry",
			&err);
	} else {
		timer_set_earlier(&s->settle, SETTLE_MS);
		log_info(NULL, "all rows of the store are sealed with the new database key", NULL);
	}
}

void apistore_objects_reseal(struct apistore_objects *s)
{
	if (s->loop && apistore_db_is_resealing(s->db))
		timer_set_earlier(&s->reseal, RESEAL_MS);
}

/* Versions from before the start are compacted one interval after it. */
void apistore_txn_init(struct apistore_objects *s, struct loop *l)
{
	s->loop = l;
	s->committed = s->mark = apistore_db_rv(s->db);
	TAILQ_INIT(&s->waits);
	TAILQ_INIT(&s->ringing);
	if (!l)
		return;
	timer_init(&s->settle, l, on_settle, s);
	timer_init(&s->compact, l, on_compact, s);
	timer_init(&s->reseal, l, on_reseal, s);
	apistore_objects_reseal(s); /* continue what an earlier process did not finish */
	if (apistore_db_oldest(s->db) < s->mark)
		timer_set(&s->compact, HISTORY_MS);
}

static void free_changes(char **changed, size_t n)
{
	while (n > 0)
		free(changed[--n]);
	free(changed);
}

/* An open transaction is rolled back by closing the database: nobody waits for it any more. */
void apistore_txn_fini(struct apistore_objects *s)
{
	if (!TAILQ_EMPTY(&s->waits) || !TAILQ_EMPTY(&s->ringing))
		DIE("API objects freed before their answers");
	defer_cancel(&s->commit);
	if (s->loop) {
		timer_fini(&s->settle);
		timer_fini(&s->compact);
		timer_fini(&s->reseal);
	}
	free_changes(s->changed, s->n_changed);
}

/* The first failure counts. Outside of a transaction nothing has to be rolled back. */
int apistore_objects_failed(struct apistore_objects *s, const struct err *err)
{
	if (!err_is_set(&s->trouble))
		s->trouble = *err;
	if (s->open && !err_is_set(&s->doomed))
		s->doomed = *err;
	return -1;
}

/* A doomed transaction is reported on every call, other failures once. */
bool apistore_objects_trouble(struct apistore_objects *s, struct err *err)
{
	if (!err_is_set(&s->trouble) && !err_is_set(&s->doomed))
		return false;
	*err = err_is_set(&s->trouble) ? s->trouble : s->doomed;
	s->trouble = (struct err)ERR_INIT;
	return true;
}

/* The commit is scheduled with the first write, so every write of a turn is committed at its end
 * without the writer's help. */
int apistore_txn_begin(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (s->open)
		return err_is_set(&s->doomed) ? -1 : 0;
	s->open = true; /* even if it cannot begin: the writes of this turn must then fail */
	if (s->loop)
		defer_call(&s->commit, s->loop, on_commit, s);
	return apistore_db_begin(s->db, &err) < 0 ? apistore_objects_failed(s, &err) : 0;
}

bool apistore_objects_is_open(const struct apistore_objects *s)
{
	return s->open;
}

/* Each resource is noted once per transaction: watches are woken by resource, not by object. */
void apistore_txn_changed(struct apistore_objects *s, const char *resource)
{
	for (size_t i = 0; i < s->n_changed; i++)
		if (str_eq(s->changed[i], resource))
			return;
	ARRAY_GROW(s->changed, s->n_changed);
	s->changed[s->n_changed++] = xstrdup(resource);
}

static void wake_watches(struct apistore_objects *s, char *const *changed, size_t n)
{
	struct apistore_watcher *w, *next;

	for (w = LIST_FIRST(&s->watchers); w; w = next) {
		next = LIST_NEXT(w, link);
		w->wake(w, changed, n);
	}
}

/* Call the waits. They are taken one by one from a list of their own, because each may cancel
 * others or wait again. */
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

/* Commit or roll back. The state is reset before any callback runs, so a callback may write again,
 * which begins a new transaction. */
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
		wake_watches(s, changed, n);
		if (s->loop && apistore_db_unsettled(s->db))
			timer_set_earlier(&s->settle, SETTLE_MS);
		if (s->loop && n > 0)
			timer_set_earlier(
				&s->compact, s->committed - apistore_db_oldest(s->db) > HISTORY_MAX
						     ? 0
						     : HISTORY_MS);
	} else {
		wake_watches(s, NULL, 0); /* those that waited for the transaction to end */
		if (s->collector)
			s->collector->undone(s->collector);
	}
	free_changes(changed, n);
	ring(s, &result);
	*err = result;
	return err_is_set(&result) ? -1 : 0;
}

/* Call a wait that had nothing to wait for. It is still called from the loop, never before
 * apistore_objects_when_stored() returned. */
static void on_now(void *arg)
{
	static const struct err none = ERR_INIT;
	struct apistore_wait *w = arg;

	w->s = NULL;
	w->fn(w->arg, &none);
}

/* Without an open transaction there is nothing to wait for, and fn is called from the next turn. */
void apistore_objects_when_stored(struct apistore_objects *s, struct apistore_wait *w,
	void (*fn)(void *arg, const struct err *err), void *arg)
{
	if (w->s)
		DIE("wait is already in use");
	w->s = s;
	w->fn = fn;
	w->arg = arg;
	w->ringing = false;
	if (s->open)
		TAILQ_INSERT_TAIL(&s->waits, w, link);
	else
		defer_call(&w->now, s->loop, on_now, w);
}

/* A wait is in one of three places: deferred, being called, or waiting for the commit. */
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
