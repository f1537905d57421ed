/* SPDX-License-Identifier: MIT */
/* Shared by typed.c (places, paths, removing), typed_compare.c, typed_merge.c and typed_check.c:
 * types of values, and the elements of lists by their steps (typed_items.c). */
#ifndef TEC_APISTORE_TYPED_INTERNAL_H
#define TEC_APISTORE_TYPED_INTERNAL_H

#include "tec/apistore/typed.h"

bool typed_is_map(struct json_object *v);
bool typed_is_list(struct json_object *v);
bool typed_is_empty(struct json_object *v);
/* Is the value owned as a whole? */
bool typed_is_leaf(const struct apistore_place *p, struct json_object *v);

/* Return the step of a member or an element; the caller frees it. NULL: the element has no key. */
char *typed_field_step(const char *name);
char *typed_element_step(const struct schema_merge *m, struct json_object *e);

struct typed_item {
	char *step;            /* owned; NULL: none */
	struct json_object *e; /* borrowed */
	size_t i;              /* its index in the list */
};

/* The elements of a list in their order, and those with a step sorted by it. */
struct typed_items {
	struct typed_item *at;      /* owned */
	struct typed_item **sorted; /* owned */
	size_t n, n_sorted;
};

/* Index the elements of a list; of any other value there are none. */
struct typed_items typed_items_of(const struct apistore_place *p, struct json_object *list);
void typed_items_fini(struct typed_items *it);
#define cleanup_typed_items __attribute__((cleanup(typed_items_fini)))
/* Count the elements from sorted[i] on that have the same step. */
size_t typed_items_run(const struct typed_items *it, size_t i);
/* Find the first element with this step; NULL: none. *n: how many there are. */
const struct typed_item *typed_items_find(
	const struct typed_items *it, const char *step, size_t *n);

#endif
