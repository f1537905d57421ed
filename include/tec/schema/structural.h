/* SPDX-License-Identifier: MIT */
/*
 * A structural schema (openAPIV3Schema of a CRD), compiled once, and what an API server does with
 * an object by it: drop what it does not name, fill in defaults, say what is wrong in the words of
 * kube-apiserver 1.34. Objects are changed in place: give them copies of what others hold.
 *
 * A compiled schema is immutable and borrowed by everyone until it is freed. Causes and texts are
 * the caller's and are added to. Nothing here fails otherwise; time is bounded by the object's size
 * and by budgets for patterns and rules.
 */
#ifndef TEC_SCHEMA_STRUCTURAL_H
#define TEC_SCHEMA_STRUCTURAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/schema/cause.h"
#include "tec/schema/merge.h"

struct schema_node;

/*
 * schema is only read. path: where it stands, for the fields of causes
 * ("spec.versions[0].schema.openAPIV3Schema"). NULL: causes say why.
 */
struct schema_node *schema_structural_new(
	struct json_object *schema, const char *path, struct schema_causes *causes) MUST_CHECK;
void schema_structural_free(struct schema_node *s); /* NULL is fine */

/* Drops unknown fields of a whole object; their paths ("spec.foo", "spec.a[0].b") are added to
 * unknown, sorted, unless it is NULL. */
void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown);
/* Drops nulls that may not be and have no default, then fills in defaults. */
void schema_default(const struct schema_node *s, struct json_object *o);

/*
 * A whole object: types and values, lists that are sets or maps, embedded objects, then rules.
 * old: NULL for a create; otherwise what did not change since is not held against it (ratcheting;
 * it becomes a warning), and rules with oldSelf run. warnings may be NULL. apiVersion, kind and
 * metadata are the caller's to check before, but for their types where the schema names them.
 */
void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	struct schema_causes *causes, struct schema_texts *warnings);
/* The same for a write of /status: types and values of status only, and all rules and lists. */
void schema_validate_status(const struct schema_node *s, struct json_object *o,
	struct json_object *old, struct schema_causes *causes, struct schema_texts *warnings);

/* For the walk of schema/merge.h; NULL: not known. */
const struct schema_node *schema_node_member(const struct schema_node *s, const char *name);
const struct schema_node *schema_node_element(const struct schema_node *s);
const struct schema_merge *schema_node_merge(const struct schema_node *s); /* never NULL */

#endif
