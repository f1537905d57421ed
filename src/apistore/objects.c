/* SPDX-License-Identifier: MIT */
/*
 * A write compares the new object with the current one and adds its text to the transaction of this
 * turn. If SQLite fails at any point, the whole transaction is marked to be rolled back: the writes
 * of a turn are never stored in part.
 */
#include "config.h"

#include "tec/apistore/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/apistore/selector.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#include "apistore_internal.h"

#define OWNERS_MAX 256 /* owners of an object that garbage collection knows of */

struct apistore_objects *apistore_objects_new(
	struct apistore_db *take_db, const struct apistore_schema *schema, struct loop *l)
{
	struct apistore_objects *s = xcalloc(1, sizeof(*s));

	s->db = take_db;
	s->schema = schema;
	LIST_INIT(&s->watchers);
	apistore_txn_init(s, l);
	return s;
}

void apistore_objects_free(struct apistore_objects *s)
{
	if (!s)
		return;
	if (!LIST_EMPTY(&s->watchers))
		DIE("API objects freed before their watches");
	apistore_txn_fini(s);
	apistore_db_close(s->db);
	free(s);
}

/* ---- reading */

uint64_t apistore_objects_rv(const struct apistore_objects *s)
{
	return apistore_db_rv(s->db);
}

struct apistore_db *apistore_objects_db(struct apistore_objects *s)
{
	return s->db;
}

const struct apistore_schema *apistore_objects_schema(const struct apistore_objects *s)
{
	return s->schema;
}

struct text {
	char *text;
	size_t len;
};

/* Copy the text, which is borrowed for the call. */
static bool take_text(void *arg, const struct apistore_version *v)
{
	struct text *t = arg;

	t->text = xmemdup(v->body, v->len);
	t->len = v->len;
	return false;
}

/* A failure counts as not found here; apistore_objects_trouble() then returns true. */
char *apistore_objects_text(struct apistore_objects *s, const struct apistore_key *key, size_t *len)
{
	struct err err = ERR_INIT;
	struct text t = {NULL, 0};

	if (apistore_db_get(s->db, key, 0, take_text, &t, &err) < 0)
		(void)apistore_objects_failed(s, &err);
	*len = t.len;
	return t.text;
}

/* Text in the store is ours and was verified, so one that is not JSON is a bug and aborts. */
struct json_object *apistore_objects_get(struct apistore_objects *s, const struct apistore_key *key)
{
	/* Wider than the limits for clients, so that all that was once stored can be read. */
	static const struct json_limits limits = {16u << 20, 256, 1u << 22, true};
	struct err err = ERR_INIT;
	struct json_object *o;
	size_t len = 0;
	char *text = apistore_objects_text(s, key, &len);

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

size_t apistore_objects_count(struct apistore_objects *s, const char *resource, const char *ns)
{
	uint64_t n = apistore_db_count(s->db, resource, ns);

	return n == UINT64_MAX ? 0 : (size_t)n;
}

/* The first kind that matches counts; an unknown resource is a plain object without a schema. */
const struct apistore_kind *apistore_objects_kind(
	const struct apistore_objects *s, const char *group, const char *resource)
{
	static const struct apistore_kind plain;
	const struct apistore_schema *sc = s->schema;

	for (size_t i = 0; i < sc->n_kinds; i++)
		if (str_eq(sc->kinds[i].group, group) &&
			(!sc->kinds[i].resource || str_eq(sc->kinds[i].resource, resource)))
			return &sc->kinds[i];
	return &plain;
}

/* ---- writing */

struct json_object *apistore_objects_meta(struct json_object *o)
{
	struct json_object *m = json_get_obj(o, "metadata");

	if (!m)
		json_add(o, "metadata", m = json_obj());
	return m;
}

bool apistore_objects_same_member(struct json_object *a, struct json_object *b, const char *name)
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
			!apistore_objects_same_member(a, b, name))
			return false;
	}
	return true;
}

/* Return the time for a creationTimestamp: now, but later than any object of a restored backup. The
 * operator uses it to tell objects made since the restore from those that came with it. */
static int64_t creation_s(const struct apistore_objects *s)
{
	int64_t now_s = clock_wall_s(), restored_s = apistore_db_restored_s(s->db);

	return now_s > restored_s ? now_s : restored_s + 1;
}

/* Set name and namespace from the key, and a missing uid or creationTimestamp from the current
 * object, or to new values if there is none (was NULL). */
static void identify(const struct apistore_objects *s, struct json_object *o,
	const struct apistore_key *key, struct json_object *was)
{
	struct json_object *m = apistore_objects_meta(o);
	char uid[UUID_TEXT_LEN + 1], now[CLOCK_RFC3339_LEN];

	json_add_str(m, "name", key->name);
	if (key->ns[0])
		json_add_str(m, "namespace", key->ns);
	if (!json_get_str(m, "uid")) {
		uuid_new_v4(uid);
		json_add_str(m, "uid", was ? json_get_str(was, "metadata/uid") : uid);
	}
	if (!json_get(m, "creationTimestamp")) {
		clock_format(creation_s(s), now);
		json_add_str(m, "creationTimestamp",
			was ? json_get_str(was, "metadata/creationTimestamp") : now);
	}
}

static void stamp_rv(struct json_object *o, uint64_t rv)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, rv);
	json_add_str(apistore_objects_meta(o), "resourceVersion", text);
}

/* Set metadata.generation. It is incremented when anything but metadata and status changes, and
 * when deletion begins, as in kube-apiserver. was NULL: a new object. */
static void stamp_generation(struct json_object *o, struct json_object *was)
{
	struct json_object *m = apistore_objects_meta(o);
	bool changed =
		!was || !spec_within(was, o) || !spec_within(o, was) ||
		(json_get(m, "deletionTimestamp") && !json_get(was, "metadata/deletionTimestamp"));

	json_add_int(
		m, "generation", json_get_int(was, "metadata/generation", 0) + (changed ? 1 : 0));
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

/* Is this object being deleted, and does it need an action of gc.c before it can go? */
static bool waits_for_gc(struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/finalizers");

	if (!json_get(o, "metadata/deletionTimestamp"))
		return false;
	for (size_t i = 0; i < json_len(a); i++) {
		const char *f = json_object_get_string(json_at(a, i));

		if (str_eq(f, "foregroundDeletion") || str_eq(f, "orphan"))
			return true;
	}
	return is_held_by_spec(o);
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
	if (waits_for_gc(o))
		uids[n++] = APISTORE_DELETING;
	return n;
}

/* Secrets are encrypted in the database; all other objects are only authenticated. */
static bool is_sealed(const char *resource)
{
	return str_eq(resource, "secrets");
}

static uint64_t rv_of(struct json_object *o)
{
	const char *text = o ? json_get_str(o, "metadata/resourceVersion") : NULL;
	uint64_t rv = 0;

	return text && str_to_u64(text, INT64_MAX, &rv) == 0 ? rv : 0;
}

/* Write the new version of o, and tell watches and the garbage collector. A deleted Secret is
 * stored without its data, and needs no sealing. */
static int write_version(struct apistore_objects *s, const struct apistore_key *key,
	struct json_object *o, struct json_object *was, const struct apistore_stored *out,
	size_t head)
{
	const char *uids[OWNERS_MAX + 1];
	size_t n = owners_of(o, uids);
	bool sealed = is_sealed(key->resource), bare = sealed && out->gone;
	cleanup_free char *meta = apistore_selector_meta(o, key->resource), *bare_text = NULL;
	struct apistore_version v = {.key = *key,
		.uid = json_get_str(o, "metadata/uid"),
		.rv = rv_of(o),
		.prev = rv_of(was),
		.event = out->gone ? APISTORE_DELETED
			 : was     ? APISTORE_MODIFIED
				   : APISTORE_ADDED,
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
	if (apistore_db_write(s->db, &v, uids, n, &err) < 0)
		return apistore_objects_failed(s, &err);
	apistore_txn_changed(s, key->resource);
	if (s->collector && (out->gone || n > 0 || json_get(o, "metadata/deletionTimestamp")))
		s->collector->note(
			s->collector, key, out->gone ? v.uid : NULL, uids, out->gone ? 0 : n);
	return 0;
}

/* An object equal to the current one is not written and keeps its resourceVersion. It is deleted
 * rather than stored when it has a deletionTimestamp and no finalizers. A deletion is never too
 * large. */
int apistore_objects_store(struct apistore_objects *s, const struct apistore_key *key,
	struct json_object *was, struct json_object *take_o, bool dry, size_t max,
	struct apistore_stored *out)
{
	struct json_object *finalizers = json_get_arr(take_o, "metadata/finalizers");
	cleanup_free char *resource = xstrndup(key->resource, strcspn(key->resource, "."));
	const char *group = key->resource + strlen(resource);
	size_t head;

	*out = (struct apistore_stored){.o = take_o};
	identify(s, take_o, key, was);
	if (was) {
		/* Give the new object the old version, so that the comparison shows whether
		 * anything else changed. */
		json_add_str(apistore_objects_meta(take_o), "resourceVersion",
			json_get_str(was, "metadata/resourceVersion"));
		if (json_object_equal(was, take_o)) {
			out->text = ordered_text(take_o, &out->len, &head);
			return 0;
		}
	}
	/* The transaction begins before the version is issued: versions are the order of
	 * commits. */
	if (!dry && apistore_txn_begin(s) < 0)
		return -1;
	if (!dry)
		stamp_rv(take_o, apistore_db_rv(s->db) + 1);
	if (apistore_objects_kind(s, group[0] ? group + 1 : "", resource)->generation)
		stamp_generation(take_o, was);
	out->gone = json_get(take_o, "metadata/deletionTimestamp") &&
		    (!finalizers || json_len(finalizers) == 0) && !is_held_by_spec(take_o);
	out->text = ordered_text(take_o, &out->len, &head);
	out->too_large = max > 0 && out->len > max && !out->gone;
	return dry || out->too_large ? 0 : write_version(s, key, take_o, was, out, head);
}

/* The text is wiped before it is freed, as it may be a Secret. */
struct json_object *apistore_objects_put(
	struct apistore_objects *s, const struct apistore_key *key, struct json_object *take_o)
{
	cleanup_json struct json_object *was = apistore_objects_get(s, key);
	struct apistore_stored out;
	int rc = apistore_objects_store(s, key, was, take_o, false, 0, &out);

	if (out.text) {
		secret_wipe(out.text, out.len);
		free(out.text);
	}
	if (rc == 0)
		return out.o;
	json_object_put(out.o);
	return NULL;
}
