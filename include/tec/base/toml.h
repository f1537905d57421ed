/* SPDX-License-Identifier: MIT */
/*
 * One TOML 1.0 document as JSON: tables are objects, arrays of tables are arrays of objects. It is
 * for finding keys in other people's files, which are passed on byte for byte and never written.
 * Dates, times, inf and nan become texts. Refused, as TOML asks: keys and tables that are there
 * twice, what adds to an inline table or to a fixed array, control characters, invalid UTF-8,
 * integers beyond 64 bits; and, as a bound, nesting over 64 and more than 1 MiB.
 */
#ifndef TEC_BASE_TOML_H
#define TEC_BASE_TOML_H

#include "tec/base/json.h"

/* The caller puts the result; NULL with ERR_INVALID that names the line. */
struct json_object *toml_parse(const char *text, size_t len, struct err *err) MUST_CHECK;

#endif
