/* SPDX-License-Identifier: MIT */
/*
 * Each step asks the database for objects that are being deleted, and for dependents of owners that
 * were deleted or did not exist when they were named (at the start: for all objects with a missing
 * owner). It takes one action on a few of them. The index of owners only finds candidates: an
 * action is taken by the references in the object itself.
 */
#include "config.h"

#include "tec/store/gc.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "store_internal.h"

#define STEP_MAX    64   /* objects per turn of the loop */
#define AGAIN_MS    1000 /* after a failure of the database */
#define EVENTS_MS   60000
#define EVENT_TTL_S 3600
#define EVENTS_MAX  10000
#define FOREGROUND  "foregroundDeletion"
#define ORPHAN      "orphan"

/* An owner whose dependents must be checked: it was deleted, or did not exist when a reference named
 * it. Asking the database for all objects with a missing owner reads every object that has one, which
 * is too expensive after each write; dependents of one uid are found by index. */
struct missing {
	TAILQ_ENTRY(missing) link;
	char *uid;                  /* owned; NULL: any owner that is missing */
	char *resource, *ns, *name; /* owned: the last object visited; NULL: none yet */
};

struct store_gc {
	struct store_collector collector; /* first */
	struct store_objects *s;
	struct timer step, events;
	TAILQ_HEAD(, missing) missing; /* owned */
};

/* ---- marks */

static bool has_finalizer(struct json_object *o, const char *name)
{
	return json_has_str(json_get(o, "metadata/finalizers"), name);
}

/* Add or remove one finalizer and keep the order of the others. */
static void set_finalizer(struct json_object *o, const char *name, bool wanted)
{
	struct json_object *m = store_objects_meta(o), *a = json_get_arr(m, "finalizers"), *all;

	if (has_finalizer(o, name) == wanted)
		return;
	all = json_arr();
	for (size_t i = 0; i < json_len(a); i++)
		if (!str_eq(json_object_get_string(json_at(a, i)), name))
			json_push(all, json_object_get(json_at(a, i)));
	if (wanted)
		json_push_str(all, name);
	if (json_len(all) > 0) {
		json_add(m, "finalizers", all);
	} else {
		json_object_put(all);
		json_drop(m, "finalizers");
	}
}

/* A second deletion may change the policy but keeps the first deletionTimestamp. */
void store_gc_mark(struct json_object *o, enum store_policy policy)
{
	char now[CLOCK_RFC3339_LEN];

	if (policy != STORE_POLICY_DEFAULT) {
		set_finalizer(o, FOREGROUND, policy == STORE_FOREGROUND);
		set_finalizer(o, ORPHAN, policy == STORE_ORPHAN);
	}
	clock_format(clock_wall_s(), now);
	if (json_get(o, "metadata/deletionTimestamp"))
		return;
	json_add_str(store_objects_meta(o), "deletionTimestamp", now);
	json_add_int(store_objects_meta(o), "deletionGracePeriodSeconds", 0);
}

/* Storing a marked object without finalizers deletes it, so both kinds of deletion end here. */
struct json_object *store_gc_delete(
	struct store_objects *s, const struct store_key *key, enum store_policy policy)
{
	struct json_object *o = store_objects_get(s, key);

	if (!o)
		return NULL;
	store_gc_mark(o, policy);
	return store_objects_put(s, key, o);
}

/* ---- owners */

/* A count of an object's owners. */
struct owners {
	size_t n, absent, leaving; /* leaving: being deleted, and waiting for their dependents */
};

/* Count the owners of o. owner: one in foreground deletion, which alone can count as leaving, or
 * NULL. -1: the database failed. */
static int look_at_owners(struct store_objects *s, const struct store_key *key,
	struct json_object *o, const struct store_key *owner, struct owners *out)
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");
	struct err err = ERR_INIT;

	*out = (struct owners){0};
	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *ref = json_at(a, i);
		const char *uid = json_get_str(ref, "uid");
		int there = uid ? store_db_has_uid(s->db, uid, key->ns, &err) : 0;

		if (there < 0)
			return store_objects_failed(s, &err);
		out->n++;
		out->absent += there == 0;
		/* Does it name the owner whose foreground deletion waits for dependents? */
		if (there > 0 && owner) {
			cleanup_json struct json_object *of = store_objects_get(s, owner);

			out->leaving += str_eq(json_get_str(of, "metadata/uid"), uid) &&
					json_get(of, "metadata/deletionTimestamp") &&
					has_finalizer(of, FOREGROUND);
		}
	}
	return 0;
}

/* Drop the references to the owner `gone`; if it is NULL, to all owners that do not exist. */
static void drop_references(struct store_objects *s, const struct store_key *key,
	struct json_object *o, const char *gone)
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences"), *left = json_arr();

	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *ref = json_at(a, i);
		const char *uid = json_get_str(ref, "uid");
		struct err ignored = ERR_INIT; /* on failure the reference stays */

		if (gone ? !str_eq(uid, gone)
			 : uid && store_db_has_uid(s->db, uid, key->ns, &ignored) != 0)
			json_push(left, json_object_get(ref));
	}
	json_add(store_objects_meta(o), "ownerReferences", left);
	if (json_len(left) == 0)
		json_drop(store_objects_meta(o), "ownerReferences");
}

struct step {
	struct store_objects *s;
	const struct store_key *owner; /* whose dependents are visited; borrowed, as its object */
	struct json_object *owner_o;
	struct missing *missing;     /* whose place is moved; NULL: none */
	size_t acts, blocking, seen; /* objects written, with blockOwnerDeletion, and visited */
};

/* Store an object and count the action. A failure counts as none, which ends the loop of a
 * collection. */
static void put(struct step *st, const struct store_key *key, struct json_object *take_o)
{
	struct json_object *o = store_objects_put(st->s, key, take_o);

	st->acts += o != NULL;
	json_object_put(o);
}

/* Handle an object that may have lost owners: delete it if all are gone, else drop those
 * references. */
static void on_orphan(void *arg, const struct store_key *key)
{
	struct step *st = arg;
	struct json_object *o = store_objects_get(st->s, key);
	struct owners owners;

	if (!o)
		return;
	if (look_at_owners(st->s, key, o, NULL, &owners) < 0 || owners.absent == 0 ||
		json_get(o, "metadata/deletionTimestamp")) {
		json_object_put(o);
		return;
	}
	/* All owners are gone: delete it. Otherwise the remaining owners keep it. */
	if (owners.absent == owners.n)
		store_gc_mark(o, STORE_POLICY_DEFAULT);
	else
		drop_references(st->s, key, o, NULL);
	put(st, key, o);
}

/* Keep a dependent of an orphaning owner: drop its reference to the owner. */
static void on_left_dependent(void *arg, const struct store_key *key)
{
	struct step *st = arg;
	const char *uid = json_get_str(st->owner_o, "metadata/uid");
	struct json_object *o = store_objects_get(st->s, key);

	st->seen++;
	if (!o)
		return;
	drop_references(st->s, key, o, uid);
	put(st, key, o);
}

static void count_only(void *arg, const struct store_key *key)
{
	++*(size_t *)arg;
}

/* Delete a dependent of an owner in foreground deletion, unless another owner keeps it. A dependent
 * with dependents of its own is deleted in the foreground too, so that the whole tree is deleted
 * from its leaves. */
static void on_foreground_dependent(void *arg, const struct store_key *key)
{
	struct step *st = arg;
	const char *uid = json_get_str(st->owner_o, "metadata/uid");
	struct json_object *o = store_objects_get(st->s, key), *ref = NULL;
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");
	struct err ignored = ERR_INIT;
	struct owners owners;
	size_t own = 0;

	/* Find the reference in the object itself, since the index may be out of date. */
	for (size_t i = 0; i < json_len(a) && !ref; i++)
		if (str_eq(json_get_str(json_at(a, i), "uid"), uid))
			ref = json_at(a, i);
	if (!ref || (st->owner->ns[0] && !str_eq(st->owner->ns, key->ns)) ||
		look_at_owners(st->s, key, o, st->owner, &owners) < 0) {
		json_object_put(o);
		return;
	}
	st->blocking += json_get_bool(ref, "blockOwnerDeletion", false);
	if (json_get(o, "metadata/deletionTimestamp")) {
		json_object_put(o);
		return;
	}
	/* Owners in foreground deletion do not keep it, or two of them would wait for each
	 * other. */
	if (owners.absent + owners.leaving < owners.n) {
		drop_references(st->s, key, o, uid); /* another owner keeps it */
	} else {
		(void)!store_db_dependents(st->s->db, json_get_str(o, "metadata/uid"), NULL, 1,
			count_only, &own, &ignored);
		store_gc_mark(o, own > 0 ? STORE_FOREGROUND : STORE_POLICY_DEFAULT);
	}
	put(st, key, o);
}

/* Continue the deletion of an object whose finalizer is ours; others belong to controllers. Orphaning
 * waits for all dependents, which then no longer refer to it; foreground deletion only for those that
 * block it, but all are visited, because these must be counted. The finalizer is removed once nothing
 * was left to do; if it was the last one, storing the object deletes it. */
static void on_deleting(void *arg, const struct store_key *key)
{
	struct step *all = arg;
	struct json_object *o = store_objects_get(all->s, key);
	struct step st = {.s = all->s, .owner = key, .owner_o = o};
	bool orphans = has_finalizer(o, ORPHAN);
	struct err err = ERR_INIT;
	int rc;

	if (!json_get(o, "metadata/deletionTimestamp") ||
		(!orphans && !has_finalizer(o, FOREGROUND))) {
		json_object_put(o);
		return;
	}
	rc = store_db_dependents(st.s->db, json_get_str(o, "metadata/uid"), NULL,
		orphans ? STEP_MAX : UINT32_MAX,
		orphans ? on_left_dependent : on_foreground_dependent, &st, &err);
	if (rc < 0)
		(void)store_objects_failed(st.s, &err);
	if (rc >= 0 && st.acts == 0 && (orphans ? st.seen : st.blocking) == 0) {
		set_finalizer(o, orphans ? ORPHAN : FOREGROUND, false);
		put(&st, key, o);
	} else {
		json_object_put(o);
	}
	all->acts += st.acts;
}

static void step_deleting(struct step *st)
{
	struct err err = ERR_INIT;

	if (store_db_dependents(
		    st->s->db, STORE_DELETING, NULL, UINT32_MAX, on_deleting, st, &err) < 0)
		(void)store_objects_failed(st->s, &err);
}

/* Repeat until a round changes nothing: a deletion can orphan further objects. */
size_t store_gc_collect(struct store_objects *s)
{
	struct step st;
	size_t n = 0;

	do {
		struct err err = ERR_INIT;

		st = (struct step){.s = s};
		if (store_db_orphans(s->db, NULL, STEP_MAX, on_orphan, &st, &err) < 0)
			(void)store_objects_failed(s, &err);
		step_deleting(&st);
		n += st.acts;
	} while (st.acts > 0);
	return n;
}

/* ---- automatic collection */

static void add_missing(struct store_gc *gc, const char *uid)
{
	struct missing *m = xcalloc(1, sizeof(*m));

	m->uid = xstrdup(uid);
	TAILQ_INSERT_TAIL(&gc->missing, m, link);
}

static void forget_place(struct missing *m)
{
	free(m->resource);
	free(m->ns);
	free(m->name);
}

static void drop_missing(struct store_gc *gc, struct missing *m)
{
	TAILQ_REMOVE(&gc->missing, m, link);
	forget_place(m);
	free(m->uid);
	free(m);
}

/* Remember the object as visited, and handle it. */
static void on_missing(void *arg, const struct store_key *key)
{
	struct step *st = arg;

	forget_place(st->missing);
	st->missing->resource = xstrdup(key->resource);
	st->missing->ns = xstrdup(key->ns);
	st->missing->name = xstrdup(key->name);
	on_orphan(st, key);
}

/* Handle some dependents of missing owners. Each owner counts as one unit of work besides its
 * dependents, so that many owners without any end the step too. An owner with fewer dependents than
 * were asked for has no more, and is dropped; otherwise the next step continues after the last
 * object. */
static void step_missing(struct store_gc *gc, struct step *st)
{
	struct err err = ERR_INIT;
	int n = 0;

	for (unsigned work = 0; work < STEP_MAX && n >= 0 && !TAILQ_EMPTY(&gc->missing);
		work += 1 + (unsigned)n) {
		struct missing *m = st->missing = TAILQ_FIRST(&gc->missing);
		const struct store_key place = {m->resource, m->ns, m->name},
				       *after = m->resource ? &place : NULL;

		n = m->uid ? store_db_dependents(
				     st->s->db, m->uid, after, STEP_MAX, on_missing, st, &err)
			   : store_db_orphans(st->s->db, after, STEP_MAX, on_missing, st, &err);
		if (n >= 0 && n < STEP_MAX)
			drop_missing(gc, m);
	}
	if (n < 0)
		(void)store_objects_failed(st->s, &err);
}

static void check_all(struct store_collector *c)
{
	struct store_gc *gc = (struct store_gc *)c;

	while (!TAILQ_EMPTY(&gc->missing))
		drop_missing(gc, TAILQ_FIRST(&gc->missing));
	add_missing(gc, NULL);
	timer_set(&gc->step, AGAIN_MS); /* overrides an immediate step: the database just failed */
}

/* Do a little and come back in the next turn, so that a large tree does not block other clients. */
static void on_step(void *arg)
{
	struct store_gc *gc = arg;
	struct step st = {.s = gc->s};
	struct err err = ERR_INIT;

	step_missing(gc, &st);
	step_deleting(&st);
	if (st.acts > 0 || !TAILQ_EMPTY(&gc->missing))
		timer_set(&gc->step, 0);
	if (store_objects_trouble(gc->s, &err))
		check_all(&gc->collector);
}

static void on_old_event(void *arg, const struct store_key *key)
{
	struct step *st = arg;

	json_object_put(store_gc_delete(st->s, key, STORE_BACKGROUND));
	st->seen++;
}

/* Delete Events past their TTL, and the oldest ones beyond EVENTS_MAX, a few per turn. */
static void on_events(void *arg)
{
	static const char *const resources[] = {"events", "events.events.k8s.io"};
	struct store_gc *gc = arg;
	struct step st = {.s = gc->s};

	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		struct err ignored = ERR_INIT; /* on failure they are looked at a minute later */

		(void)!store_db_aged(gc->s->db, resources[i], clock_wall_s() - EVENT_TTL_S,
			EVENTS_MAX, STEP_MAX, on_old_event, &st, &ignored);
	}
	timer_set(&gc->events, st.seen >= STEP_MAX ? 0 : EVENTS_MS);
}

/* Called within the transaction of the write. An owner that does not exist yet is checked later
 * too: it may never be created. */
static void note(struct store_collector *c, const struct store_key *key, const char *gone,
	const char *const *owners, size_t n)
{
	struct store_gc *gc = (struct store_gc *)c;

	if (gone)
		add_missing(gc, gone);
	for (size_t i = 0; i < n; i++) {
		struct err ignored = ERR_INIT; /* on failure the owner is checked later */

		if (!str_eq(owners[i], STORE_DELETING) &&
			store_db_has_uid(gc->s->db, owners[i], key->ns, &ignored) <= 0)
			add_missing(gc, owners[i]);
	}
	timer_set_earlier(&gc->step, 0);
}

/* Start with a full check in the first turn; Events are looked at later. */
struct store_gc *store_gc_new(struct store_objects *s)
{
	struct store_gc *gc = xcalloc(1, sizeof(*gc));

	gc->s = s;
	gc->collector = (struct store_collector){note, check_all};
	s->collector = &gc->collector;
	timer_init(&gc->step, s->loop, on_step, gc);
	timer_init(&gc->events, s->loop, on_events, gc);
	TAILQ_INIT(&gc->missing);
	add_missing(gc, NULL); /* all: an earlier process may have left work */
	timer_set(&gc->step, 0);
	timer_set(&gc->events, EVENTS_MS);
	return gc;
}

void store_gc_free(struct store_gc *gc)
{
	if (!gc)
		return;
	timer_fini(&gc->step);
	timer_fini(&gc->events);
	while (!TAILQ_EMPTY(&gc->missing))
		drop_missing(gc, TAILQ_FIRST(&gc->missing));
	gc->s->collector = NULL;
	free(gc);
}
