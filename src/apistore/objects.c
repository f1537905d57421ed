/* SPDX-License-Identifier: MIT */
/*
 * A sorted array of pointers: a look-up is a binary search, lists and pages are runs of it, and an
 * insert moves pointers only (80 KB at 10,000 objects).
 */
#include "config.h"

#include "tec/apistore/objects.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#include "apistore_internal.h"

#define FIRST_RV 1000

struct apistore_objects *apistore_objects_new(const struct apistore_schema *schema)
{
	struct apistore_objects *s = xcalloc(1, sizeof(*s));

	s->schema = schema;
	s->rv = FIRST_RV;
	return s;
}

static void object_free(struct apistore_object *e)
{
	json_object_put(e->o);
	json_object_put(e->applied[0]);
	json_object_put(e->applied[1]);
	free(e->collection);
	free(e->name);
	free(e);
}

void apistore_objects_free(struct apistore_objects *s)
{
	if (!s)
		return;
	if (s->watches)
		DIE("the objects of an API are freed before its watches");
	apistore_watch_compact(s);
	for (size_t i = 0; i < s->n; i++)
		object_free(s->sorted[i]);
	free(s->sorted);
	free(s->history);
	free(s);
}

uint64_t apistore_objects_rv(const struct apistore_objects *s)
{
	return s->rv;
}

size_t apistore_objects_slot(
	const struct apistore_objects *s, const char *collection, const char *name)
{
	size_t from = 0, to = s->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		int d = strcmp(s->sorted[mid]->collection, collection);

		d = d ? d : strcmp(s->sorted[mid]->name, name);
		if (d < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

struct apistore_object *apistore_objects_find(
	const struct apistore_objects *s, const char *collection, const char *name)
{
	size_t i = apistore_objects_slot(s, collection, name);
	struct apistore_object *e = i < s->n ? s->sorted[i] : NULL;

	return e && str_eq(e->collection, collection) && str_eq(e->name, name) ? e : NULL;
}

struct json_object *apistore_objects_get(
	const struct apistore_objects *s, const char *collection, const char *name)
{
	struct apistore_object *e = apistore_objects_find(s, collection, name);

	return e ? e->o : NULL;
}

struct json_object *apistore_objects_at(const struct apistore_objects *s, size_t index)
{
	return index < s->n ? s->sorted[index]->o : NULL;
}

size_t apistore_objects_count(const struct apistore_objects *s, const char *collection)
{
	size_t first = apistore_objects_slot(s, collection, ""), i = first;

	while (i < s->n && str_eq(s->sorted[i]->collection, collection))
		i++;
	return i - first;
}

const struct apistore_kind *apistore_objects_kind(
	const struct apistore_objects *s, const char *collection)
{
	static const struct apistore_kind plain;
	const char *group = str_starts(collection, "/apis/") ? collection + 6 : "";
	size_t len = strcspn(group, "/");

	for (size_t i = 0; i < s->schema->n_kinds; i++) {
		const struct apistore_kind *k = &s->schema->kinds[i];

		if (strlen(k->group) == len && strncmp(k->group, group, len) == 0 &&
			(!k->resource || str_eq(k->resource, strrchr(collection, '/') + 1)))
			return k;
	}
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

/* Does every member of a but metadata and status stand in b? */
static bool spec_within(struct json_object *a, struct json_object *b)
{
	json_object_object_foreach (a, name, value) {
		(void)value;
		if (strcmp(name, "metadata") != 0 && strcmp(name, "status") != 0 &&
			!apistore_objects_same_member(a, b, name))
			return false;
	}
	return true;
}

/* Name and namespace, whatever the client says; uid and creationTimestamp where they are missing:
 * as they were, or new ones (was NULL). */
static void identify(
	struct json_object *o, const char *collection, const char *name, struct json_object *was)
{
	struct json_object *m = apistore_objects_meta(o);
	const char *ns = strstr(collection, "/namespaces/");
	char uid[UUID_TEXT_LEN + 1], now[CLOCK_RFC3339_LEN];

	json_add_str(m, "name", name);
	if (ns) {
		cleanup_free char *ns_name = xstrndup(ns + 12, strcspn(ns + 12, "/"));

		json_add_str(m, "namespace", ns_name);
	}
	uuid_new_v4(uid);
	clock_format(clock_wall_s(), now);
	if (!json_get(m, "uid"))
		json_add_str(m, "uid", was ? json_get_str(was, "metadata/uid") : uid);
	if (!json_get(m, "creationTimestamp"))
		json_add_str(m, "creationTimestamp",
			was ? json_get_str(was, "metadata/creationTimestamp") : now);
}

/* resourceVersion and generation. was: NULL for a new one. */
static void stamp(struct apistore_objects *s, const char *collection, struct json_object *o,
	struct json_object *was)
{
	struct json_object *m = apistore_objects_meta(o);
	char rv[24];
	bool changed =
		!was || !spec_within(was, o) || !spec_within(o, was) ||
		(json_get(m, "deletionTimestamp") && !json_get(was, "metadata/deletionTimestamp"));

	snprintf(rv, sizeof(rv), "%" PRIu64, ++s->rv);
	json_add_str(m, "resourceVersion", rv);
	if (apistore_objects_kind(s, collection)->generation)
		json_add_int(m, "generation",
			json_get_int(was, "metadata/generation", 0) + (changed ? 1 : 0));
}

static struct apistore_object *insert(
	struct apistore_objects *s, const char *collection, const char *name)
{
	size_t at = apistore_objects_slot(s, collection, name);
	struct apistore_object *e = xcalloc(1, sizeof(*e));

	e->collection = xstrdup(collection);
	e->name = xstrdup(name);
	if ((s->n & (s->n - 1)) == 0) /* a power of two is full */
		s->sorted = xreallocarray(s->sorted, s->n ? s->n * 2 : 1, sizeof(*s->sorted));
	memmove(s->sorted + at + 1, s->sorted + at, (s->n++ - at) * sizeof(*s->sorted));
	s->sorted[at] = e;
	return e;
}

static void drop(struct apistore_objects *s, struct apistore_object *e)
{
	size_t at = apistore_objects_slot(s, e->collection, e->name);

	memmove(s->sorted + at, s->sorted + at + 1, (--s->n - at) * sizeof(*s->sorted));
	object_free(e);
}

struct json_object *apistore_objects_put(struct apistore_objects *s, const char *collection,
	const char *name, struct json_object *take_o)
{
	struct apistore_object *e = apistore_objects_find(s, collection, name);
	struct json_object *finalizers = json_get_arr(take_o, "metadata/finalizers");
	bool added = e == NULL;

	identify(take_o, collection, name, e ? e->o : NULL);
	if (added) {
		e = insert(s, collection, name);
	} else {
		json_add_str(apistore_objects_meta(take_o), "resourceVersion",
			json_get_str(e->o, "metadata/resourceVersion"));
		if (json_object_equal(e->o, take_o)) {
			json_object_put(take_o);
			return e->o;
		}
	}
	stamp(s, collection, take_o, e->o);
	json_object_put(e->o);
	e->o = take_o;
	if (json_get(take_o, "metadata/deletionTimestamp") &&
		(!finalizers || json_object_array_length(finalizers) == 0)) {
		apistore_watch_note(s, "DELETED", collection, take_o); /* the history keeps it */
		drop(s, e);
	} else {
		apistore_watch_note(s, added ? "ADDED" : "MODIFIED", collection, take_o);
	}
	return take_o;
}
