/* SPDX-License-Identifier: MIT */
/*
 * Getters check the type first, because json-c converts silently (get_int64 of "12x" is 12). The
 * writer is our own as well, so that hashes and comparisons see the same text with every version of
 * json-c.
 */
#include "config.h"

#include "tec/base/json.h"

#include <endian.h>
#include <inttypes.h>
#include <math.h>

#include "tec/base/jsonread.h"
#include "tec/base/secret.h"

#define NAME_ROOM 64 /* member names in paths are usually shorter */
#define PLAIN     (JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)

/* Find the member whose name is the first len bytes of name; json-c needs a NUL-terminated name, so
 * it is copied. */
static struct json_object *member(struct json_object *o, const char *name, size_t len)
{
	cleanup_free char *large = len < NAME_ROOM ? NULL : xstrndup(name, len);
	char text[NAME_ROOM];

	if (!json_object_is_type(o, json_type_object))
		return NULL;
	if (!large) {
		memcpy(text, name, len);
		text[len] = '\0';
	}
	return json_object_object_get_ex(o, large ? large : text, &o) ? o : NULL;
}

/* Walk the path member by member. The last name needs no copy, because it ends with the path. */
struct json_object *json_get(struct json_object *o, const char *path)
{
	const char *end;

	while (o && (end = strchr(path, '/'))) {
		o = member(o, path, (size_t)(end - path));
		path = end + 1;
	}
	if (!o || !json_object_is_type(o, json_type_object) ||
		!json_object_object_get_ex(o, path, &o))
		return NULL;
	return o;
}

/* Return the member only if it has this type, which also excludes null. */
static struct json_object *get_type(struct json_object *o, const char *path, enum json_type type)
{
	o = json_get(o, path);
	return o && json_object_is_type(o, type) ? o : NULL;
}

/* A string with a NUL byte is refused, as callers would see only its beginning. */
const char *json_get_str(struct json_object *o, const char *path)
{
	const char *s;

	o = get_type(o, path, json_type_string);
	if (!o)
		return NULL;
	s = json_object_get_string(o);
	return strlen(s) == (size_t)json_object_get_string_len(o) ? s : NULL;
}

/* Only a JSON integer counts, not a double or a string with digits. */
int64_t json_get_int(struct json_object *o, const char *path, int64_t dflt)
{
	o = get_type(o, path, json_type_int);
	if (!o || json_object_get_uint64(o) > INT64_MAX) /* json-c clamps larger values */
		return dflt;
	return json_object_get_int64(o);
}

bool json_get_bool(struct json_object *o, const char *path, bool dflt)
{
	o = get_type(o, path, json_type_boolean);
	return o ? json_object_get_boolean(o) : dflt;
}

struct json_object *json_get_obj(struct json_object *o, const char *path)
{
	return get_type(o, path, json_type_object);
}

struct json_object *json_get_arr(struct json_object *o, const char *path)
{
	return get_type(o, path, json_type_array);
}

size_t json_len(struct json_object *o)
{
	if (json_object_is_type(o, json_type_array))
		return json_object_array_length(o);
	return json_object_is_type(o, json_type_object) ? (size_t)json_object_object_length(o) : 0;
}

/* json-c returns NULL for an index past the end and for a null element alike. */
struct json_object *json_at(struct json_object *a, size_t i)
{
	return json_object_is_type(a, json_type_array) ? json_object_array_get_idx(a, i) : NULL;
}

void json_drop(struct json_object *o, const char *name)
{
	if (json_object_is_type(o, json_type_object))
		json_object_object_del(o, name);
}

/* json_object_array_put_idx() would pad the array with nulls up to i, so a larger i is refused. */
void json_put_at(struct json_object *a, size_t i, struct json_object *take_v)
{
	if (!json_object_is_type(a, json_type_array) || i > json_object_array_length(a))
		json_object_put(take_v);
	else if (json_object_array_put_idx(a, i, take_v) < 0)
		DIE("out of memory (JSON array)");
}

/* json_object_array_del_idx() itself refuses a range that exceeds the array. */
void json_cut(struct json_object *a, size_t i, size_t n)
{
	if (json_object_is_type(a, json_type_array))
		(void)json_object_array_del_idx(a, i, n);
}

/* json-c returns NULL only if memory is exhausted. */
static struct json_object *must(struct json_object *o)
{
	if (!o)
		DIE("out of memory (JSON value)");
	return o;
}

struct json_object *json_obj(void)
{
	return must(json_object_new_object());
}

struct json_object *json_arr(void)
{
	return must(json_object_new_array());
}

struct json_object *json_str(const char *s)
{
	return must(json_object_new_string(s));
}

/* json-c takes the length as an int. */
struct json_object *json_str_len(const char *s, size_t len)
{
	if (len > INT32_MAX)
		DIE("JSON string too long: %zu bytes", len);
	return must(json_object_new_string_len(s, (int)len));
}

struct json_object *json_int(int64_t v)
{
	return must(json_object_new_int64(v));
}

/* Release the value if o is not an object: a chain of builders can then ignore the failure. */
struct json_object *json_add(struct json_object *o, const char *name, struct json_object *v)
{
	if (!json_object_is_type(o, json_type_object))
		json_object_put(v);
	else if (json_object_object_add(o, name, v) < 0)
		DIE("out of memory (JSON member)");
	return o;
}

/* Such a number is valid JSON, but has no double and cannot be written back as it was. */
struct json_object *json_find_infinite(struct json_object *o)
{
	struct json_object *found = NULL;

	if (json_object_is_type(o, json_type_double))
		return isfinite(json_object_get_double(o)) ? NULL : o;
	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; !found && i < json_object_array_length(o); i++)
			found = json_find_infinite(json_object_array_get_idx(o, i));
	if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach (o, name, v) {
			(void)name;
			found = found ? found : json_find_infinite(v);
		}
	}
	return found;
}

/* A NULL string is omitted, as optional members are in Kubernetes objects. */
struct json_object *json_add_str(struct json_object *o, const char *name, const char *v)
{
	return v ? json_add(o, name, json_str(v)) : o;
}

struct json_object *json_add_int(struct json_object *o, const char *name, int64_t v)
{
	return json_add(o, name, json_int(v));
}

struct json_object *json_add_bool(struct json_object *o, const char *name, bool v)
{
	return json_add(o, name, must(json_object_new_boolean(v)));
}

struct json_object *json_push(struct json_object *a, struct json_object *v)
{
	if (!json_object_is_type(a, json_type_array))
		json_object_put(v);
	else if (json_object_array_add(a, v) < 0)
		DIE("out of memory (JSON array)");
	return a;
}

struct json_object *json_push_str(struct json_object *a, const char *v)
{
	return v ? json_push(a, json_str(v)) : a;
}

/* For changing a cached or borrowed value: json-c's references share one mutable object. */
struct json_object *json_copy(struct json_object *o)
{
	struct json_object *copy = NULL;

	if (o && json_object_deep_copy(o, &copy, NULL) < 0)
		DIE("cannot copy a JSON value");
	return copy;
}

/* Compare names by bytes, as Go sorts map keys. */
static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_value(struct strbuf *out, struct json_object *o, bool sorted);

static void write_member(
	struct strbuf *out, const char *name, struct json_object *value, bool sorted)
{
	json_quote(out, name, strlen(name));
	strbuf_addc(out, ':');
	write_value(out, value, sorted);
}

/* Members in their order of insertion. */
static void write_object(struct strbuf *out, struct json_object *o)
{
	char sep = '{';

	json_object_object_foreach (o, name, value) {
		strbuf_addc(out, sep);
		write_member(out, name, value, false);
		sep = ',';
	}
	strbuf_adds(out, sep == '{' ? "{}" : "}");
}

/* Sort pointers to the names, then look the values up: json-c keeps the order of insertion. */
static void write_sorted(struct strbuf *out, struct json_object *o)
{
	size_t n = 0, len = (size_t)json_object_object_length(o);
	cleanup_free const char **names = xcalloc(len, sizeof(*names));

	json_object_object_foreach (o, name, value) {
		(void)value;
		names[n++] = name;
	}
	if (n > 0)
		qsort(names, n, sizeof(*names), by_bytes);
	strbuf_addc(out, '{');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			strbuf_addc(out, ',');
		write_member(out, names[i], json_object_object_get(o, names[i]), true);
	}
	strbuf_addc(out, '}');
}

/* Recursion is bounded by the nesting limit of the reader. */
static void write_value(struct strbuf *out, struct json_object *o, bool sorted)
{
	switch (json_object_get_type(o)) {
	case json_type_object:
		if (sorted)
			write_sorted(out, o);
		else
			write_object(out, o);
		return;
	case json_type_array:
		strbuf_addc(out, '[');
		for (size_t i = 0; i < json_object_array_length(o); i++) {
			if (i > 0)
				strbuf_addc(out, ',');
			write_value(out, json_object_array_get_idx(o, i), sorted);
		}
		strbuf_addc(out, ']');
		return;
	case json_type_string:
		json_quote(out, json_object_get_string(o), (size_t)json_object_get_string_len(o));
		return;
	case json_type_null:
	case json_type_boolean:
	case json_type_int:
	case json_type_double:
		/* Scalars have one spelling in json-c; a double that was parsed keeps its source
		 * text. */
		strbuf_adds(out, json_object_to_json_string_ext(o, PLAIN));
		return;
	}
	DIE("JSON value of unknown type");
}

/* The text is not wiped: a caller whose value holds a key must do that. */
char *json_text(struct json_object *o)
{
	struct strbuf out = STRBUF_INIT;

	write_value(&out, o, false);
	return strbuf_steal(&out);
}

/* Equal values give equal bytes, whatever order their members arrived in. */
void json_canonical(struct strbuf *out, struct json_object *o)
{
	write_value(out, o, true);
}

/*
 * Test eight bytes at a time: (x - n) & ~x has the top bit set in each byte of x that is below n, for
 * n up to 128; a byte xored with the wanted character is below 1. A borrow corrupts only bytes after
 * the first hit, which is the one that counts.
 */
const char *json_plain_run(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

	for (; end - p >= 8; p += 8) {
		uint64_t v, quote, back, hits;

		memcpy(&v, p, 8);
		v = le64toh(v);
		quote = v ^ (ones * '"');
		back = v ^ (ones * '\\');
		hits = (((quote - ones) & ~quote) | ((back - ones) & ~back) |
			       ((v - ones * 0x20) & ~v)) &
		       tops;
		if (hits)
			return p + __builtin_ctzll(hits) / 8;
	}
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

/* Copy runs of plain characters at once; use the short escapes and \u00xx for other control
 * characters (RFC 8259 section 7). */
void json_quote(struct strbuf *out, const char *s, size_t len)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *end = s + len;

	strbuf_addc(out, '"');
	for (;;) {
		const char *run = json_plain_run(s, end), *p;

		strbuf_add(out, s, (size_t)(run - s));
		if (run == end)
			break;
		p = *run ? strchr(from, *run) : NULL;
		if (p)
			strbuf_add(out, (const char[]){'\\', to[p - from]}, 2);
		else
			strbuf_addf(out, "\\u%04x", (unsigned)(unsigned char)*run);
		s = run + 1;
	}
	strbuf_addc(out, '"');
}

/* The member names are not wiped: they are not secret. */
void json_wipe(struct json_object *o)
{
	switch (json_object_get_type(o)) {
	case json_type_string:
		secret_wipe((char *)(uintptr_t)json_object_get_string(o),
			(size_t)json_object_get_string_len(o));
		break;
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(o); i++)
			json_wipe(json_object_array_get_idx(o, i));
		break;
	case json_type_object: {
		json_object_object_foreach (o, name, value) {
			(void)name;
			json_wipe(value);
		}
		break;
	}
	default:
		break;
	}
}
