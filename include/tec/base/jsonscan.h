/* SPDX-License-Identifier: MIT */
/*
 * Prescan of untrusted JSON text (RFC 8259) before json-c sees it: json-c accepts what it should
 * not and costs 264 bytes of memory per byte of `[{},{},...]`. Refuses: text that is not one
 * complete value, invalid UTF-8, raw control bytes, single quotes, NaN and Infinity, bad numbers,
 * \u0000 (but where limits let it pass) and lone surrogate escapes, nesting and token counts above
 * the limits, duplicate names within one object (compared after unescaping). Allocates nothing that
 * grows with nesting beyond `depth`.
 */
#ifndef TEC_BASE_JSONSCAN_H
#define TEC_BASE_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

struct json_limits {
	size_t bytes;
	unsigned depth;  /* 1 = a scalar or an empty container */
	unsigned tokens; /* values plus names */
	bool nul;        /* \u0000 may stand in a text (json_get_str() refuses such a text) */
};

extern const struct json_limits json_limits_public; /* 16 KiB, depth 8, 256 tokens: the listeners */
extern const struct json_limits
	json_limits_object; /* 2 MiB, depth 64, 200,000 tokens: one Kubernetes object */
/* The same with \u0000: what the API server hands out. A ConfigMap's data may be any UTF-8. */
extern const struct json_limits json_limits_api;

int json_scan(
	const char *text, size_t len, const struct json_limits *limits, struct err *err) MUST_CHECK;

/* Inside of a string: the first quote, backslash or control byte between p and end, or end. */
const char *json_plain_run(const char *p, const char *end);

#endif
