/* SPDX-License-Identifier: MIT */
/*
 * Parse one TOML 1.0 document to JSON: tables become objects, arrays of tables arrays of objects. It
 * serves to find keys in users' files, which are passed on byte for byte and never rewritten. Dates,
 * times, inf and nan become strings. As TOML requires, these are refused: duplicate keys and tables,
 * additions to an inline table or static array, control characters, invalid UTF-8 and integers beyond
 * 64 bits. As a limit, nesting over 64 levels and more than 1 MiB are refused as well.
 */
#ifndef TEC_BASE_TOML_H
#define TEC_BASE_TOML_H

#include "tec/base/json.h"

/* The caller puts the result; NULL with ERR_INVALID that names the line. */
struct json_object *toml_parse(const char *text, size_t len, struct err *err) MUST_CHECK;

#endif
