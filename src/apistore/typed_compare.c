/* SPDX-License-Identifier: MIT */
/*
 * Compares two objects by walking both together, maps by member and lists by the steps of their
 * elements.
 */
#include "config.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "typed_internal.h"

enum change { SAME, ADDED, REMOVED, MODIFIED };

/* A value on one side. A member that is null exists, with v NULL. */
struct side {
	bool there;
	struct json_object *v; /* borrowed */
};

void apistore_delta_fini(struct apistore_delta *d)
{
	apistore_fieldset_fini(&d->added);
	apistore_fieldset_fini(&d->removed);
	apistore_fieldset_fini(&d->modified);
}

static enum change compare(
	const struct apistore_place *p, struct side l, struct side r, struct apistore_delta *below);

/* Add one step to the sets: the change of the value itself, and those below it. */
static void note(struct apistore_delta *d, const char *step, enum change c,
	struct apistore_delta *take_below)
{
	apistore_fieldset_add(&d->added, step, c == ADDED, &take_below->added);
	apistore_fieldset_add(&d->removed, step, c == REMOVED, &take_below->removed);
	apistore_fieldset_add(&d->modified, step, c == MODIFIED, &take_below->modified);
	apistore_delta_fini(take_below);
}

static void compare_member(const struct apistore_place *p, const char *name, struct side l,
	struct side r, struct apistore_delta *d)
{
	struct apistore_place at = apistore_place_member(p, name);
	cleanup_free char *step = typed_field_step(name);
	struct apistore_delta below = {0};
	enum change c = compare(&at, l, r, &below);

	note(d, step, c, &below);
}

/* Compare all members of both maps. A side that is no map has no members. */
static void compare_maps(const struct apistore_place *p, struct json_object *l,
	struct json_object *r, struct apistore_delta *d)
{
	struct json_object *other;

	if (typed_is_map(l)) {
		json_each (l, name, v) {
			struct side to = {false, NULL};

			if (typed_is_map(r) && json_object_object_get_ex(r, name, &other))
				to = (struct side){true, other};
			compare_member(p, name, (struct side){true, v}, to, d);
		}
	}
	if (!typed_is_map(r))
		return;
	json_each (r, added, theirs)
		if (!typed_is_map(l) || !json_object_object_get_ex(l, added, NULL))
			compare_member(p, added, (struct side){false, NULL},
				(struct side){true, theirs}, d);
}

/* Compare the elements with one step: nl on the left from i on, nr on the right from k on.
 * Duplicates on a side are compared as a whole, as in structured-merge-diff. */
static void compare_run(const struct apistore_place *at, const struct typed_items *l, size_t i,
	size_t nl, const struct typed_items *r, size_t k, size_t nr, struct apistore_delta *d)
{
	const char *step = nl ? l->sorted[i]->step : r->sorted[k]->step;
	struct side x = {nl > 0, nl ? l->sorted[i]->e : NULL},
		    y = {nr > 0, nr ? r->sorted[k]->e : NULL};
	struct apistore_delta below = {0};
	enum change c = SAME;

	if (nl <= 1 && nr <= 1) {
		c = compare(at, x, y, &below);
	} else if (nl > 1 && nr > 1) {
		for (size_t n = 0; nl != nr ? c == SAME : n < nl && c == SAME; n++)
			if (nl != nr ||
				!json_object_equal(l->sorted[i + n]->e, r->sorted[k + n]->e))
				c = MODIFIED;
	} else {
		c = nl > 1 ? REMOVED : ADDED;
		if (nl > 1 && nr)
			(void)compare(at, (struct side){false, NULL}, y, &below);
		else if (nr > 1 && nl)
			(void)compare(at, x, (struct side){false, NULL}, &below);
	}
	note(d, step, c, &below);
}

/* Walk both sorted indexes in parallel, one step at a time. */
static void compare_lists(const struct apistore_place *p, struct json_object *l,
	struct json_object *r, struct apistore_delta *d)
{
	const struct apistore_place at = apistore_place_element(p);
	cleanup_typed_items struct typed_items x = typed_items_of(p, l), y = typed_items_of(p, r);
	size_t i = 0, k = 0;

	while (i < x.n_sorted || k < y.n_sorted) {
		int c = i == x.n_sorted   ? 1
			: k == y.n_sorted ? -1
					  : strcmp(x.sorted[i]->step, y.sorted[k]->step);
		size_t nl = c <= 0 ? typed_items_run(&x, i) : 0,
		       nr = c >= 0 ? typed_items_run(&y, k) : 0;

		compare_run(&at, &x, i, nl, &y, k, nr, d);
		i += nl;
		k += nr;
	}
}

/* Compare two values. Those that merge as a whole, or have different types, give one change; others
 * give the changes below them. */
static enum change compare(
	const struct apistore_place *p, struct side l, struct side r, struct apistore_delta *below)
{
	struct json_object *of = r.v ? r.v : l.v;
	bool fits =
		(typed_is_map(of) && (!l.v || typed_is_map(l.v)) && (!r.v || typed_is_map(r.v))) ||
		(typed_is_list(of) && (!l.v || typed_is_list(l.v)) && (!r.v || typed_is_list(r.v)));

	if (fits && !typed_is_leaf(p, of) && !(typed_is_empty(l.v) && typed_is_empty(r.v))) {
		if (typed_is_map(of))
			compare_maps(p, l.v, r.v, below);
		else
			compare_lists(p, l.v, r.v, below);
		apistore_fieldset_done(&below->added);
		apistore_fieldset_done(&below->removed);
		apistore_fieldset_done(&below->modified);
		return !l.there ? ADDED : !r.there ? REMOVED : SAME;
	}
	if (!l.there)
		return ADDED;
	return !r.there ? REMOVED : json_object_equal(l.v, r.v) ? SAME : MODIFIED;
}

struct apistore_delta apistore_typed_compare(
	const struct apistore_place *p, struct json_object *was, struct json_object *now)
{
	struct apistore_delta d = {0};

	(void)compare(p, (struct side){true, was}, (struct side){true, now}, &d);
	return d;
}
