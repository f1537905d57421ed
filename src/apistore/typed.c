/* SPDX-License-Identifier: MIT */
/*
 * Places, the paths in an object, and removing by paths. Each function walks the object along its
 * type; what to do depends on the type of the value and on how the place merges.
 */
#include "config.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "typed_internal.h"

/* ---- places */

/* The root of a kind. Without a schema (in tests), lists merge by the names in `lists`. */
struct apistore_place apistore_place_object(
	const struct apistore_kind *k, const struct apistore_lists *lists)
{
	struct apistore_place p = {.lists = k->schema ? NULL : lists};

	if (k->schema) {
		p.at = schema_at_object(k->schema);
		p.custom = k->schema->crd != NULL;
	}
	p.merge = *schema_at_merge(p.at);
	return p;
}

/* Find out how a list merges in a kind without a schema: by the name of its member alone. */
static struct schema_merge merge_by_name(const struct apistore_lists *lists, const char *name)
{
	if (str_eq(name, "finalizers"))
		return (struct schema_merge){.type = SCHEMA_MERGE_SET};
	if (str_eq(name, "ownerReferences"))
		return (struct schema_merge){.type = SCHEMA_MERGE_MAP, .keys = {"uid"}};
	for (size_t i = 0; i < lists->n; i++) {
		const struct apistore_list *l = &lists->list[i];

		if (str_eq(name, l->member))
			return (struct schema_merge){.type = SCHEMA_MERGE_MAP,
				.keys = {l->keys[0], l->keys[1], l->keys[2]}};
	}
	return (struct schema_merge){.type = SCHEMA_MERGE_PLAIN};
}

/* An unknown member gives a place without a schema, which merges as plain values. */
struct apistore_place apistore_place_member(const struct apistore_place *p, const char *name)
{
	struct apistore_place to = {.lists = p->lists, .custom = p->custom};

	if (p->lists) {
		to.merge = merge_by_name(p->lists, name);
		return to;
	}
	to.at = schema_at_member(p->at, name);
	to.merge = *schema_at_merge(to.at);
	return to;
}

/* All elements of a list share one place. */
struct apistore_place apistore_place_element(const struct apistore_place *p)
{
	struct apistore_place to = {.lists = p->lists, .custom = p->custom};

	if (!p->lists)
		to.at = schema_at_element(p->at);
	to.merge = *schema_at_merge(to.at);
	return to;
}

/* Does the type declare this member, other than as a key of a map? */
static bool is_declared(const struct apistore_place *p, const char *name)
{
	return !p->custom || schema_at_declares(p->at, name) == SCHEMA_DECLARED;
}

/* ---- the paths of an object */

static struct apistore_fieldset fields_of_map(
	const struct apistore_place *p, struct json_object *o);
static struct apistore_fieldset fields_of_list(
	const struct apistore_place *p, struct json_object *list);

/* Return the paths below a value; *self: the path to the value itself is in the set too. */
static struct apistore_fieldset fields_of(
	const struct apistore_place *p, struct json_object *v, bool *self)
{
	*self = typed_is_leaf(p, v);
	if (*self)
		return (struct apistore_fieldset){NULL, 0};
	if (typed_is_map(v)) {
		*self = typed_is_empty(v);
		return fields_of_map(p, v);
	}
	return fields_of_list(p, v);
}

/* In a kind with a CRD, a key of a map is a path of its own even if its value has fields; a
 * declared member is not. */
static struct apistore_fieldset fields_of_map(const struct apistore_place *p, struct json_object *o)
{
	struct apistore_fieldset out = {NULL, 0};

	json_each (o, name, v) {
		struct apistore_place at = apistore_place_member(p, name);
		cleanup_free char *step = typed_field_step(name);
		bool self;
		struct apistore_fieldset below = fields_of(&at, v, &self);

		apistore_fieldset_add(&out, step, self || !is_declared(p, name), &below);
	}
	apistore_fieldset_done(&out);
	return out;
}

/* Duplicates of an element count as one path without anything below it. */
static struct apistore_fieldset fields_of_list(
	const struct apistore_place *p, struct json_object *list)
{
	cleanup_typed_items struct typed_items it = typed_items_of(p, list);
	const struct apistore_place at = apistore_place_element(p);
	struct apistore_fieldset out = {NULL, 0};

	for (size_t i = 0, n; i < it.n_sorted; i += n) {
		struct apistore_fieldset below = {NULL, 0};
		bool self;

		n = typed_items_run(&it, i);
		if (n == 1)
			below = fields_of(&at, it.sorted[i]->e, &self);
		apistore_fieldset_add(&out, it.sorted[i]->step, true, &below);
	}
	apistore_fieldset_done(&out);
	return out;
}

/* The object itself is not a path: every set begins with its members. */
struct apistore_fieldset apistore_typed_fields(
	const struct apistore_place *p, struct json_object *o)
{
	bool self;

	return fields_of(p, o, &self);
}

/* The set is sorted and stays so, because only members are marked. */
struct apistore_fieldset apistore_typed_with_parents(
	const struct apistore_place *p, const struct apistore_fieldset *s)
{
	struct apistore_fieldset out = {NULL, 0};

	for (size_t i = 0; i < s->n; i++) {
		const struct apistore_step *f = &s->at[i];
		bool field = f->step[0] == 'f';
		struct apistore_place at =
			field ? apistore_place_member(p, f->step + 2) : apistore_place_element(p);
		struct apistore_fieldset below = apistore_typed_with_parents(&at, &f->below);

		apistore_fieldset_add(
			&out, f->step, f->member || (field && is_declared(p, f->step + 2)), &below);
	}
	return out;
}

/* ---- removing */

/* Remove elements in place by closing the gaps, so a long list costs one pass. */
static void remove_from_list(
	const struct apistore_place *p, struct json_object *list, const struct apistore_fieldset *s)
{
	const struct apistore_place at = apistore_place_element(p);
	size_t n = json_len(list), kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(list, i);
		cleanup_free char *step = typed_element_step(&p->merge, e);
		const struct apistore_step *f = step ? apistore_fieldset_find(s, step) : NULL;

		if (f && f->member)
			continue;
		if (f)
			apistore_typed_remove(&at, e, &f->below);
		if (kept != i)
			json_put_at(list, kept, json_object_get(e));
		kept++;
	}
	if (kept < n)
		json_cut(list, kept, n - kept);
}

/* A path that is a member of the set is removed whole, else only what the set has below it. */
void apistore_typed_remove(
	const struct apistore_place *p, struct json_object *o, const struct apistore_fieldset *s)
{
	if (typed_is_leaf(p, o) || typed_is_empty(o))
		return;
	if (typed_is_list(o)) {
		remove_from_list(p, o, s);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct apistore_step *f = &s->at[i];
		const char *name = f->step + 2;
		struct apistore_place at;
		struct json_object *v;

		if (f->step[0] != 'f' || !json_object_object_get_ex(o, name, &v))
			continue;
		at = apistore_place_member(p, name);
		if (!f->member && typed_is_empty(v))
			continue;
		if (!f->member)
			apistore_typed_remove(&at, v, &f->below);
		if (f->member || typed_is_empty(v))
			json_drop(o, name);
	}
}
