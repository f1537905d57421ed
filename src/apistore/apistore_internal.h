/* SPDX-License-Identifier: MIT */
/* Shared by the files of this folder and nobody else: how the objects and their history lie. */
#ifndef TEC_APISTORE_INTERNAL_H
#define TEC_APISTORE_INTERNAL_H

#include "tec/apistore/objects.h"
#include "tec/apistore/watch.h"

struct apistore_object {
	char *collection, *name; /* owned */
	struct json_object *o;
	struct json_object *applied[2]; /* what was applied last: the object, its status; or NULL */
};

struct apistore_change {
	uint64_t rv;
	const char *type; /* static */
	char *collection;
	struct json_object *o; /* shared with the objects */
};

struct apistore_objects {
	const struct apistore_schema *schema; /* borrowed */
	struct apistore_object **sorted;      /* by collection, then name */
	size_t n;
	uint64_t rv, oldest_rv; /* oldest_rv: from which the history is complete */
	struct apistore_change *history;
	size_t n_history, cap_history;
	struct apistore_watch *watches; /* borrowed */
};

/* objects.c */
/* Index of the object, or of where it would be. */
size_t apistore_objects_slot(
	const struct apistore_objects *s, const char *collection, const char *name);
struct apistore_object *apistore_objects_find(
	const struct apistore_objects *s, const char *collection, const char *name);
struct json_object *apistore_objects_meta(struct json_object *o); /* made when it is missing */
bool apistore_objects_same_member(struct json_object *a, struct json_object *b, const char *name);

/* watch.c: tells the watches of a change with the current resourceVersion. */
void apistore_watch_note(struct apistore_objects *s, const char *type, const char *collection,
	struct json_object *o);

#endif
