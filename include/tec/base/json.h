/* SPDX-License-Identifier: MIT */
/*
 * Safe use of json-c: parse with our own reader, check types when reading, build without leaks. A
 * json_object is never kept across a return to the loop: extract what is needed and put it. Getters
 * borrow: a string lives as long as its object. They return NULL or the default if a member is
 * missing, null or of another type. A path separates members with '/': "metadata/labels".
 */
#ifndef TEC_BASE_JSON_H
#define TEC_BASE_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"

#include "tec/base/mem.h"
#include "tec/base/str.h"

static inline void json_cleanup_(struct json_object **o)
{
	if (*o)
		json_object_put(*o);
}
#define cleanup_json __attribute__((cleanup(json_cleanup_)))

struct json_object *json_get(
	struct json_object *o, const char *path); /* borrowed; NULL: missing or null */
const char *json_get_str(
	struct json_object *o, const char *path); /* also NULL if it contains a NUL byte */
int64_t json_get_int(struct json_object *o, const char *path, int64_t dflt);
bool json_get_bool(struct json_object *o, const char *path, bool dflt);
struct json_object *json_get_obj(struct json_object *o, const char *path); /* only an object */
struct json_object *json_get_arr(struct json_object *o, const char *path); /* only an array */

bool json_has_str(struct json_object *a, const char *s); /* is it an element of the array? */

/*
 * Variants of json-c functions that assert on a wrong type. json_len() is the number of elements of
 * an array or members of an object, otherwise 0. json_at() is element i, borrowed; NULL if it is
 * null, past the end, or if a is not an array.
 */
size_t json_len(struct json_object *o);
/* True for null, and for an empty string, array or object. */
bool json_is_empty(struct json_object *o);
struct json_object *json_at(struct json_object *a, size_t i);
/* Remove a member. No effect if it does not exist or o is not an object. */
void json_drop(struct json_object *o, const char *name);
/* Replace element i, or append if i equals the length. No effect for a larger i, or if a is not an
 * array. */
void json_put_at(struct json_object *a, size_t i, struct json_object *take_v);
/* Remove n elements from index i; no effect if there are fewer. */
void json_cut(struct json_object *a, size_t i, size_t n);

static inline struct lh_entry *json_first_(struct json_object *o)
{
	struct lh_table *t = json_object_get_object(o); /* NULL of anything else */

	return t ? t->head : NULL;
}

static inline bool json_entry_(
	struct lh_entry *at, struct lh_entry **after, const char **name, struct json_object **value)
{
	if (!at)
		return false;
	*after = at->next;
	*name = lh_entry_k(at);
	*value = (struct json_object *)(uintptr_t)lh_entry_v(at);
	return true;
}

/*
 * Iterate over the members of an object in order; other types have none. The body may remove or
 * replace the current member. Declares name and value in the enclosing block, as json-c's macro does.
 */
#define json_each(o, name, value)                                                                  \
	const char *name __attribute__((unused)) = NULL;                                           \
	struct json_object *value __attribute__((unused)) = NULL;                                  \
	for (struct lh_entry *json_now_##name = json_first_(o), *json_next_##name = NULL;          \
		json_entry_(json_now_##name, &json_next_##name, &name, &value);                    \
		json_now_##name = json_next_##name)

/* Builders: all take ownership of `v` and return `o`, so that calls can be nested. NULL strings are
 * omitted. A value added to an `o` of the wrong type is released. */
struct json_object *json_obj(void);
struct json_object *json_arr(void);
struct json_object *json_str(const char *s);
struct json_object *json_str_len(const char *s, size_t len);
struct json_object *json_int(int64_t v);
struct json_object *json_add(struct json_object *o, const char *name, struct json_object *v);
struct json_object *json_add_str(struct json_object *o, const char *name, const char *v);
struct json_object *json_add_int(struct json_object *o, const char *name, int64_t v);
struct json_object *json_add_bool(struct json_object *o, const char *name, bool v);
struct json_object *json_push(struct json_object *a, struct json_object *v);
struct json_object *json_push_str(struct json_object *a, const char *v);
/*
 * Wipe every string value under o (NULL is fine); the structure is unchanged. json-c (0.16 and later)
 * keeps a string in its object or in one buffer of it and returns that memory, so this reaches the
 * only copy.
 */
void json_wipe(struct json_object *o);
/* Deep copy, the caller puts it. */
struct json_object *json_copy(struct json_object *o);
/* Find the first number in o that overflows a double, such as 1e999, which is valid JSON. Borrowed;
 * NULL: none. */
struct json_object *json_find_infinite(struct json_object *o);

/* Compact text with members in their order; '/' is not escaped. The caller frees. */
char *json_text(struct json_object *o);
/* Compact text with the members of every object sorted by name: for hashes and comparison. */
void json_canonical(struct strbuf *out, struct json_object *o);
/* Find the first quote, backslash or control character in [p, end), or end: the unescaped run of a
 * string. */
const char *json_plain_run(const char *p, const char *end);
/* Appends s as a JSON string literal with quotes. */
void json_quote(struct strbuf *out, const char *s, size_t len);
void json_quote_after(
	struct strbuf *out, const char *before, const char *s); /* before, then that */
/* The names of the members, borrowed and sorted by bytes, in an array that the caller frees. */
const char **json_names(struct json_object *o, size_t *n);

/*
 * The only reader of JSON text (RFC 8259). It builds json-c objects itself, in one pass, because
 * json-c's parser accepts invalid text and uses 264 bytes of memory per byte of `[{},{},...]`.
 * Refused are: text that is not exactly one value, invalid UTF-8, unescaped control characters,
 * single quotes, NaN and Infinity, malformed numbers, \u0000 (unless the limits allow it), lone
 * surrogate escapes, nesting and token counts above the limits, and duplicate names in one object
 * (compared after unescaping). Values equal those of json-c: integers up to UINT64_MAX, larger ones
 * saturate; a double keeps its text.
 */
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
