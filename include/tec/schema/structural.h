/* SPDX-License-Identifier: MIT */
/*
 * A structural schema (openAPIV3Schema of crd/), read once, and what an API server does with an
 * object by it: drop what it does not name and say what is wrong. Of the keywords it knows those
 * that crd/ uses; there are no defaults. Objects are changed in place: give them copies of what
 * others hold.
 *
 * A schema_node is immutable and borrowed by everyone until it is freed. Causes and texts are the
 * caller's and are added to. Nothing here fails otherwise; time is bounded by the object's size, by
 * maxItems and by budgets for patterns.
 */
#ifndef TEC_SCHEMA_STRUCTURAL_H
#define TEC_SCHEMA_STRUCTURAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/cause.h"
#include "tec/schema/merge.h"

struct schema_node;

/* Keeps a reference to schema. ERR_INVALID: a pattern or a rule that cannot be compiled. */
struct schema_node *schema_structural_new(struct json_object *schema, struct err *err) MUST_CHECK;
void schema_structural_free(struct schema_node *s); /* NULL is fine */

/* Drops members of a whole object that are null or unknown; the paths of the unknown ones
 * ("spec.foo", "spec.a[0].b") are added to unknown, which is sorted. */
void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown);

/*
 * A whole object: types, values and lists, then rules. old: NULL for a create; otherwise what did
 * not change since is not held against it (a rule that does not hold becomes a warning), and rules
 * with oldSelf run. status: a write of /status, of which only that part is checked, and all rules.
 * warnings may be NULL. apiVersion, kind and metadata are the caller's to check before, but for
 * their types.
 */
void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	bool status, struct schema_causes *causes, struct schema_texts *warnings);

/* For the walk of schema/merge.h; NULL: not known. */
const struct schema_node *schema_node_member(const struct schema_node *s, const char *name);
const struct schema_node *schema_node_element(const struct schema_node *s);
const struct schema_merge *schema_node_merge(const struct schema_node *s); /* never NULL */

#endif
