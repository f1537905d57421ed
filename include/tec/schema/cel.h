/* SPDX-License-Identifier: MIT */
/*
 * x-kubernetes-validations: the subset of the Common Expression Language that the rules of crd/
 * use: self, oldSelf, .field, has(), size() of a list, STRING.matches('...'), ==, !=, <=, !, &&,
 * ||, parentheses, strings in single quotes, numbers. Compiling refuses everything else, so a rule
 * of crd/ that uses more fails the tests of the schema.
 *
 * A rule is immutable once made. Running it reads the values, allocates nothing, and takes time
 * linear in the rule and the strings in it.
 */
#ifndef TEC_SCHEMA_CEL_H
#define TEC_SCHEMA_CEL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/err.h"

struct schema_node; /* a compiled schema; schema/structural.h */
struct schema_cel;

/*
 * Compile a rule. type: the schema of self; borrowed, outlives the rule. ERR_INVALID: outside of
 * the subset, an unknown field, or types that do not fit; the text says what, and at which byte.
 */
struct schema_cel *schema_cel_new(
	const char *rule, const struct schema_node *type, struct err *err) MUST_CHECK;
void schema_cel_free(struct schema_cel *c); /* NULL is fine */
bool schema_cel_uses_old(const struct schema_cel *c);

/* Run a rule. old: NULL without oldSelf. A rule that reads a missing value does not hold. */
bool schema_cel_holds(
	const struct schema_cel *c, struct json_object *self, struct json_object *old);

#endif
