/* SPDX-License-Identifier: MIT */
/*
 * Merges a configuration into an object. The order of lists follows structured-merge-diff: elements
 * of the object keep their places, and applied elements keep their order around those that both
 * have.
 */
#include "config.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "typed_internal.h"

static struct json_object *merge(
	const struct apistore_place *p, struct json_object *l, struct json_object *r);

static struct json_object *copy_of(struct json_object *v)
{
	return v ? json_copy(v) : NULL;
}

/* Merge member by member; members of one side only are copied. r NULL: there is nothing to
 * merge. */
static struct json_object *merge_maps(
	const struct apistore_place *p, struct json_object *l, struct json_object *r)
{
	struct json_object *out = json_obj(), *other;

	json_each (l, name, v) {
		if (typed_is_map(r) && json_object_object_get_ex(r, name, &other)) {
			struct apistore_place at = apistore_place_member(p, name);

			json_add(out, name, merge(&at, v, other));
		} else {
			json_add(out, name, copy_of(v));
		}
	}
	if (!typed_is_map(r))
		return out;
	json_each (r, added, theirs)
		if (!json_object_object_get_ex(l, added, NULL))
			json_add(out, added, copy_of(theirs));
	return out;
}

/* A list being merged: l is the object's, r the applied one. */
struct weave {
	struct apistore_place at;
	struct typed_items l, r;
	const struct typed_item **l_in_r,
		**r_in_l; /* owned arrays: the same element on the other side, or NULL */
	bool *taken;      /* owned: elements of r that are in out */
	size_t shared;    /* the next element of r that is in l too; r.n: none */
	struct json_object *out;
};

static void next_shared(struct weave *w, size_t from)
{
	w->shared = from;
	while (w->shared < w->r.n && !w->r_in_l[w->shared])
		w->shared++;
}

/* Append an applied element, merged with the object's unless that is duplicated. */
static void take_right(struct weave *w, size_t k)
{
	const struct typed_item *l = w->r_in_l[k];
	size_t n = 0;

	if (l)
		typed_items_find(&w->l, l->step, &n);
	w->taken[k] = true;
	json_push(w->out, n == 1 ? merge(&w->at, l->e, w->r.at[k].e) : copy_of(w->r.at[k].e));
	if (w->shared == k)
		next_shared(w, k + 1);
}

/* Walk both lists at once. An element of l alone is copied. A shared element is merged when it is
 * next on both sides; if the orders differ, that of r wins and the place in l is skipped. */
static void weave(struct weave *w)
{
	size_t i = 0, k = 0;

	while (i < w->l.n || k < w->r.n) {
		const struct typed_item *in_r = i < w->l.n ? w->l_in_r[i] : NULL;

		/* An element of the object alone keeps its place. */
		if (i < w->l.n && !in_r) {
			json_push(w->out, copy_of(w->l.at[i++].e));
		} else if (in_r && k < w->r.n && in_r->i == k) {
			take_right(w, k++);
			i++;
		} else if (in_r && (w->taken[in_r->i] || (k < w->r.n && w->shared < w->r.n &&
								 w->shared != in_r->i))) {
			i++;
		} else {
			take_right(w, k++);
		}
	}
}

/* Index both lists by step and merge them. */
static struct json_object *merge_lists(
	const struct apistore_place *p, struct json_object *l, struct json_object *r)
{
	struct weave w = {.at = apistore_place_element(p),
		.l = typed_items_of(p, l),
		.r = typed_items_of(p, r),
		.out = json_arr()};
	size_t n;

	w.l_in_r = xcalloc(w.l.n + 1, sizeof(struct typed_item *));
	w.r_in_l = xcalloc(w.r.n + 1, sizeof(struct typed_item *));
	w.taken = xcalloc(w.r.n + 1, sizeof(bool));
	for (size_t i = 0; i < w.l.n; i++)
		if (w.l.at[i].step)
			w.l_in_r[i] = typed_items_find(&w.r, w.l.at[i].step, &n);
	for (size_t i = 0; i < w.r.n; i++)
		if (w.r.at[i].step)
			w.r_in_l[i] = typed_items_find(&w.l, w.r.at[i].step, &n);
	next_shared(&w, 0);
	weave(&w);
	typed_items_fini(&w.l);
	typed_items_fini(&w.r);
	free(w.l_in_r);
	free(w.r_in_l);
	free(w.taken);
	return w.out;
}

/* Merge two values. Values that are owned as a whole, and those of different types, are replaced by
 * r. */
static struct json_object *merge(
	const struct apistore_place *p, struct json_object *l, struct json_object *r)
{
	bool empty = typed_is_empty(l) && typed_is_empty(r);

	if (typed_is_map(l) && (typed_is_map(r) || !r) && !typed_is_leaf(p, l) && !empty)
		return merge_maps(p, l, r);
	if (typed_is_list(l) && (typed_is_list(r) || !r) && !typed_is_leaf(p, l) && !empty)
		return merge_lists(p, l, r);
	return copy_of(r);
}

struct json_object *apistore_typed_merge(
	const struct apistore_place *p, struct json_object *o, struct json_object *conf)
{
	return merge(p, o, conf);
}
