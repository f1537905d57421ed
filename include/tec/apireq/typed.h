/* SPDX-License-Identifier: MIT */
/*
 * Objects as server-side apply sees them: maps by member, lists by the keys of their elements
 * (schema/merge), atomic values as a whole. struct apireq_place is a position in the type of a
 * kind, a value that is valid as long as the kind; an unknown position is plain, as in
 * schema/merge.
 *
 * Elements without a key are skipped here; apireq_typed_check reports them, and duplicates.
 */
#ifndef TEC_APIREQ_TYPED_H
#define TEC_APIREQ_TYPED_H

#include <json-c/json.h>

#include "tec/apireq/fieldset.h"
#include "tec/store/objects.h"
#include "tec/schema/merge.h"

struct apireq_place {
	struct schema_at at;
	struct schema_merge merge;
	const struct store_lists *lists; /* for a kind without a schema; NULL: it has one */
	bool custom;                     /* a CRD schema declares the members */
};
struct apireq_place apireq_place_object(
	const struct store_kind *k, const struct store_lists *lists);
struct apireq_place apireq_place_member(const struct apireq_place *p, const char *name);
struct apireq_place apireq_place_element(const struct apireq_place *p);

/* Return the paths of all fields in an object. */
struct apireq_fieldset apireq_typed_fields(const struct apireq_place *p, struct json_object *o);
/* Add every declared member on the way to a path as a path of its own. */
struct apireq_fieldset apireq_typed_with_parents(
	const struct apireq_place *p, const struct apireq_fieldset *s);

struct apireq_delta {
	struct apireq_fieldset added, removed, modified;
};
void apireq_delta_fini(struct apireq_delta *d);
/* Compare two objects; was NULL: there was none. */
struct apireq_delta apireq_typed_compare(
	const struct apireq_place *p, struct json_object *was, struct json_object *now);

/* Return a new object: o with conf merged in. Neither is modified. */
struct json_object *apireq_typed_merge(
	const struct apireq_place *p, struct json_object *o, struct json_object *conf);
/* Remove the paths in a set from o, in place, and then containers that became empty. */
void apireq_typed_remove(
	const struct apireq_place *p, struct json_object *o, const struct apireq_fieldset *s);

/* Return why conf cannot be applied, in kube-apiserver's words; the caller frees it. NULL: it
 * can. */
char *apireq_typed_check(const struct apireq_place *p, struct json_object *conf);

#endif
