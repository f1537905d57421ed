/* SPDX-License-Identifier: MIT */
/*
 * What a value was before an update, as far as that can be told: members by name, elements of a
 * list that is a map by their keys, other elements not at all. Equality is asked for only where
 * something is wrong, and remembered in the frame.
 */
#include "config.h"

#include "schema_internal.h"
#include "tec/base/json.h"

static struct schema_then child(struct schema_then *t, struct json_object *now,
	struct json_object *old, bool known, const struct schema_node *s)
{
	return (struct schema_then){.s = s,
		.now = now,
		.old = old,
		.parent = t->known ? t : t->parent,
		.known = known,
		.equal = -1};
}

struct schema_then schema_then_member(struct schema_then *t, const char *name,
	struct json_object *now, const struct schema_node *s)
{
	struct json_object *old = NULL;
	bool known = t->known && json_object_is_type(t->old, json_type_object) &&
		     json_object_object_get_ex(t->old, name, &old);

	/* apiVersion and kind are not compared: both objects have the same after conversion. */
	if (!t->parent && t->known && (str_eq(name, "apiVersion") || str_eq(name, "kind")))
		known = false;
	return child(t, now, old, known, s);
}

static bool same_keys(const struct schema_node *list, struct json_object *a, struct json_object *b)
{
	for (size_t i = 0; i < list->n_keys; i++) {
		struct json_object *x = NULL, *y = NULL;
		bool in_a = json_object_object_get_ex(a, list->keys[i], &x),
		     in_b = json_object_object_get_ex(b, list->keys[i], &y);

		if (in_a != in_b || !json_object_equal(x, y))
			return false;
	}
	return true;
}

struct json_object *schema_map_find(
	const struct schema_node *list, struct json_object *old, struct json_object *now)
{
	if (!list->map || !json_object_is_type(old, json_type_array) ||
		!json_object_is_type(now, json_type_object))
		return NULL;
	for (size_t i = 0; i < json_object_array_length(old); i++) {
		struct json_object *o = json_object_array_get_idx(old, i);

		if (json_object_is_type(o, json_type_object) && same_keys(list, o, now))
			return o;
	}
	return NULL;
}

struct schema_then schema_then_element(
	struct schema_then *t, struct json_object *now, const struct schema_node *s)
{
	struct json_object *old = t->known && t->s ? schema_map_find(t->s, t->old, now) : NULL;

	return child(t, now, old, old != NULL, s);
}

/* Lists that are maps are equal in any order. */
static bool equal(const struct schema_node *s, struct json_object *a, struct json_object *b)
{
	if (json_object_get_type(a) != json_object_get_type(b))
		return false;
	if (json_object_is_type(a, json_type_object)) {
		if (json_object_object_length(a) != json_object_object_length(b))
			return false;
		json_object_object_foreach (a, name, v) {
			struct json_object *w = NULL;

			if (!json_object_object_get_ex(b, name, &w) ||
				!equal(s ? schema_node_prop(s, name) ? schema_node_prop(s, name)
								     : s->additional
					 : NULL,
					v, w))
				return false;
		}
		return true;
	}
	if (!s || !s->map || !json_object_is_type(a, json_type_array))
		return json_object_equal(a, b);
	if (json_object_array_length(a) != json_object_array_length(b))
		return false;
	for (size_t i = 0; i < json_object_array_length(a); i++) {
		struct json_object *v = json_object_array_get_idx(a, i),
				   *w = schema_map_find(s, b, v);

		if (!w || !equal(s->items, v, w))
			return false;
	}
	return true;
}

bool schema_then_equal(struct schema_then *t)
{
	if (!t->known) /* as its nearest parent that can be told */
		return t->parent && schema_then_equal((struct schema_then *)t->parent);
	if (t->equal < 0)
		t->equal = equal(t->s, t->now, t->old);
	return t->equal;
}
