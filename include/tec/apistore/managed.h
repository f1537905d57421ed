/* SPDX-License-Identifier: MIT */
/*
 * metadata.managedFields: who set which field of an object, by which operation, and when. An update
 * takes what it changes from everyone; an apply merges what one manager wants, takes away what it
 * wanted before and no other has, and is refused where another one set something else.
 */
#ifndef TEC_APISTORE_MANAGED_H
#define TEC_APISTORE_MANAGED_H

#include <json-c/json.h>

#include "tec/apistore/status.h"
#include "tec/apistore/typed.h"

#define APISTORE_MANAGER_MAX 128 /* bytes of a manager's name */

/* The write under way. All borrowed. */
struct apistore_manager {
	const char *name;
	const char *version; /* "apps/v1" */
	const char *sub;     /* the subresource; "" for the object itself */
	const char *now;     /* RFC 3339 */
};

/* After a write that is no apply: sets metadata.managedFields of o, which may ask for a reset (an empty
 * list, or one empty entry) or say what they are. was NULL: o is new. */
void apistore_managed_update(const struct apistore_place *p, const struct apistore_kind *k,
	const struct apistore_manager *m, struct json_object *was, struct json_object *o);

/*
 * An apply: the object as it would be stored, with its managedFields, which the caller puts. live NULL:
 * there is none yet. conf is only read. NULL: *refused says why (400, 409 with the conflicts, 500 for
 * what does not fit the schema, as kube-apiserver answers).
 */
struct json_object *apistore_managed_apply(const struct apistore_place *p,
	const struct apistore_kind *k, const struct apistore_manager *m, struct json_object *live,
	struct json_object *conf, bool force, struct apistore_answer *refused) MUST_CHECK;

/* At the end of an apply: an object that differs from was in nothing but the times of its entries keeps
 * those of was, so that nothing is written. */
void apistore_managed_keep_times(struct json_object *was, struct json_object *o);

#endif
