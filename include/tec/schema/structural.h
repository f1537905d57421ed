/* SPDX-License-Identifier: MIT */
/*
 * A structural schema (openAPIV3Schema of crd/), parsed once, and how an API server applies it to
 * an object: prune members that it does not name, and validate. Only the keywords that crd/ uses
 * are known; there are no defaults. Objects are changed in place: pass copies of objects that
 * others hold.
 *
 * A schema_node is immutable and borrowed by everyone until it is freed. Causes and texts belong to
 * the caller and are appended to. Nothing here fails otherwise; time is bounded by the object's
 * size, by maxItems and by the limits for patterns.
 */
#ifndef TEC_SCHEMA_STRUCTURAL_H
#define TEC_SCHEMA_STRUCTURAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/cause.h"
#include "tec/schema/merge.h"

struct schema_node;

/* Compile a schema and keep a reference to it. ERR_INVALID: a pattern or rule that cannot be
 * compiled. */
struct schema_node *schema_structural_new(struct json_object *schema, struct err *err) MUST_CHECK;
void schema_structural_free(struct schema_node *s); /* NULL is fine */

/* Drop members of a whole object that are null or unknown; the paths of unknown ones ("spec.foo",
 * "spec.a[0].b") are added to unknown, which is sorted. */
void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown);

/*
 * Validate a whole object: types, values and lists, then rules. old: NULL for a create; in an
 * update, unchanged values are not held against the object (a rule that does not hold becomes a
 * warning), and rules with oldSelf run. status: a write of /status: only that part is checked, with
 * all rules. warnings may be NULL. The caller checks apiVersion, kind and metadata before, except
 * their types.
 */
void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	bool status, struct schema_causes *causes, struct schema_texts *warnings);

#endif
