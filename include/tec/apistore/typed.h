/* SPDX-License-Identifier: MIT */
/*
 * Objects as server-side apply sees them: maps by member, lists by the keys of their elements
 * (schema/merge), atomic values as a whole. struct apistore_place is a position in the type of a
 * kind, a value that is valid as long as the kind; an unknown position is plain, as in
 * schema/merge.
 *
 * Elements without a key are skipped here; apistore_typed_check reports them, and duplicates.
 */
#ifndef TEC_APISTORE_TYPED_H
#define TEC_APISTORE_TYPED_H

#include <json-c/json.h>

#include "tec/apistore/fieldset.h"
#include "tec/apistore/objects.h"
#include "tec/schema/merge.h"

struct apistore_place {
	struct schema_at at;
	struct schema_merge merge;
	const struct apistore_lists *lists; /* for a kind without a schema; NULL: it has one */
	bool custom;                        /* a CRD schema declares the members */
};
struct apistore_place apistore_place_object(
	const struct apistore_kind *k, const struct apistore_lists *lists);
struct apistore_place apistore_place_member(const struct apistore_place *p, const char *name);
struct apistore_place apistore_place_element(const struct apistore_place *p);

/* Return the paths of all fields in an object. */
struct apistore_fieldset apistore_typed_fields(
	const struct apistore_place *p, struct json_object *o);
/* Add every declared member on the way to a path as a path of its own. */
struct apistore_fieldset apistore_typed_with_parents(
	const struct apistore_place *p, const struct apistore_fieldset *s);

struct apistore_delta {
	struct apistore_fieldset added, removed, modified;
};
void apistore_delta_fini(struct apistore_delta *d);
/* Compare two objects; was NULL: there was none. */
struct apistore_delta apistore_typed_compare(
	const struct apistore_place *p, struct json_object *was, struct json_object *now);

/* Return a new object: o with conf merged in. Neither is modified. */
struct json_object *apistore_typed_merge(
	const struct apistore_place *p, struct json_object *o, struct json_object *conf);
/* Remove the paths in a set from o, in place, and then containers that became empty. */
void apistore_typed_remove(
	const struct apistore_place *p, struct json_object *o, const struct apistore_fieldset *s);

/* Return why conf cannot be applied, in kube-apiserver's words; the caller frees it. NULL: it
 * can. */
char *apistore_typed_check(const struct apistore_place *p, struct json_object *conf);

#endif
