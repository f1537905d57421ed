/* SPDX-License-Identifier: MIT */
/*
 * Regular expressions as Go and RE2 read them (patterns of a CRD, matches() of a rule), unanchored,
 * over code points of UTF-8. Matching takes time linear in text times expression, whatever they
 * are: it follows all alternatives at once. What RE2 does not have (back references, look-around,
 * possessive repeats) and Unicode classes (\p) are refused.
 */
#ifndef TEC_SCHEMA_REGEX_H
#define TEC_SCHEMA_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

struct schema_regex;

/* ERR_INVALID: not an expression, or too large; the text is what Go says where that is known. */
struct schema_regex *schema_regex_new(const char *pattern, size_t len, struct err *err) MUST_CHECK;
void schema_regex_free(struct schema_regex *r); /* NULL is fine */

/* Counts its steps down in *budget and stops with false when it is used up (*budget is 0 then). */
bool schema_regex_match(const struct schema_regex *r, const char *s, size_t len, uint64_t *budget);

#endif
