/* SPDX-License-Identifier: MIT */
/*
 * A list of uids, each with the last dependent visited. Asking the database for all objects with a
 * missing owner reads every object that has one, which is too expensive after each write;
 * dependents of one uid are found by index.
 */
#include "config.h"

#include "missing.h"

#include <stdlib.h>

#include "tec/base/mem.h"

struct apistore_missing_owner {
	TAILQ_ENTRY(apistore_missing_owner) link;
	char *uid;                  /* owned; NULL: any owner that is missing */
	char *resource, *ns, *name; /* owned: the last object visited; NULL: none yet */
};

struct take {
	struct apistore_missing_owner *o;
	apistore_key_fn fn;
	void *arg;
};

static void forget_place(struct apistore_missing_owner *o)
{
	free(o->resource);
	free(o->ns);
	free(o->name);
}

static void drop(struct apistore_missing *m, struct apistore_missing_owner *o)
{
	TAILQ_REMOVE(m, o, link);
	forget_place(o);
	free(o->uid);
	free(o);
}

void apistore_missing_init(struct apistore_missing *m)
{
	TAILQ_INIT(m);
}

void apistore_missing_fini(struct apistore_missing *m)
{
	while (!TAILQ_EMPTY(m))
		drop(m, TAILQ_FIRST(m));
}

void apistore_missing_add(struct apistore_missing *m, const char *uid)
{
	struct apistore_missing_owner *o = xcalloc(1, sizeof(*o));

	o->uid = uid ? xstrdup(uid) : NULL;
	TAILQ_INSERT_TAIL(m, o, link);
}

/* Remember the object as visited, and pass it on. */
static void on_key(void *arg, const struct apistore_key *key)
{
	struct take *t = arg;

	forget_place(t->o);
	t->o->resource = xstrdup(key->resource);
	t->o->ns = xstrdup(key->ns);
	t->o->name = xstrdup(key->name);
	t->fn(t->arg, key);
}

/* Fewer objects than max means that the owner has no more dependents, and it is dropped. Otherwise
 * the next call continues after the last object. */
int apistore_missing_take(struct apistore_missing *m, struct apistore_db *db, unsigned max,
	apistore_key_fn fn, void *arg, struct err *err)
{
	struct apistore_missing_owner *o = TAILQ_FIRST(m);
	struct take t = {o, fn, arg};
	const struct apistore_key place = {o->resource, o->ns, o->name};
	const struct apistore_key *after = o->resource ? &place : NULL;
	int n = o->uid ? apistore_db_dependents(db, o->uid, after, max, on_key, &t, err)
		       : apistore_db_orphans(db, after, max, on_key, &t, err);

	if (n >= 0 && (unsigned)n < max)
		drop(m, o);
	return n;
}
