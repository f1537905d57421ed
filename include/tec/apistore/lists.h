/* SPDX-License-Identifier: MIT */
/* Which lists are told apart by keys in kinds whose schema is not known, by their name alone. */
#ifndef TEC_APISTORE_LISTS_H
#define TEC_APISTORE_LISTS_H

#include <stddef.h>

/* A list whose elements are objects told apart by some of their members (x-kubernetes-list-map-keys
 * of the schema). An element has at least one of them. */
struct apistore_list {
	const char *member;
	const char *keys[3];
};

/* metadata.ownerReferences (by uid) and finalizers (a set) need no entry. */
struct apistore_lists {
	const struct apistore_list *list; /* borrowed */
	size_t n;
};

/* Those of the built-in kinds that the operator renders. */
#define APISTORE_LISTS_BUILTIN 8
extern const struct apistore_list apistore_lists_builtin[APISTORE_LISTS_BUILTIN];

#endif
