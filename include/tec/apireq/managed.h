/* SPDX-License-Identifier: MIT */
/*
 * metadata.managedFields: which manager set which fields of an object, by which operation, and
 * when. An update takes ownership of the fields it changes. An apply merges the configuration of
 * one manager, removes fields that it applied before and nobody else owns, and is refused where it
 * would change a field that another manager owns.
 */
#ifndef TEC_APIREQ_MANAGED_H
#define TEC_APIREQ_MANAGED_H

#include <json-c/json.h>

#include "tec/apireq/status.h"
#include "tec/apireq/typed.h"

#define APIREQ_MANAGER_MAX 128 /* bytes of a manager's name */

/* The manager making the current write. All borrowed. */
struct apireq_manager {
	const char *name;
	const char *version; /* "apps/v1" */
	const char *sub;     /* the subresource; "" for the object itself */
	const char *now;     /* RFC 3339 */
};

/* Set metadata.managedFields of o after a write other than an apply. The client may have sent its
 * own managedFields in o, or asked for a reset with an empty list or one empty entry. was NULL: o
 * is new. */
void apireq_managed_update(const struct apireq_place *p, const struct store_kind *k,
	const struct apireq_manager *m, struct json_object *was, struct json_object *o);

/*
 * Apply conf to live (NULL: there is no object yet). Returns the object to store, with its
 * managedFields, which the caller puts. conf is not modified. NULL: *refused is set (400, 409 with
 * the conflicts, 500 if conf does not fit the schema, as in kube-apiserver).
 */
struct json_object *apireq_managed_apply(const struct apireq_place *p, const struct store_kind *k,
	const struct apireq_manager *m, struct json_object *live, struct json_object *conf,
	bool force, struct apireq_answer *refused) MUST_CHECK;

/* Finish an apply: if o differs from was only in the times of its entries, restore those times, so
 * that an apply without effect writes nothing. */
void apireq_managed_keep_times(struct json_object *was, struct json_object *o);

#endif
