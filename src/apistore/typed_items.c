/* SPDX-License-Identifier: MIT */
/* The elements of a list, indexed by their steps (see fieldset.h) in a sorted array. */
#include "config.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#include "typed_internal.h"

bool typed_is_map(struct json_object *v)
{
	return json_object_is_type(v, json_type_object);
}

bool typed_is_list(struct json_object *v)
{
	return json_object_is_type(v, json_type_array);
}

/* Is it an empty map or list, or null? They are the same to server-side apply. */
bool typed_is_empty(struct json_object *v)
{
	return typed_is_map(v) ? json_len(v) == 0 : typed_is_list(v) ? json_len(v) == 0 : v == NULL;
}

/* A list is a leaf unless it is declared as a set or map; a map unless it is declared atomic. */
bool typed_is_leaf(const struct apistore_place *p, struct json_object *v)
{
	if (typed_is_map(v))
		return p->merge.type == SCHEMA_MERGE_ATOMIC;
	if (typed_is_list(v))
		return p->merge.type != SCHEMA_MERGE_SET && p->merge.type != SCHEMA_MERGE_MAP;
	return true;
}

/* ---- steps */

char *typed_field_step(const char *name)
{
	return xasprintf("f:%s", name);
}

/* Write a step with its value in canonical form, so that equal values give equal steps. */
static char *value_step(char letter, struct json_object *v)
{
	struct strbuf out = STRBUF_INIT;

	strbuf_addf(&out, "%c:", letter);
	json_canonical(&out, v);
	return strbuf_steal(&out);
}

/* Return the step of an element by its keys; missing keys are left out. NULL: it has none of
 * them. */
static char *keys_step(const struct schema_merge *m, struct json_object *e)
{
	cleanup_json struct json_object *keys = json_obj();
	struct json_object *v = NULL;

	for (size_t i = 0; i < ARRAY_LEN(m->keys) && m->keys[i]; i++)
		if (json_object_object_get_ex(e, m->keys[i], &v))
			json_add(keys, m->keys[i], json_object_get(v));
	return json_len(keys) > 0 ? value_step('k', keys) : NULL;
}

/* Elements of a set must be scalars, elements of a map must be objects; others have no step. */
char *typed_element_step(const struct schema_merge *m, struct json_object *e)
{
	if (m->type == SCHEMA_MERGE_SET)
		return e && !typed_is_map(e) && !typed_is_list(e) ? value_step('v', e) : NULL;
	return typed_is_map(e) ? keys_step(m, e) : NULL;
}

/* Sort by step, duplicates in their order in the list. */
static int by_item(const void *a, const void *b)
{
	const struct typed_item *x = *(struct typed_item *const *)a,
				*y = *(struct typed_item *const *)b;
	int c = strcmp(x->step, y->step);

	return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* Both arrays have one more place than elements, since an allocation of zero bytes may be NULL. */
struct typed_items typed_items_of(const struct apistore_place *p, struct json_object *list)
{
	struct typed_items it = {.n = typed_is_list(list) ? json_len(list) : 0};

	it.at = xcalloc(it.n + 1, sizeof(*it.at));
	it.sorted = xcalloc(it.n + 1, sizeof(struct typed_item *));
	for (size_t i = 0; i < it.n; i++) {
		struct json_object *e = json_at(list, i);

		it.at[i] = (struct typed_item){typed_element_step(&p->merge, e), e, i};
		if (it.at[i].step)
			it.sorted[it.n_sorted++] = &it.at[i];
	}
	qsort(it.sorted, it.n_sorted, sizeof(struct typed_item *), by_item);
	return it;
}

void typed_items_fini(struct typed_items *it)
{
	for (size_t i = 0; i < it->n; i++)
		free(it->at[i].step);
	free(it->at);
	free(it->sorted);
}

size_t typed_items_run(const struct typed_items *it, size_t i)
{
	size_t n = 0;

	while (i + n < it->n_sorted && str_eq(it->sorted[i + n]->step, it->sorted[i]->step))
		n++;
	return n;
}

/* A binary search for the first of equal steps, which bsearch() does not promise to find. */
const struct typed_item *typed_items_find(const struct typed_items *it, const char *step, size_t *n)
{
	size_t lo = 0, hi = it->n_sorted;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (strcmp(it->sorted[mid]->step, step) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*n = lo < it->n_sorted && str_eq(it->sorted[lo]->step, step) ? typed_items_run(it, lo) : 0;
	return *n ? it->sorted[lo] : NULL;
}
