/* SPDX-License-Identifier: MIT */
/*
 * What changes an object by its schema: unknown members go, nulls that may not be go, defaults come.
 * The depth of the walk is the depth of the object, which its reader has bounded.
 */
#include "config.h"

#include "tec/schema/structural.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"

struct prune {
	struct strbuf path;
	struct schema_texts *unknown; /* NULL: not wanted */
};

static bool is_meta(const char *name)
{
	return str_eq(name, "apiVersion") || str_eq(name, "kind") || str_eq(name, "metadata");
}

static void note(struct prune *p, const char *name)
{
	if (p->unknown)
		schema_texts_add(
			p->unknown, "%s%s%s", strbuf_str(&p->path), p->path.len ? "." : "", name);
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (str_eq(name, *list))
			return true;
	return false;
}

static void keep_only(struct prune *p, struct json_object *o, const char *const *names)
{
	if (!json_object_is_type(o, json_type_object))
		return;
	json_object_object_foreach (o, name, v) {
		(void)v;
		if (is_one_of(name, names))
			continue;
		note(p, name);
		json_object_object_del(o, name);
	}
}

static void prune_elements(
	struct prune *p, struct json_object *meta, const char *list, const char *const *names)
{
	struct json_object *a = json_object_object_get(meta, list);
	size_t before;

	if (!json_object_is_type(a, json_type_array))
		return;
	before = schema_path_add(&p->path, list);
	for (size_t i = 0; i < json_object_array_length(a); i++) {
		size_t here = schema_path_index(&p->path, i);

		keep_only(p, json_object_array_get_idx(a, i), names);
		schema_path_cut(&p->path, here);
	}
	schema_path_cut(&p->path, before);
}

/* ObjectMeta is the same for every kind, and no schema says it. */
static void prune_metadata(struct prune *p, struct json_object *meta)
{
	static const char *const names[] = {"annotations", "creationTimestamp",
		"deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
		"generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
		"resourceVersion", "selfLink", "uid", NULL};
	static const char *const owner[] = {
		"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid", NULL};
	static const char *const managed[] = {"apiVersion", "fieldsType", "fieldsV1", "manager",
		"operation", "subresource", "time", NULL};
	size_t before;

	if (!json_object_is_type(meta, json_type_object))
		return;
	before = schema_path_add(&p->path, "metadata");
	keep_only(p, meta, names);
	prune_elements(p, meta, "ownerReferences", owner);
	prune_elements(p, meta, "managedFields", managed);
	schema_path_cut(&p->path, before);
}

static void prune(
	struct prune *p, struct json_object *v, const struct schema_node *s, bool embedded);

static void prune_object(
	struct prune *p, struct json_object *o, const struct schema_node *s, bool embedded)
{
	json_object_object_foreach (o, name, v) {
		const struct schema_node *child;
		size_t before;

		if (embedded && is_meta(name)) {
			if (str_eq(name, "metadata"))
				prune_metadata(p, v);
			continue;
		}
		child = s ? schema_node_prop(s, name) : NULL;
		if (!child && s && s->additional)
			child = s->additional;
		if (!child &&
			(!s || (!s->preserve && s->additional_is == SCHEMA_ADDITIONAL_UNSET))) {
			note(p, name);
			json_object_object_del(o, name);
			continue;
		}
		/* Below what is kept as it is, only what the schema names is looked at; below
		 * additionalProperties: true, everything goes. */
		if (!child && s && s->preserve)
			continue;
		before = schema_path_add(&p->path, name);
		prune(p, v, child, child && child->embedded);
		schema_path_cut(&p->path, before);
	}
}

static void prune(
	struct prune *p, struct json_object *v, const struct schema_node *s, bool embedded)
{
	if (json_object_is_type(v, json_type_object)) {
		prune_object(p, v, s, embedded);
		return;
	}
	if (!json_object_is_type(v, json_type_array))
		return;
	if (s && s->preserve && !s->items)
		return;
	for (size_t i = 0; i < json_object_array_length(v); i++) {
		const struct schema_node *items = s ? s->items : NULL;
		size_t before = schema_path_index(&p->path, i);

		prune(p, json_object_array_get_idx(v, i), items, items && items->embedded);
		schema_path_cut(&p->path, before);
	}
}

void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown)
{
	struct prune p = {STRBUF_INIT, unknown};

	prune(&p, o, s, true);
	strbuf_fini(&p.path);
	if (unknown)
		schema_texts_sort(unknown);
}

/* ---- nulls and defaults */

static const struct schema_node *schema_of(const struct schema_node *s, const char *name)
{
	return schema_node_member(s, name);
}

/* A null that may not be: it goes, or its default comes in its place. */
static bool is_bad_null(struct json_object *v, const struct schema_node *s)
{
	return !v && s && !s->nullable;
}

static void drop_nulls(struct json_object *v, const struct schema_node *s)
{
	if (json_object_is_type(v, json_type_object)) {
		json_object_object_foreach (v, name, child) {
			const struct schema_node *c = schema_of(s, name);

			if (is_bad_null(child, c) && !c->dflt)
				json_object_object_del(v, name);
			else
				drop_nulls(child, c);
		}
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(v); i++)
			drop_nulls(json_object_array_get_idx(v, i), schema_node_element(s));
	}
}

static void fill_object(struct json_object *o, const struct schema_node *s)
{
	for (size_t i = 0; i < s->n_props; i++) {
		const struct schema_node *p = s->prop[i].node;
		struct json_object *v = NULL;

		if (p->dflt &&
			(!json_object_object_get_ex(o, s->prop[i].name, &v) || is_bad_null(v, p)))
			json_object_object_add(o, s->prop[i].name, json_copy(p->dflt));
	}
	if (!s->additional)
		return;
	json_object_object_foreach (o, name, v)
		if (!schema_node_prop(s, name) && is_bad_null(v, s->additional) &&
			s->additional->dflt)
			json_object_object_add(o, name, json_copy(s->additional->dflt));
}

static void fill(struct json_object *v, const struct schema_node *s)
{
	if (!s || !s->has_default)
		return;
	if (json_object_is_type(v, json_type_object)) {
		fill_object(v, s);
		json_object_object_foreach (v, name, child)
			fill(child, schema_of(s, name));
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(v); i++) {
			if (s->items && s->items->dflt &&
				is_bad_null(json_object_array_get_idx(v, i), s->items))
				json_object_array_put_idx(v, i, json_copy(s->items->dflt));
			fill(json_object_array_get_idx(v, i), s->items);
		}
	}
}

void schema_default(const struct schema_node *s, struct json_object *o)
{
	drop_nulls(o, s);
	fill(o, s);
}
