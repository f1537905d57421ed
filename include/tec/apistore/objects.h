/* SPDX-License-Identifier: MIT */
/*
 * The objects of one Kubernetes API in memory, by collection ("/api/v1/namespaces/a/secrets") and
 * name, with one resourceVersion counter. An object is replaced, never changed, so watches and
 * answers may share it.
 *
 * Owns everything put into it; free it after the transports and watches over it. Nothing here
 * fails: what a client may not do is refused by apistore/request.
 */
#ifndef TEC_APISTORE_OBJECTS_H
#define TEC_APISTORE_OBJECTS_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/apistore/apply.h"

/* What the API knows of a kind beyond its objects. */
struct apistore_kind {
	const char *group, *resource; /* resource NULL: every one of the group */
	bool generation;              /* metadata.generation counts changes of the spec */
	bool status;                  /* status is a subresource: other writes leave it alone */
	bool custom; /* as a CustomResourceDefinition: items of a list say their kind */
};

struct apistore_schema {
	const struct apistore_kind *kinds; /* the first that fits; none: a plain object */
	size_t n_kinds;
	struct apistore_lists lists;
};

struct apistore_objects;

struct apistore_objects *apistore_objects_new(const struct apistore_schema *schema); /* borrowed */
void apistore_objects_free(struct apistore_objects *s);

/* The last resourceVersion given: unchanged = nothing was written. */
uint64_t apistore_objects_rv(const struct apistore_objects *s);
/* Borrowed until the object changes; NULL: absent. */
struct json_object *apistore_objects_get(
	const struct apistore_objects *s, const char *collection, const char *name);
/* A reference to the index-th object in order of collection and name; NULL: past the end. Borrowed
 * until the next write. */
struct json_object *apistore_objects_at(const struct apistore_objects *s, size_t index);
size_t apistore_objects_count(const struct apistore_objects *s, const char *collection);
/* Of a collection; never NULL. */
const struct apistore_kind *apistore_objects_kind(
	const struct apistore_objects *s, const char *collection);

/*
 * Makes or replaces the object as it is given, status too, without a look at rights, versions or
 * kinds: the server sets name, namespace, generation and resourceVersion, fills in uid and
 * creationTimestamp, tells the watches, and drops an object with a deletionTimestamp and no
 * finalizer. What is there already is not written again. Returns the object as stored or as last
 * seen, borrowed until the next write.
 */
struct json_object *apistore_objects_put(struct apistore_objects *s, const char *collection,
	const char *name, struct json_object *take_o);

#endif
