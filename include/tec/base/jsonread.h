/* SPDX-License-Identifier: MIT */
/*
 * The only reader of JSON text (RFC 8259). It builds json-c objects itself, in one pass, because
 * json-c's parser accepts invalid text and uses 264 bytes of memory per byte of `[{},{},...]`.
 * Refused are: text that is not exactly one value, invalid UTF-8, unescaped control characters,
 * single quotes, NaN and Infinity, malformed numbers, \u0000 (unless the limits allow it), lone
 * surrogate escapes, nesting and token counts above the limits, and duplicate names in one object
 * (compared after unescaping). Values equal those of json-c: integers up to UINT64_MAX, larger ones
 * saturate; a double keeps its text.
 */
#ifndef TEC_BASE_JSONREAD_H
#define TEC_BASE_JSONREAD_H

#include <json-c/json_types.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

struct json_limits {
	size_t bytes;
	unsigned depth;  /* 1 = a scalar or an empty container; at most 256 */
	unsigned tokens; /* values plus names */
	bool nul;        /* strings may contain \u0000 (json_get_str() refuses those) */
};

extern const struct json_limits json_limits_public; /* 16 KiB, depth 8, 256 tokens: the listeners */
extern const struct json_limits
	json_limits_object; /* 2 MiB, depth 64, 200,000 tokens: one Kubernetes object */
/* As json_limits_object, with \u0000: for responses of the API server. A ConfigMap's data may be any
 * UTF-8. */
extern const struct json_limits json_limits_api;

/*
 * The caller puts the result. NULL with ERR_INVALID, also if the whole text is null. The error gives
 * the byte offset but never quotes the text. Values built from a refused text are wiped: they may
 * hold a key.
 */
struct json_object *json_parse(
	const char *text, size_t len, const struct json_limits *limits, struct err *err) MUST_CHECK;

/* As json_parse(), but the last one of duplicate members wins. fn receives the path of each duplicate
 * ("spec.a[0].b") while reading; with NULL duplicates are refused. */
typedef void (*json_duplicate_fn)(void *arg, const char *path);
struct json_object *json_parse_last(const char *text, size_t len, const struct json_limits *limits,
	json_duplicate_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
