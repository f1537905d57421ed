/* SPDX-License-Identifier: MIT */
/*
 * A watch says when the definitions changed; they are listed again then, which is rare, and those
 * that changed are compiled. One that waits for a name gets it when the other definition left it.
 */
#include "config.h"

#include "tec/apistore/kinds.h"

#include "tec/apistore/face.h"
#include "tec/apistore/watch.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd_status.h"

#include "apistore_internal.h"

#define SEEN_MAX (256u << 10)

struct definition {
	struct schema_crd *crd; /* owned, the same as in the array of all */
	char *uid;              /* owned */
	int64_t generation;
	struct json_object *names; /* as accepted; owned */
	struct apistore_kind kind; /* points into crd */
};

struct apistore_kinds {
	struct loop *loop;
	struct apistore_objects *objects; /* borrowed */
	struct apistore_watch *watch;     /* owned; of the definitions */
	struct defer reload;
	struct apistore_kind *builtin; /* owned */
	size_t n_builtin;
	struct definition **known; /* owned, in the order of their names */
	struct schema_crd **crds;  /* owned array: one of each known */
	size_t n;
	uint64_t state; /* counts the changes of known */
};

static struct apistore_kind kind_of(const struct schema_kind *k)
{
	return (struct apistore_kind){.group = k->group,
		.resource = k->plural,
		.kind = k->kind,
		.generation = k->generation,
		.status = k->status,
		.custom = k->crd != NULL,
		.schema = k};
}

/* ---- definitions */

static void forget(struct definition *d)
{
	if (!d)
		return;
	schema_crd_free(d->crd);
	json_object_put(d->names);
	free(d->uid);
	free(d);
}

/* NULL: it cannot be served, which was refused when it came; an older program may have let it in. */
static struct definition *read_definition(struct json_object *o)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};
	struct json_object *names = json_get_obj(o, "status/acceptedNames");
	struct schema_crd *crd;
	struct definition *d;

	if (names)
		json_add(json_get_obj(o, "spec"), "names", json_copy(names));
	schema_crd_default(o);
	crd = schema_crd_new(o, &causes);
	if (!crd) {
		cleanup_free char *why = schema_causes_text(&causes);
		const char *name = json_get_str(o, "metadata/name");

		log_warn(NULL, "a stored CustomResourceDefinition cannot be served",
			"crd=%s err=%s", log_esc(name ? name : ""), log_esc(why));
		return NULL;
	}
	d = xcalloc(1, sizeof(*d));
	d->crd = crd;
	d->uid = xstrdup(json_get_str(o, "metadata/uid"));
	d->generation = json_get_int(o, "metadata/generation", 0);
	d->names = json_copy(names);
	d->kind = kind_of(&schema_crd_storage(crd)->kind);
	d->kind.ending = json_get(o, "metadata/deletionTimestamp") != NULL;
	return d;
}

/* Takes the one that is known already out of the old ones; NULL: it is new or changed. */
static struct definition *steal_known(struct definition **old, size_t n, struct json_object *o)
{
	for (size_t i = 0; i < n; i++)
		if (old[i] && str_eq(old[i]->uid, json_get_str(o, "metadata/uid")) &&
			old[i]->generation == json_get_int(o, "metadata/generation", 0) &&
			json_object_equal(old[i]->names, json_get_obj(o, "status/acceptedNames")))
			return steal_ptr(&old[i]);
	return NULL;
}

static void add(struct apistore_kinds *k, struct definition *take_d)
{
	size_t n = k->n;

	if (!take_d)
		return;
	ARRAY_GROW(k->crds, n);
	ARRAY_GROW(k->known, k->n);
	k->crds[k->n] = take_d->crd;
	k->known[k->n++] = take_d;
}

static void end_watches(const struct apistore_kinds *k, const struct definition *gone)
{
	if (!apistore_kinds_of((void *)k, gone->kind.group, gone->kind.resource))
		apistore_watch_end_of(k->objects, gone->kind.group, gone->kind.resource);
}

/* The names of the others may be free now. o is one of all, so that the next one sees what it got. */
static void try_names(struct apistore_kinds *k, struct json_object *o, struct json_object *all)
{
	const struct apistore_key key = {APISTORE_CRDS, "", json_get_str(o, "metadata/name")};
	cleanup_json struct json_object *was = json_copy(o);
	struct json_object *stored;
	char now[CLOCK_RFC3339_LEN];

	clock_format(clock_wall_s(), now);
	schema_crd_accept(o, all, now);
	if (apistore_objects_same_member(o, was, "status"))
		return;
	stored = json_copy(o); /* items of a list leave these out */
	json_add_str(stored, "apiVersion", "apiextensions.k8s.io/v1");
	json_add_str(stored, "kind", "CustomResourceDefinition");
	json_object_put(apistore_objects_put(k->objects, &key, stored));
}

static void reload(void *arg)
{
	struct apistore_kinds *k = arg;
	cleanup_json struct json_object *list = apistore_face_get(k->objects, APISTORE_CRDS_PATH);
	struct json_object *items = json_get_arr(list, "items");
	struct body seen = BODY_INIT;
	cleanup_free struct definition **old = NULL;
	size_t n_old = k->n;

	while (k->watch && apistore_watch_take(k->watch, &seen, SEEN_MAX) == APISTORE_WATCH_MORE)
		body_fini(&seen); /* what changed is in the list */
	body_fini(&seen);
	if (!items)
		return; /* the database failed, and said so: what was known goes on */
	old = steal_ptr(&k->known);
	free(steal_ptr(&k->crds));
	k->n = 0;
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		struct json_object *o = json_object_array_get_idx(items, i);
		struct definition *d = NULL;

		if (schema_crd_waits(o))
			try_names(k, o, items);
		if (schema_crd_is_served(o))
			d = steal_known(old, n_old, o);
		if (d || schema_crd_is_served(o)) {
			k->state += !d;
			add(k, d ? d : read_definition(o));
		}
	}
	for (size_t i = 0; i < n_old; i++) {
		k->state += old[i] != NULL;
		if (old[i])
			end_watches(k, old[i]);
		forget(old[i]);
	}
}

static void on_ready(void *arg)
{
	struct apistore_kinds *k = arg;

	defer_call(&k->reload, k->loop, reload, k);
}

/* ---- life */

struct apistore_kinds *apistore_kinds_new(void)
{
	struct apistore_kinds *k = xcalloc(1, sizeof(*k));

	k->n_builtin = schema_builtin_count();
	k->builtin = xcalloc(k->n_builtin, sizeof(*k->builtin));
	for (size_t i = 0; i < k->n_builtin; i++)
		k->builtin[i] = kind_of(schema_builtin_at(i));
	return k;
}

void apistore_kinds_free(struct apistore_kinds *k)
{
	if (!k)
		return;
	apistore_watch_free(k->watch);
	defer_cancel(&k->reload);
	for (size_t i = 0; i < k->n; i++)
		forget(k->known[i]);
	free(k->known);
	free(k->crds);
	free(k->builtin);
	free(k);
}

void apistore_kinds_follow(struct apistore_kinds *k, struct loop *l, struct apistore_objects *s)
{
	struct apistore_answer refused = {0};
	struct apistore_target t;
	struct err err = ERR_INIT;

	k->loop = l;
	k->objects = s;
	if (apistore_target_parse(APISTORE_CRDS_PATH "?watch=true", &t, &err) < 0)
		DIE("%s", err.text);
	k->watch = apistore_watch_new(s, &t, on_ready, k, &refused);
	apistore_target_fini(&t);
	apistore_answer_fini(&refused);
	reload(k);
}

/* ---- asking */

const struct apistore_kind *apistore_kinds_of(void *arg, const char *group, const char *resource)
{
	const struct apistore_kinds *k = arg;

	for (size_t i = 0; i < k->n_builtin; i++)
		if (str_eq(k->builtin[i].resource, resource) && str_eq(k->builtin[i].group, group))
			return &k->builtin[i];
	for (size_t i = 0; i < k->n; i++)
		if (str_eq(k->known[i]->kind.resource, resource) &&
			str_eq(k->known[i]->kind.group, group))
			return &k->known[i]->kind;
	return NULL;
}

struct schema_served apistore_kinds_served(const struct apistore_kinds *k)
{
	return (struct schema_served){k->crds, k->n};
}

const struct schema_kind *apistore_kinds_find(
	const struct apistore_kinds *k, const char *group, const char *version, const char *plural)
{
	const struct schema_served served = apistore_kinds_served(k);

	return schema_served_kind(&served, group, version, plural);
}

uint64_t apistore_kinds_state(const struct apistore_kinds *k)
{
	return k->state;
}
