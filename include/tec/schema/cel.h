/* SPDX-License-Identifier: MIT */
/*
 * A small part of the Common Expression Language, for x-kubernetes-validations: literals (string,
 * int, uint, double, bool, null, list), self, oldSelf, member and index selection, has(), size()
 * and matches() in both forms, ==, !=, <, <=, >, >=, in, !, - of a number, &&, ||, ?:. Everything
 * else of the language is refused when the rule is compiled.
 *
 * A rule is immutable once made. Its evaluation reads the values, allocates little and is bounded:
 * depth by the parser, steps by a budget.
 */
#ifndef TEC_SCHEMA_CEL_H
#define TEC_SCHEMA_CEL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"

#define SCHEMA_CEL_RULE_MAX 16384    /* bytes of a rule */
#define SCHEMA_CEL_BUDGET   10000000 /* steps of all rules on one object */

struct schema_node; /* a compiled schema; schema/structural.h */
struct schema_cel;

/*
 * type: the schema of self, for "undefined field" and for how lists compare; NULL: not known.
 * Borrowed, outlives the rule. ERR_INVALID: outside the subset or wrong; the text says what and at
 * which column.
 */
struct schema_cel *schema_cel_new(
	const char *rule, const struct schema_node *type, struct err *err) MUST_CHECK;
void schema_cel_free(struct schema_cel *c); /* NULL is fine */
bool schema_cel_uses_old(const struct schema_cel *c);

enum schema_cel_result {
	SCHEMA_CEL_FALSE,
	SCHEMA_CEL_TRUE,
	SCHEMA_CEL_ERROR, /* err: "no such key: x" */
	SCHEMA_CEL_BUDGET_GONE,
};
/* old: NULL without oldSelf. err is set with SCHEMA_CEL_ERROR only. */
enum schema_cel_result schema_cel_eval(const struct schema_cel *c, struct json_object *self,
	struct json_object *old, uint64_t *budget, struct err *err);

#endif
