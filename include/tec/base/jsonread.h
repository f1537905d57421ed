/* SPDX-License-Identifier: MIT */
/*
 * The one reader of JSON text (RFC 8259). It makes json-c's objects itself, in one pass, because
 * json-c's own parser accepts what it should not and costs 264 bytes of memory per byte of
 * `[{},{},...]`. Refuses: text that is not one complete value, invalid UTF-8, raw control bytes,
 * single quotes, NaN and Infinity, bad numbers, \u0000 (unless the limits allow it) and lone
 * surrogate escapes, nesting and token counts above the limits, duplicate names within one object
 * (compared after unescaping). Values are what json-c would have made of them: integers up to
 * UINT64_MAX, what is larger is the largest; a double keeps its text.
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
	bool nul;        /* \u0000 may stand in a text (json_get_str() refuses such a text) */
};

extern const struct json_limits json_limits_public; /* 16 KiB, depth 8, 256 tokens: the listeners */
extern const struct json_limits
	json_limits_object; /* 2 MiB, depth 64, 200,000 tokens: one Kubernetes object */
/* The same with \u0000: what the API server hands out. A ConfigMap's data may be any UTF-8. */
extern const struct json_limits json_limits_api;

/*
 * The caller puts the result. NULL with ERR_INVALID, also for a null alone; the error names the
 * byte, never what stood there. What was made of a text that is refused is wiped: it may have held
 * a key.
 */
struct json_object *json_parse(
	const char *text, size_t len, const struct json_limits *limits, struct err *err) MUST_CHECK;

/* The same, but of members with one name the last one counts. fn is told where each of the others
 * stands ("spec.a[0].b"), while it is read; NULL: they are refused, as above. */
typedef void (*json_duplicate_fn)(void *arg, const char *path);
struct json_object *json_parse_last(const char *text, size_t len, const struct json_limits *limits,
	json_duplicate_fn fn, void *arg, struct err *err) MUST_CHECK;

/* Inside of a string: the first quote, backslash or control byte between p and end, or end. */
const char *json_plain_run(const char *p, const char *end);

#endif
