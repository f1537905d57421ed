/* SPDX-License-Identifier: MIT */
/*
 * A write compares the new object with the current one and adds its text to the transaction of this
 * turn. If SQLite fails at any point, the whole transaction is marked to be rolled back: the writes
 * of a turn are never stored in part.
 *
 * The first write of a turn begins the transaction, and a deferred call commits it in the next turn,
 * after everything else in this one. Then watches are woken, and after them waiting answers are sent.
 * Upkeep (history, write-ahead log, resealing) has timers that are set only if there is work.
 */
#include "config.h"

#include "tec/store/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/store/selector.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#include "store_internal.h"

#define OWNERS_MAX 256 /* owners of an object that garbage collection knows of */
/* How long the history is kept at least, as in kube-apiserver. */
#define HISTORY_MS  300000
#define HISTORY_MAX 20000 /* versions, beyond which it is compacted early */
#define SETTLE_MS   1000
/* Resealing: a little per turn of the loop. */
#define RESEAL_ROWS     128
#define RESEAL_BYTES    (256u << 10)
#define RESEAL_MS       10
#define RESEAL_LATER_MS 30000 /* after a failure */

/* ---- the transaction of a turn */

static void on_commit(void *arg)
{
	struct store_objects *s = arg;
	struct err err = ERR_INIT;

	if (store_objects_commit(s, &err) < 0)
		log_err(LOG_ERROR, NULL, "cannot store writes", &err);
}

/* Remove deleted data from the write-ahead log, or retry later if a transaction is open or it
 * failed. */
static void on_settle(void *arg)
{
	struct store_objects *s = arg;
	struct err err = ERR_INIT;

	if (s->open || store_db_settle(s->db, &err) < 0)
		timer_set(&s->settle, SETTLE_MS);
	if (err_is_set(&err))
		log_err(LOG_WARN, NULL, "cannot remove deleted data from the database; will retry",
			&err);
}

/* Compact the history within the transaction of this turn. A failure dooms the transaction, like
 * any other write. */
void store_objects_keep_history_from(struct store_objects *s, uint64_t rv)
{
	struct err err = ERR_INIT;

	if (rv <= store_db_oldest(s->db) || store_objects_begin(s) < 0)
		return;
	if (store_db_compact(s->db, rv, &err) < 0)
		(void)store_objects_failed(s, &err);
}

/* Compact the history up to the version that was current at the previous run, so that each version
 * is kept for one whole interval at least. */
static void on_compact(void *arg)
{
	struct store_objects *s = arg;

	store_objects_keep_history_from(s, s->mark);
	/* The next run may drop what is current now. */
	s->mark = s->committed;
	if (store_db_oldest(s->db) < s->mark)
		timer_set_earlier(&s->compact, HISTORY_MS);
}

/* Reseal some rows between transactions; while one is open, try again shortly. */
static void on_reseal(void *arg)
{
	struct store_objects *s = arg;
	struct err err = ERR_INIT;
	int rc = s->open ? 1 : store_db_reseal(s->db, RESEAL_ROWS, RESEAL_BYTES, &err);

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

void store_objects_reseal(struct store_objects *s)
{
	if (s->loop && store_db_is_resealing(s->db))
		timer_set_earlier(&s->reseal, RESEAL_MS);
}

static void free_changes(char **changed, size_t n)
{
	while (n > 0)
		free(changed[--n]);
	free(changed);
}

/* The first failure counts. Outside of a transaction nothing has to be rolled back. */
int store_objects_failed(struct store_objects *s, const struct err *err)
{
	if (!err_is_set(&s->trouble))
		s->trouble = *err;
	if (s->open && !err_is_set(&s->doomed))
		s->doomed = *err;
	return -1;
}

/* A doomed transaction is reported on every call, other failures once. */
bool store_objects_trouble(struct store_objects *s, struct err *err)
{
	if (!err_is_set(&s->trouble) && !err_is_set(&s->doomed))
		return false;
	*err = err_is_set(&s->trouble) ? s->trouble : s->doomed;
	s->trouble = (struct err)ERR_INIT;
	return true;
}

/* The commit is scheduled with the first write, so every write of a turn is committed at its end
 * without the writer's help. */
int store_objects_begin(struct store_objects *s)
{
	struct err err = ERR_INIT;

	if (s->open)
		return err_is_set(&s->doomed) ? -1 : 0;
	s->open = true; /* even if it cannot begin: the writes of this turn must then fail */
	if (s->loop)
		defer_call(&s->commit, s->loop, on_commit, s);
	return store_db_begin(s->db, &err) < 0 ? store_objects_failed(s, &err) : 0;
}

bool store_objects_is_open(const struct store_objects *s)
{
	return s->open;
}

/* Each resource is noted once per transaction: watches are woken by resource, not by object. */
void store_objects_changed(struct store_objects *s, const char *resource)
{
	for (size_t i = 0; i < s->n_changed; i++)
		if (str_eq(s->changed[i], resource))
			return;
	ARRAY_GROW(s->changed, s->n_changed);
	s->changed[s->n_changed++] = xstrdup(resource);
}

static void wake_watches(struct store_objects *s, char *const *changed, size_t n)
{
	struct store_watcher *w, *next;

	for (w = LIST_FIRST(&s->watchers); w; w = next) {
		next = LIST_NEXT(w, link);
		w->wake(w, changed, n);
	}
}

/* Call the waits. They are taken one by one from a list of their own, because each may cancel
 * others or wait again. */
static void ring(struct store_objects *s, const struct err *err)
{
	struct store_wait *w;

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
int store_objects_commit(struct store_objects *s, struct err *err)
{
	struct err result = ERR_INIT;
	char **changed = s->changed;
	size_t n = s->n_changed;

	if (!s->open)
		return 0;
	defer_cancel(&s->commit);
	result = s->doomed;
	if (err_is_set(&result))
		store_db_rollback(s->db);
	else
		(void)!store_db_commit(s->db, &result);
	s->open = false;
	s->doomed = s->trouble = (struct err)ERR_INIT;
	s->changed = NULL;
	s->n_changed = 0;
	if (!err_is_set(&result)) {
		s->committed = store_db_rv(s->db);
		wake_watches(s, changed, n);
		if (s->loop && store_db_unsettled(s->db))
			timer_set_earlier(&s->settle, SETTLE_MS);
		if (s->loop && n > 0)
			timer_set_earlier(&s->compact,
				s->committed - store_db_oldest(s->db) > HISTORY_MAX ? 0
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
 * store_objects_when_stored() returned. */
static void on_now(void *arg)
{
	static const struct err none = ERR_INIT;
	struct store_wait *w = arg;

	w->s = NULL;
	w->fn(w->arg, &none);
}

/* Without an open transaction there is nothing to wait for, and fn is called from the next turn. */
void store_objects_when_stored(struct store_objects *s, struct store_wait *w,
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
void store_wait_cancel(struct store_wait *w)
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

/* ---- the objects */

/* Versions from before the start are compacted one interval after it. */
struct store_objects *store_objects_new(
	struct store_db *take_db, const struct store_schema *schema, struct loop *l)
{
	struct store_objects *s = xcalloc(1, sizeof(*s));

	s->db = take_db;
	s->schema = schema;
	s->loop = l;
	s->committed = s->mark = store_db_rv(s->db);
	LIST_INIT(&s->watchers);
	TAILQ_INIT(&s->waits);
	TAILQ_INIT(&s->ringing);
	if (!l)
		return s;
	timer_init(&s->settle, l, on_settle, s);
	timer_init(&s->compact, l, on_compact, s);
	timer_init(&s->reseal, l, on_reseal, s);
	store_objects_reseal(s); /* continue what an earlier process did not finish */
	if (store_db_oldest(s->db) < s->mark)
		timer_set(&s->compact, HISTORY_MS);
	return s;
}

/* An open transaction is rolled back by closing the database: nobody waits for it any more. */
void store_objects_free(struct store_objects *s)
{
	if (!s)
		return;
	if (!LIST_EMPTY(&s->watchers))
		DIE("API objects freed before their watches");
	if (!TAILQ_EMPTY(&s->waits) || !TAILQ_EMPTY(&s->ringing))
		DIE("API objects freed before their answers");
	defer_cancel(&s->commit);
	if (s->loop) {
		timer_fini(&s->settle);
		timer_fini(&s->compact);
		timer_fini(&s->reseal);
	}
	free_changes(s->changed, s->n_changed);
	store_db_close(s->db);
	free(s);
}

/* ---- reading */

uint64_t store_objects_rv(const struct store_objects *s)
{
	return store_db_rv(s->db);
}

struct store_db *store_objects_db(struct store_objects *s)
{
	return s->db;
}

const struct store_schema *store_objects_schema(const struct store_objects *s)
{
	return s->schema;
}

/* A failure counts as not found here; store_objects_trouble() then returns true. */
char *store_objects_text(struct store_objects *s, const struct store_key *key, size_t *len)
{
	struct err err = ERR_INIT;
	void *text = NULL;

	*len = 0;
	if (store_db_copy(s->db, key, &text, len, &err) < 0)
		(void)store_objects_failed(s, &err);
	return text;
}

/* Text in the store is ours and was verified, so one that is not JSON is a bug and aborts. */
struct json_object *store_objects_get(struct store_objects *s, const struct store_key *key)
{
	/* Wider than the limits for clients, so that all that was once stored can be read. */
	static const struct json_limits limits = {16u << 20, 256, 1u << 22, true};
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t len = 0;
	char *text = store_objects_text(s, key, &len);

	if (!text)
		return NULL;
	o = json_parse(text, len, &limits, &err);
	secret_wipe(text, len);
	free(text);
	if (!o)
		DIE("stored object %s %s/%s is not JSON: %s", key->resource, key->ns, key->name,
			err.text);
	return o;
}

size_t store_objects_count(struct store_objects *s, const char *resource, const char *ns)
{
	uint64_t n = store_db_count(s->db, resource, ns);

	return n == UINT64_MAX ? 0 : (size_t)n;
}

/* The first kind that matches counts; an unknown resource is a plain object without a schema. */
const struct store_kind *store_objects_kind(
	const struct store_objects *s, const char *group, const char *resource)
{
	static const struct store_kind plain;
	const struct store_schema *sc = s->schema;

	for (size_t i = 0; i < sc->n_kinds; i++)
		if (str_eq(sc->kinds[i].group, group) &&
			(!sc->kinds[i].resource || str_eq(sc->kinds[i].resource, resource)))
			return &sc->kinds[i];
	return &plain;
}

/* ---- writing */

struct json_object *store_objects_meta(struct json_object *o)
{
	struct json_object *m = json_get_obj(o, "metadata");

	if (!m)
		json_add(o, "metadata", m = json_obj());
	return m;
}

bool store_objects_same_member(struct json_object *a, struct json_object *b, const char *name)
{
	struct json_object *x = NULL, *y = NULL;

	json_object_object_get_ex(a, name, &x);
	json_object_object_get_ex(b, name, &y);
	return json_object_equal(x, y);
}

/* Is every member of a, other than metadata and status, equal in b? */
static bool spec_within(struct json_object *a, struct json_object *b)
{
	json_each (a, name, value) {
		if (strcmp(name, "metadata") != 0 && strcmp(name, "status") != 0 &&
			!store_objects_same_member(a, b, name))
			return false;
	}
	return true;
}

/* Set name and namespace from the key, and a missing uid or creationTimestamp from the current
 * object, or to new values if there is none (was NULL). */
static void identify(const struct store_objects *s, struct json_object *o,
	const struct store_key *key, struct json_object *was)
{
	struct json_object *m = store_objects_meta(o);
	int64_t now_s = clock_wall_s(), restored_s = store_db_restored_s(s->db);
	char uid[UUID_TEXT_LEN + 1], now[CLOCK_RFC3339_LEN];

	json_add_str(m, "name", key->name);
	if (key->ns[0])
		json_add_str(m, "namespace", key->ns);
	if (!json_get_str(m, "uid")) {
		uuid_new_v4(uid);
		json_add_str(m, "uid", was ? json_get_str(was, "metadata/uid") : uid);
	}
	if (!json_get(m, "creationTimestamp")) {
		/* Later than any object of a restored backup: the operator tells objects made since
		 * the restore from those that came with it. */
		clock_format(now_s > restored_s ? now_s : restored_s + 1, now);
		json_add_str(m, "creationTimestamp",
			was ? json_get_str(was, "metadata/creationTimestamp") : now);
	}
}

static void move_member(struct json_object *to, struct json_object *from, const char *name)
{
	struct json_object *v = NULL;

	if (json_object_object_get_ex(from, name, &v))
		json_add(to, name, json_object_get(v));
}

/* Return the text with kind, apiVersion and metadata first. *head is the length of the first two,
 * which items of a list leave out by skipping it. */
static char *ordered_text(struct json_object *o, size_t *len, size_t *head)
{
	cleanup_json struct json_object *all = json_obj();
	cleanup_free char *first = NULL;
	char *text;

	move_member(all, o, "kind");
	move_member(all, o, "apiVersion");
	first = json_text(all);
	*head = strlen(first) - (json_len(all) > 0 ? 0 : 1);
	move_member(all, o, "metadata");
	json_each (o, name, value)
		if (!str_eq(name, "kind") && !str_eq(name, "apiVersion") &&
			!str_eq(name, "metadata"))
			json_add(all, name, json_object_get(value));
	text = json_text(all);
	*len = strlen(text);
	return text;
}

/* Return what to keep of a deleted Secret: what watches need, such as owners and labels, and no
 * key. Annotations are dropped too, because kubectl apply stores the whole Secret in one. */
static struct json_object *without_data(struct json_object *o)
{
	static const char *const members[] = {"name", "namespace", "uid", "resourceVersion",
		"creationTimestamp", "deletionTimestamp", "labels", "ownerReferences"};
	struct json_object *bare = json_obj(), *m = json_obj();

	move_member(bare, o, "kind");
	move_member(bare, o, "apiVersion");
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		move_member(m, json_get(o, "metadata"), members[i]);
	json_add(bare, "metadata", m);
	move_member(bare, o, "type");
	return bare;
}

/* Do finalizers in the spec, which only Namespaces have, keep the object? An earlier version could
 * begin the deletion of a Namespace; such a Namespace stays. */
static bool is_held_by_spec(struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "spec/finalizers");

	return json_len(a) > 0 && str_eq(json_get_str(o, "kind"), "Namespace") &&
	       str_eq(json_get_str(o, "apiVersion"), "v1");
}

/* Collect the uids of the owners for the index, and the pseudo owner of a deletion that waits for
 * gc.c. */
static size_t owners_of(struct json_object *o, const char *uids[OWNERS_MAX + 1])
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");
	size_t n = 0;

	for (size_t i = 0; n < OWNERS_MAX && i < json_len(a); i++) {
		const char *uid = json_get_str(json_at(a, i), "uid");

		uids[n] = uid ? uid : "";
		n++;
	}
	/* Is it being deleted, and does it need an action of gc.c before it can go? */
	a = json_get_arr(o, "metadata/finalizers");
	if (json_get(o, "metadata/deletionTimestamp") &&
		(json_has_str(a, "foregroundDeletion") || json_has_str(a, "orphan") ||
			is_held_by_spec(o)))
		uids[n++] = STORE_DELETING;
	return n;
}

static uint64_t rv_of(struct json_object *o)
{
	const char *text = o ? json_get_str(o, "metadata/resourceVersion") : NULL;
	uint64_t rv = 0;

	return text && str_to_u64(text, INT64_MAX, &rv) == 0 ? rv : 0;
}

/* Write the new version of o, and tell watches and the garbage collector. A deleted Secret is
 * stored without its data, and needs no sealing. */
static int write_version(struct store_objects *s, const struct store_key *key,
	struct json_object *o, struct json_object *was, const struct store_stored *out, size_t head)
{
	const char *uids[OWNERS_MAX + 1];
	size_t n = owners_of(o, uids);
	/* Secrets are encrypted in the database; all other objects are only authenticated. */
	bool sealed = str_eq(key->resource, "secrets"), bare = sealed && out->gone;
	cleanup_free char *meta = store_selector_meta(o, key->resource), *bare_text = NULL;
	struct store_version v = {.key = *key,
		.uid = json_get_str(o, "metadata/uid"),
		.rv = rv_of(o),
		.prev = rv_of(was),
		.event = out->gone ? STORE_DELETED
			 : was     ? STORE_MODIFIED
				   : STORE_ADDED,
		.at_s = clock_wall_s(),
		.meta = meta,
		.body = out->text,
		.len = out->len,
		.head = head,
		.sealed = sealed && !bare};
	struct err err = ERR_INIT;

	if (bare) {
		cleanup_json struct json_object *left = without_data(o);

		v.body = bare_text = ordered_text(left, &v.len, &v.head);
	}
	if (store_db_write(s->db, &v, uids, n, &err) < 0)
		return store_objects_failed(s, &err);
	store_objects_changed(s, key->resource);
	if (s->collector && (out->gone || n > 0 || json_get(o, "metadata/deletionTimestamp")))
		s->collector->note(
			s->collector, key, out->gone ? v.uid : NULL, uids, out->gone ? 0 : n);
	return 0;
}

/* An object equal to the current one is not written and keeps its resourceVersion. It is deleted
 * rather than stored when it has a deletionTimestamp and no finalizers. A deletion is never too
 * large. */
int store_objects_store(struct store_objects *s, const struct store_key *key,
	struct json_object *was, struct json_object *take_o, bool dry, size_t max,
	struct store_stored *out)
{
	struct json_object *finalizers = json_get_arr(take_o, "metadata/finalizers");
	cleanup_free char *resource = xstrndup(key->resource, strcspn(key->resource, "."));
	const char *group = key->resource + strlen(resource);
	char rv[24];
	struct json_object *m;
	size_t head;

	*out = (struct store_stored){.o = take_o};
	identify(s, take_o, key, was);
	m = store_objects_meta(take_o);
	if (was) {
		/* Give the new object the old version, so that the comparison shows whether
		 * anything else changed. */
		json_add_str(m, "resourceVersion", json_get_str(was, "metadata/resourceVersion"));
		if (json_object_equal(was, take_o)) {
			out->text = ordered_text(take_o, &out->len, &head);
			return 0;
		}
	}
	/* The transaction begins before the version is issued: versions are the order of
	 * commits. */
	if (!dry && store_objects_begin(s) < 0)
		return -1;
	if (!dry) {
		snprintf(rv, sizeof(rv), "%" PRIu64, store_db_rv(s->db) + 1);
		json_add_str(m, "resourceVersion", rv);
	}
	/* The generation is incremented when anything but metadata and status changes, and when
	 * deletion begins, as in kube-apiserver. */
	if (store_objects_kind(s, group[0] ? group + 1 : "", resource)->generation)
		json_add_int(m, "generation",
			json_get_int(was, "metadata/generation", 0) +
				(!was || !spec_within(was, take_o) || !spec_within(take_o, was) ||
					(json_get(m, "deletionTimestamp") &&
						!json_get(was, "metadata/deletionTimestamp"))));
	out->gone = json_get(take_o, "metadata/deletionTimestamp") &&
		    (!finalizers || json_len(finalizers) == 0) && !is_held_by_spec(take_o);
	out->text = ordered_text(take_o, &out->len, &head);
	out->too_large = max > 0 && out->len > max && !out->gone;
	return dry || out->too_large ? 0 : write_version(s, key, take_o, was, out, head);
}

/* The text is wiped before it is freed, as it may be a Secret. */
struct json_object *store_objects_put(
	struct store_objects *s, const struct store_key *key, struct json_object *take_o)
{
	cleanup_json struct json_object *was = store_objects_get(s, key);
	struct store_stored out;
	int rc = store_objects_store(s, key, was, take_o, false, 0, &out);

	if (out.text) {
		secret_wipe(out.text, out.len);
		free(out.text);
	}
	if (rc == 0)
		return out.o;
	json_object_put(out.o);
	return NULL;
}
