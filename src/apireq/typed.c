/* SPDX-License-Identifier: MIT */
/*
 * Each function walks the object along its type, or two objects together: maps by member, lists by
 * the steps of their elements (see fieldset.h), which are indexed in a sorted array. What to do
 * depends on the type of the value and on how the place merges.
 */
#include "config.h"

#include "tec/apireq/typed.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define ERRORS_MAX 20

/* ---- places */

/* The root of a kind. Without a schema (in tests), lists merge by the names in `lists`. */
struct apireq_place apireq_place_object(const struct store_kind *k, const struct store_lists *lists)
{
	struct apireq_place p = {.at = {.top = true}, .lists = k->schema ? NULL : lists};

	if (k->schema) {
		p.at = schema_at_object(k->schema);
		p.custom = k->schema->crd != NULL;
	}
	p.merge = *schema_at_merge(p.at);
	return p;
}

/* An unknown member gives a place without a schema, which merges as plain values. In a kind without
 * a schema a list merges by the name of its member alone; lists of the metadata are those of every
 * kind (schema/merge). */
struct apireq_place apireq_place_member(const struct apireq_place *p, const char *name)
{
	struct apireq_place to = {.lists = p->lists, .custom = p->custom};

	to.at = schema_at_member(p->at, name);
	to.merge = *schema_at_merge(to.at);
	if (!p->lists || to.at.merge)
		return to;
	to.merge = (struct schema_merge){.type = SCHEMA_MERGE_PLAIN};
	for (size_t i = 0; i < p->lists->n; i++) {
		const struct store_list *l = &p->lists->list[i];

		if (str_eq(name, l->member)) {
			to.merge = (struct schema_merge){.type = SCHEMA_MERGE_MAP,
				.keys = {l->keys[0], l->keys[1], l->keys[2]}};
			break;
		}
	}
	return to;
}

/* All elements of a list share one place. */
struct apireq_place apireq_place_element(const struct apireq_place *p)
{
	struct apireq_place to = {.lists = p->lists, .custom = p->custom};

	if (!p->lists)
		to.at = schema_at_element(p->at);
	to.merge = *schema_at_merge(to.at);
	return to;
}

/* Does the type declare this member, other than as a key of a map? */
static bool is_declared(const struct apireq_place *p, const char *name)
{
	return !p->custom || schema_at_declares(p->at, name) == SCHEMA_DECLARED;
}

/* ---- types of values */

static bool is_map(struct json_object *v)
{
	return json_object_is_type(v, json_type_object);
}

static bool is_list(struct json_object *v)
{
	return json_object_is_type(v, json_type_array);
}

/* Is it an empty map or list, or null? They are the same to server-side apply. */
static bool is_empty(struct json_object *v)
{
	return is_map(v) ? json_len(v) == 0 : is_list(v) ? json_len(v) == 0 : v == NULL;
}

/* A list is a leaf unless it is declared as a set or map; a map unless it is declared atomic. */
static bool is_leaf(const struct apireq_place *p, struct json_object *v)
{
	if (is_map(v))
		return p->merge.type == SCHEMA_MERGE_ATOMIC;
	if (is_list(v))
		return p->merge.type != SCHEMA_MERGE_SET && p->merge.type != SCHEMA_MERGE_MAP;
	return true;
}

/* ---- steps */

/* Write a step with its value in canonical form, so that equal values give equal steps. */
static char *value_step(char letter, struct json_object *v)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "%c:", letter);
	json_canonical(&out, v);
	return strbuf_steal(&out);
}

/* Return the step of an element; the caller frees it. Elements of a set must be scalars, elements of
 * a map objects with at least one of the keys; missing keys are left out. Others have no step. */
static char *element_step(const struct schema_merge *m, struct json_object *e)
{
	cleanup_json struct json_object *keys = NULL;
	struct json_object *v = NULL;

	if (m->type == SCHEMA_MERGE_SET)
		return e && !is_map(e) && !is_list(e) ? value_step('v', e) : NULL;
	if (!is_map(e))
		return NULL;
	keys = json_obj();
	for (size_t i = 0; i < ARRAY_LEN(m->keys) && m->keys[i]; i++)
		if (json_object_object_get_ex(e, m->keys[i], &v))
			json_add(keys, m->keys[i], json_object_get(v));
	return json_len(keys) > 0 ? value_step('k', keys) : NULL;
}

/* ---- the elements of a list */

struct item {
	char *step;            /* owned; NULL: none */
	struct json_object *e; /* borrowed */
	size_t i;              /* its index in the list */
};

/* The elements of a list in their order, and those with a step sorted by it. */
struct items {
	struct item *at;      /* owned */
	struct item **sorted; /* owned */
	size_t n, n_sorted;
};

/* Sort by step, duplicates in their order in the list. */
static int by_item(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
	int c = strcmp(x->step, y->step);

	return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* Index the elements of a list; of any other value there are none. Both arrays have one more place
 * than elements, since an allocation of zero bytes may be NULL. */
static struct items items_of(const struct apireq_place *p, struct json_object *list)
{
	struct items it = {.n = is_list(list) ? json_len(list) : 0};

	it.at = xcalloc(it.n + 1, sizeof(*it.at));
	it.sorted = xcalloc(it.n + 1, sizeof(struct item *));
	for (size_t i = 0; i < it.n; i++) {
		struct json_object *e = json_at(list, i);

		it.at[i] = (struct item){element_step(&p->merge, e), e, i};
		if (it.at[i].step)
			it.sorted[it.n_sorted++] = &it.at[i];
	}
	qsort(it.sorted, it.n_sorted, sizeof(struct item *), by_item);
	return it;
}

static void items_fini(struct items *it)
{
	for (size_t i = 0; i < it->n; i++)
		free(it->at[i].step);
	free(it->at);
	free(it->sorted);
}
#define cleanup_items __attribute__((cleanup(items_fini)))

/* Count the elements from sorted[i] on that have the same step. */
static size_t items_run(const struct items *it, size_t i)
{
	size_t n = 0;

	while (i + n < it->n_sorted && str_eq(it->sorted[i + n]->step, it->sorted[i]->step))
		n++;
	return n;
}

/* Find the first element with this step; NULL: none. *n: how many there are. This is not bsearch(),
 * which does not promise to find the first. */
static const struct item *items_find(const struct items *it, const char *step, size_t *n)
{
	size_t lo = 0, hi = it->n_sorted;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (strcmp(it->sorted[mid]->step, step) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*n = lo < it->n_sorted && str_eq(it->sorted[lo]->step, step) ? items_run(it, lo) : 0;
	return *n ? it->sorted[lo] : NULL;
}

/* ---- the paths of an object */

/* The object itself is not a path: every set begins with its members. In a kind with a CRD, a key of
 * a map is a path of its own even if its value has fields; a declared member is not. Duplicates of an
 * element count as one path without anything below it. */
struct apireq_fieldset apireq_typed_fields(const struct apireq_place *p, struct json_object *o)
{
	struct apireq_fieldset out = {NULL, 0}, below;

	if (is_leaf(p, o))
		return out;
	json_each (o, name, v) {
		struct apireq_place at = apireq_place_member(p, name);
		cleanup_free char *step = xasprintf("f:%s", name);
		bool self = is_leaf(&at, v) || (is_map(v) && is_empty(v));

		below = apireq_typed_fields(&at, v);
		apireq_fieldset_add(&out, step, self || !is_declared(p, name), &below);
	}
	if (is_list(o)) {
		const struct apireq_place at = apireq_place_element(p);
		cleanup_items struct items it = items_of(p, o);

		for (size_t i = 0, n; i < it.n_sorted; i += n) {
			n = items_run(&it, i);
			below = (struct apireq_fieldset){NULL, 0};
			if (n == 1)
				below = apireq_typed_fields(&at, it.sorted[i]->e);
			apireq_fieldset_add(&out, it.sorted[i]->step, true, &below);
		}
	}
	apireq_fieldset_done(&out);
	return out;
}

/* The set is sorted and stays so, because only members are marked. */
struct apireq_fieldset apireq_typed_with_parents(
	const struct apireq_place *p, const struct apireq_fieldset *s)
{
	struct apireq_fieldset out = {NULL, 0};

	for (size_t i = 0; i < s->n; i++) {
		const struct apireq_step *f = &s->at[i];
		bool field = f->step[0] == 'f';
		struct apireq_place at =
			field ? apireq_place_member(p, f->step + 2) : apireq_place_element(p);
		struct apireq_fieldset below = apireq_typed_with_parents(&at, &f->below);

		apireq_fieldset_add(
			&out, f->step, f->member || (field && is_declared(p, f->step + 2)), &below);
	}
	return out;
}

/* ---- removing */

/* A path that is a member of the set is removed whole, else only what the set has below it. */
void apireq_typed_remove(
	const struct apireq_place *p, struct json_object *o, const struct apireq_fieldset *s)
{
	const struct apireq_place element = apireq_place_element(p);
	size_t n = is_list(o) ? json_len(o) : 0, kept = 0;

	if (is_leaf(p, o) || is_empty(o))
		return;
	/* Elements are removed by closing the gaps, so a long list costs one pass. */
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(o, i);
		cleanup_free char *step = element_step(&p->merge, e);
		const struct apireq_step *f = step ? apireq_fieldset_find(s, step) : NULL;

		if (f && f->member)
			continue;
		if (f)
			apireq_typed_remove(&element, e, &f->below);
		if (kept != i)
			json_put_at(o, kept, json_object_get(e));
		kept++;
	}
	if (kept < n)
		json_cut(o, kept, n - kept);
	if (is_list(o))
		return;
	for (size_t i = 0; i < s->n; i++) {
		const struct apireq_step *f = &s->at[i];
		const char *name = f->step + 2;
		struct apireq_place at;
		struct json_object *v;

		if (f->step[0] != 'f' || !json_object_object_get_ex(o, name, &v))
			continue;
		at = apireq_place_member(p, name);
		if (!f->member && is_empty(v))
			continue;
		if (!f->member)
			apireq_typed_remove(&at, v, &f->below);
		if (f->member || is_empty(v))
			json_drop(o, name);
	}
}

/* ---- comparing */

enum change { SAME, ADDED, REMOVED, MODIFIED };

/* A value on one side. A member that is null exists, with v NULL. */
struct side {
	bool there;
	struct json_object *v; /* borrowed */
};

void apireq_delta_fini(struct apireq_delta *d)
{
	apireq_fieldset_fini(&d->added);
	apireq_fieldset_fini(&d->removed);
	apireq_fieldset_fini(&d->modified);
}

static enum change compare(
	const struct apireq_place *p, struct side l, struct side r, struct apireq_delta *below);

/* Add one step to the sets: the change of the value itself, and those below it. */
static void note(
	struct apireq_delta *d, const char *step, enum change c, struct apireq_delta *take_below)
{
	apireq_fieldset_add(&d->added, step, c == ADDED, &take_below->added);
	apireq_fieldset_add(&d->removed, step, c == REMOVED, &take_below->removed);
	apireq_fieldset_add(&d->modified, step, c == MODIFIED, &take_below->modified);
	apireq_delta_fini(take_below);
}

static void compare_member(const struct apireq_place *p, const char *name, struct side l,
	struct side r, struct apireq_delta *d)
{
	struct apireq_place at = apireq_place_member(p, name);
	cleanup_free char *step = xasprintf("f:%s", name);
	struct apireq_delta below = {0};
	enum change c = compare(&at, l, r, &below);

	note(d, step, c, &below);
}

/* Compare all members of both maps. A side that is no map has no members. */
static void compare_maps(const struct apireq_place *p, struct json_object *l, struct json_object *r,
	struct apireq_delta *d)
{
	struct json_object *other;

	if (is_map(l)) {
		json_each (l, name, v) {
			struct side to = {false, NULL};

			if (is_map(r) && json_object_object_get_ex(r, name, &other))
				to = (struct side){true, other};
			compare_member(p, name, (struct side){true, v}, to, d);
		}
	}
	if (!is_map(r))
		return;
	json_each (r, added, theirs)
		if (!is_map(l) || !json_object_object_get_ex(l, added, NULL))
			compare_member(p, added, (struct side){false, NULL},
				(struct side){true, theirs}, d);
}

/* Compare the elements with one step: nl on the left from i on, nr on the right from k on.
 * Duplicates on a side are compared as a whole, as in structured-merge-diff. */
static void compare_run(const struct apireq_place *at, const struct items *l, size_t i, size_t nl,
	const struct items *r, size_t k, size_t nr, struct apireq_delta *d)
{
	const char *step = nl ? l->sorted[i]->step : r->sorted[k]->step;
	struct side x = {nl > 0, nl ? l->sorted[i]->e : NULL},
		    y = {nr > 0, nr ? r->sorted[k]->e : NULL};
	struct apireq_delta below = {0};
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
static void compare_lists(const struct apireq_place *p, struct json_object *l,
	struct json_object *r, struct apireq_delta *d)
{
	const struct apireq_place at = apireq_place_element(p);
	cleanup_items struct items x = items_of(p, l), y = items_of(p, r);
	size_t i = 0, k = 0;

	while (i < x.n_sorted || k < y.n_sorted) {
		int c = i == x.n_sorted   ? 1
			: k == y.n_sorted ? -1
					  : strcmp(x.sorted[i]->step, y.sorted[k]->step);
		size_t nl = c <= 0 ? items_run(&x, i) : 0, nr = c >= 0 ? items_run(&y, k) : 0;

		compare_run(&at, &x, i, nl, &y, k, nr, d);
		i += nl;
		k += nr;
	}
}

/* Compare two values. Those that merge as a whole, or have different types, give one change; others
 * give the changes below them. */
static enum change compare(
	const struct apireq_place *p, struct side l, struct side r, struct apireq_delta *below)
{
	struct json_object *of = r.v ? r.v : l.v;
	bool fits = (is_map(of) && (!l.v || is_map(l.v)) && (!r.v || is_map(r.v))) ||
		    (is_list(of) && (!l.v || is_list(l.v)) && (!r.v || is_list(r.v)));

	if (fits && !is_leaf(p, of) && !(is_empty(l.v) && is_empty(r.v))) {
		if (is_map(of))
			compare_maps(p, l.v, r.v, below);
		else
			compare_lists(p, l.v, r.v, below);
		apireq_fieldset_done(&below->added);
		apireq_fieldset_done(&below->removed);
		apireq_fieldset_done(&below->modified);
		return !l.there ? ADDED : !r.there ? REMOVED : SAME;
	}
	if (!l.there)
		return ADDED;
	return !r.there ? REMOVED : json_object_equal(l.v, r.v) ? SAME : MODIFIED;
}

struct apireq_delta apireq_typed_compare(
	const struct apireq_place *p, struct json_object *was, struct json_object *now)
{
	struct apireq_delta d = {0};

	(void)compare(p, (struct side){true, was}, (struct side){true, now}, &d);
	return d;
}

/* ---- merging: the order of lists follows structured-merge-diff. Elements of the object keep their
 * places, and applied elements keep their order around those that both have. */

/* Merge member by member; members of one side only are copied. r NULL: there is nothing to
 * merge. */
static struct json_object *merge_maps(
	const struct apireq_place *p, struct json_object *l, struct json_object *r)
{
	struct json_object *out = json_obj(), *other;

	json_each (l, name, v) {
		if (is_map(r) && json_object_object_get_ex(r, name, &other)) {
			struct apireq_place at = apireq_place_member(p, name);

			json_add(out, name, apireq_typed_merge(&at, v, other));
		} else {
			json_add(out, name, json_copy(v));
		}
	}
	if (!is_map(r))
		return out;
	json_each (r, added, theirs)
		if (!json_object_object_get_ex(l, added, NULL))
			json_add(out, added, json_copy(theirs));
	return out;
}

/* A list being merged: l is the object's, r the applied one. */
struct weave {
	struct apireq_place at;
	struct items l, r;
	const struct item **l_in_r,
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
	const struct item *l = w->r_in_l[k];
	size_t n = 0;

	if (l)
		items_find(&w->l, l->step, &n);
	w->taken[k] = true;
	json_push(w->out,
		n == 1 ? apireq_typed_merge(&w->at, l->e, w->r.at[k].e) : json_copy(w->r.at[k].e));
	if (w->shared == k)
		next_shared(w, k + 1);
}

/* Walk both lists at once. An element of l alone is copied. A shared element is merged when it is
 * next on both sides; if the orders differ, that of r wins and the place in l is skipped. */
static void weave(struct weave *w)
{
	size_t i = 0, k = 0;

	while (i < w->l.n || k < w->r.n) {
		const struct item *in_r = i < w->l.n ? w->l_in_r[i] : NULL;

		/* An element of the object alone keeps its place. */
		if (i < w->l.n && !in_r) {
			json_push(w->out, json_copy(w->l.at[i++].e));
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
	const struct apireq_place *p, struct json_object *l, struct json_object *r)
{
	struct weave w = {.at = apireq_place_element(p),
		.l = items_of(p, l),
		.r = items_of(p, r),
		.out = json_arr()};
	size_t n;

	w.l_in_r = xcalloc(w.l.n + 1, sizeof(struct item *));
	w.r_in_l = xcalloc(w.r.n + 1, sizeof(struct item *));
	w.taken = xcalloc(w.r.n + 1, sizeof(bool));
	for (size_t i = 0; i < w.l.n; i++)
		if (w.l.at[i].step)
			w.l_in_r[i] = items_find(&w.r, w.l.at[i].step, &n);
	for (size_t i = 0; i < w.r.n; i++)
		if (w.r.at[i].step)
			w.r_in_l[i] = items_find(&w.l, w.r.at[i].step, &n);
	next_shared(&w, 0);
	weave(&w);
	items_fini(&w.l);
	items_fini(&w.r);
	free(w.l_in_r);
	free(w.r_in_l);
	free(w.taken);
	return w.out;
}

/* Merge two values. Values that are owned as a whole, and those of different types, are replaced by
 * r. */
struct json_object *apireq_typed_merge(
	const struct apireq_place *p, struct json_object *l, struct json_object *r)
{
	bool empty = is_empty(l) && is_empty(r);

	if (is_map(l) && (is_map(r) || !r) && !is_leaf(p, l) && !empty)
		return merge_maps(p, l, r);
	if (is_list(l) && (is_list(r) || !r) && !is_leaf(p, l) && !empty)
		return merge_lists(p, l, r);
	return json_copy(r);
}

/* ---- checking a configuration to be applied */

struct check {
	struct strbuf path, out; /* owned: of the current value; the messages */
	size_t n;                /* errors found; those beyond ERRORS_MAX are not written */
};

static void fault(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Add an error at the current path. Like kube-apiserver, several errors are listed on lines of
 * their own. */
static void fault(struct check *c, const char *fmt, ...)
{
	va_list ap;

	if (c->n++ >= ERRORS_MAX)
		return;
	strbuf_addf(&c->out, "%s%s: ", c->n > 1 ? "\n  " : "", strbuf_str(&c->path));
	va_start(ap, fmt);
	strbuf_vaddf(&c->out, fmt, ap);
	va_end(ap);
}

static void check(const struct apireq_place *p, struct json_object *v, struct check *c);

/* Check a value one step down; at NULL: the step is not in the schema. */
static void check_below(
	const struct apireq_place *at, const char *step, struct json_object *v, struct check *c)
{
	size_t before = c->path.len;

	apireq_fieldset_print_step(&c->path, step);
	if (at)
		check(at, v, c);
	else
		fault(c, "field not declared in schema");
	c->path.len = before;
	c->path.data[before] = '\0';
}

/* Check the members of a map. Only kinds with a CRD have a closed set of members here: those of
 * built-in kinds are checked by the decoder. */
static void check_map(const struct apireq_place *p, struct json_object *o, struct check *c)
{
	json_each (o, name, v) {
		struct apireq_place at = apireq_place_member(p, name);
		cleanup_free char *step = xasprintf("f:%s", name);
		bool unknown = p->custom && schema_at_declares(p->at, name) == SCHEMA_UNKNOWN;

		check_below(unknown ? NULL : &at, step, v, c);
		if (unknown) /* kube-apiserver stops at the first unknown member too */
			return;
	}
}

/* Report an element that has no key, and why. */
static void no_element(
	const struct schema_merge *m, struct json_object *e, size_t i, struct check *c)
{
	cleanup_strbuf struct strbuf keys = STRBUF_INIT;

	if (m->type == SCHEMA_MERGE_SET) {
		fault(c, "element %zu: %s", i,
			is_map(e) ? "associative list without keys has an element that's a map type"
			: is_list(e)
				? "not supported: associative list with lists as elements"
				: "associative list without keys has an element that's an explicit null");
		return;
	}
	if (!is_map(e)) {
		fault(c, "element %zu: associative list with keys may not have %s", i,
			e ? "non-map elements" : "a null element");
		return;
	}
	for (size_t k = 0; k < ARRAY_LEN(m->keys) && m->keys[k]; k++)
		strbuf_addf(&keys, "%s\"%s\"", k ? " " : "", m->keys[k]);
	fault(c,
		"element %zu: associative list with keys has an element that omits all key fields [%s] (and doesn't have default values for any key fields)",
		i, strbuf_str(&keys));
}

/* Check the elements of a list. One without a key ends the check of the list. */
static void check_list(const struct apireq_place *p, struct json_object *list, struct check *c)
{
	const struct apireq_place at = apireq_place_element(p);
	bool keyed = p->merge.type == SCHEMA_MERGE_SET || p->merge.type == SCHEMA_MERGE_MAP;
	cleanup_items struct items it = items_of(p, keyed ? list : NULL);

	for (size_t i = 0; i < json_len(list); i++) {
		cleanup_free char *index = xasprintf("i:%zu", i);
		const char *step = keyed ? it.at[i].step : index;
		struct json_object *e = json_at(list, i);
		size_t n;

		if (!step) {
			no_element(&p->merge, e, i, c);
			return;
		}
		if (keyed && items_find(&it, step, &n)->i != i) {
			cleanup_strbuf struct strbuf key = STRBUF_INIT;

			apireq_fieldset_print_step(&key, step);
			fault(c, "duplicate entries for key %s", strbuf_str(&key));
		}
		check_below(&at, step, e, c);
	}
}

/* Check one value: its type against the schema first, then what is inside. */
static void check(const struct apireq_place *p, struct json_object *v, struct check *c)
{
	cleanup_free char *mismatch = p->custom ? schema_at_mismatch(p->at, v) : NULL;

	if (mismatch)
		fault(c, "%s", mismatch);
	else if (is_map(v))
		check_map(p, v, c);
	else if (is_list(v))
		check_list(p, v, c);
}

/* One error is returned as it is; several are listed under "errors:", as in kube-apiserver. */
char *apireq_typed_check(const struct apireq_place *p, struct json_object *conf)
{
	struct check c = {STRBUF_INIT, STRBUF_INIT, 0};
	char *text = NULL;

	check(p, conf, &c);
	if (c.n == 1)
		text = strbuf_steal(&c.out);
	else if (c.n > 1)
		text = xasprintf("errors:\n  %s", strbuf_str(&c.out));
	strbuf_fini(&c.path);
	strbuf_fini(&c.out);
	return text;
}
