/* SPDX-License-Identifier: MIT */
/*
 * The patterns of a schema and of matches() in its rules, by PCRE2: unanchored, over UTF-8, `$`
 * only at the very end. A schema_regex is immutable and owns its compiled pattern.
 *
 * The text comes from outside: a match takes a bounded number of steps and bounded memory. A text
 * that exceeds them, or is not UTF-8, does not match.
 */
#ifndef TEC_SCHEMA_REGEX_H
#define TEC_SCHEMA_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

struct schema_regex;

/* Compile a pattern. ERR_INVALID: malformed or too large; the text is PCRE2's. */
struct schema_regex *schema_regex_new(const char *pattern, size_t len, struct err *err) MUST_CHECK;
void schema_regex_free(struct schema_regex *r); /* NULL is fine */

bool schema_regex_match(const struct schema_regex *r, const char *s, size_t len);

#endif
