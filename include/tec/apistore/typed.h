/* SPDX-License-Identifier: MIT */
/*
 * Objects as server-side apply sees them: maps member by member, lists by their keys (schema/merge),
 * and atomic ones as a whole. struct apistore_place is a place in a kind, a value that lives as long
 * as the kind; a place that is not known is plain, as in schema/merge.
 *
 * What is no element of its list (without a key, twice) is passed over, but in apistore_typed_check.
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
	const struct apistore_lists *lists; /* of a kind without a schema; NULL: it has one */
	bool custom;                        /* a schema says which members there are */
};
struct apistore_place apistore_place_object(
	const struct apistore_kind *k, const struct apistore_lists *lists);
struct apistore_place apistore_place_member(const struct apistore_place *p, const char *name);
struct apistore_place apistore_place_element(const struct apistore_place *p);

/* The paths that an object holds. */
struct apistore_fieldset apistore_typed_fields(
	const struct apistore_place *p, struct json_object *o);
/* The same with every declared member on the way to a path as a path of its own. */
struct apistore_fieldset apistore_typed_with_parents(
	const struct apistore_place *p, const struct apistore_fieldset *s);

struct apistore_delta {
	struct apistore_fieldset added, removed, modified;
};
void apistore_delta_fini(struct apistore_delta *d);
/* was NULL: nothing was there. */
struct apistore_delta apistore_typed_compare(
	const struct apistore_place *p, struct json_object *was, struct json_object *now);

/* o with conf merged in, as a new object; both are only read. */
struct json_object *apistore_typed_merge(
	const struct apistore_place *p, struct json_object *o, struct json_object *conf);
/* Removes what the set names from o, in place; a container that is empty then goes as well. */
void apistore_typed_remove(
	const struct apistore_place *p, struct json_object *o, const struct apistore_fieldset *s);

/* Why conf cannot be applied, in kube-apiserver's words; the caller frees. NULL: it can. */
char *apistore_typed_check(const struct apistore_place *p, struct json_object *conf);

#endif
