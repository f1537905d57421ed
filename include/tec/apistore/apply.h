/* SPDX-License-Identifier: MIT */
/*
 * Server-side apply for one field manager: maps are merged, lists with keys are merged by them,
 * sets of scalars by value, and other lists are replaced; what the manager applied before and does
 * not apply now is removed. There is no ownership by others: the manager forces.
 */
#ifndef TEC_APISTORE_APPLY_H
#define TEC_APISTORE_APPLY_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/base/err.h"

/* A list whose elements are objects told apart by some of their members (x-kubernetes-list-map-keys
 * of the schema). An element has at least one of them. */
struct apistore_list {
	const char *member;
	const char *keys[3];
};

struct apistore_lists {
	const struct apistore_list *list; /* borrowed */
	size_t n;
};

/* Those of the built-in kinds that the operator renders. */
#define APISTORE_LISTS_BUILTIN 8
extern const struct apistore_list apistore_lists_builtin[APISTORE_LISTS_BUILTIN];

/*
 * Changes o in place: give it a copy of what others may hold. conf: what is applied; last: what the
 * same manager applied before, or NULL; both are only read, all are JSON objects.
 * metadata.ownerReferences (by uid) and finalizers (a set) need no entry in lists. ERR_INVALID: an
 * element of a list with keys is not an object with a key; the contents of o are then undefined.
 */
int apistore_apply(struct json_object *o, struct json_object *conf, struct json_object *last,
	const struct apistore_lists *lists, struct err *err) MUST_CHECK;

#endif
