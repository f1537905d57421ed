/* SPDX-License-Identifier: MIT */
/*
 * Getters check the type first, because json-c converts silently (get_int64 of "12x" is 12). The
 * writer is our own as well, so that hashes and comparisons see the same text with every version of
 * json-c.
 *
 * The reader makes one pass over the text with a stack of open containers, without recursion. Every
 * value is put into its container as soon as it is made, so that on an error one json_object_put()
 * of the root releases everything. A name is inserted into json-c's table (which is seeded at
 * random) with the hash that was computed for the duplicate check. Strings are scanned twice:
 * skip_string() finds the end and checks escapes, and only a string with escapes is then copied by
 * unescape(). Most have none.
 */
#include "config.h"

#include "tec/base/json.h"

#include <endian.h>
#include <math.h>

#include "tec/base/bytes.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/base/utf8.h"

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

bool json_has_str(struct json_object *a, const char *s)
{
	for (size_t i = 0; i < json_len(a); i++)
		if (json_object_is_type(json_at(a, i), json_type_string) &&
			str_eq(json_object_get_string(json_at(a, i)), s))
			return true;
	return false;
}

size_t json_len(struct json_object *o)
{
	if (json_object_is_type(o, json_type_array))
		return json_object_array_length(o);
	return json_object_is_type(o, json_type_object) ? (size_t)json_object_object_length(o) : 0;
}

bool json_is_empty(struct json_object *o)
{
	switch (json_object_get_type(o)) {
	case json_type_null:
		return true;
	case json_type_string:
		return json_object_get_string_len(o) == 0;
	case json_type_array:
	case json_type_object:
		return json_len(o) == 0;
	default:
		return false;
	}
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
	for (size_t i = 0; !found && json_object_is_type(o, json_type_array) && i < json_len(o);
		i++)
		found = json_find_infinite(json_at(o, i));
	json_each (o, name, value)
		found = found ? found : json_find_infinite(value);
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
const char **json_names(struct json_object *o, size_t *n)
{
	const char **names = xcalloc(json_len(o), sizeof(*names));

	*n = 0;
	json_each (o, name, value)
		names[(*n)++] = name;
	qsort(names, *n, sizeof(*names), str_order);
	return names;
}

static void write_value(struct strbuf *out, struct json_object *o, bool sorted);

static void write_member(
	struct strbuf *out, char before, const char *name, struct json_object *value, bool sorted)
{
	strbuf_addc(out, before);
	json_quote(out, name, strlen(name));
	strbuf_addc(out, ':');
	write_value(out, value, sorted);
}

/* Sort the names, then look the values up: json-c keeps the order of insertion. */
static void write_sorted(struct strbuf *out, struct json_object *o)
{
	size_t n;
	cleanup_free const char **names = json_names(o, &n);

	for (size_t i = 0; i < n; i++)
		write_member(
			out, i ? ',' : '{', names[i], json_object_object_get(o, names[i]), true);
	strbuf_adds(out, n ? "}" : "{}");
}

/* Recursion is bounded by the nesting limit of the reader. */
static void write_value(struct strbuf *out, struct json_object *o, bool sorted)
{
	char before = '{';

	switch (json_object_get_type(o)) {
	case json_type_object:
		if (sorted) {
			write_sorted(out, o);
			return;
		}
		json_object_object_foreach (o, name, value) {
			write_member(out, before, name, value, false);
			before = ',';
		}
		strbuf_adds(out, before == '{' ? "{}" : "}");
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

void json_quote_after(struct strbuf *out, const char *before, const char *s)
{
	strbuf_adds(out, before);
	json_quote(out, s, strlen(s));
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
	if (json_object_is_type(o, json_type_string))
		secret_wipe((char *)(uintptr_t)json_object_get_string(o),
			(size_t)json_object_get_string_len(o));
	for (size_t i = 0; json_object_is_type(o, json_type_array) && i < json_len(o); i++)
		json_wipe(json_at(o, i));
	json_each (o, name, value)
		json_wipe(value);
}

/* ---- reading text */

#define DEPTH_MAX 256

const struct json_limits json_limits_public = {.bytes = 16384, .depth = 8, .tokens = 256};
const struct json_limits json_limits_object = {.bytes = 2097152, .depth = 64, .tokens = 200000};
const struct json_limits json_limits_api = {
	.bytes = 2097152, .depth = 64, .tokens = 200000, .nul = true};

struct reader {
	const char *text;
	size_t len, pos;
	const struct json_limits *limits;
	struct err *err;
	unsigned tokens;
	struct json_object *root; /* owned */
	unsigned depth;           /* open containers */
	struct json_object *stack[DEPTH_MAX];
	json_duplicate_fn duplicate; /* NULL: duplicate names are refused */
	void *arg;
	char *name; /* owned; name of the member being read; NULL: in an array or at the root */
	unsigned long name_hash;
};

/* Set the error with the position. The text is never quoted: it may be a key or a token. */
static int refuse(struct reader *r, const char *what)
{
	return err_set(r->err, ERR_INVALID, "JSON: %s at byte %zu", what, r->pos);
}

/* Return the next byte, or -1 at the end. */
static int peek(const struct reader *r)
{
	return r->pos < r->len ? (unsigned char)r->text[r->pos] : -1;
}

/* The four whitespace characters of RFC 8259 section 2; no others are permitted, not even
 * U+FEFF. */
static void skip_blanks(struct reader *r)
{
	for (int c = peek(r); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek(r))
		r->pos++;
}

/* Read four hex digits of the "\uXXXX" at pos; -1 without setting an error if they are not
 * there. */
static long hex4(const struct reader *r, size_t pos)
{
	long v = 0;

	if (r->len - pos < 6 || r->text[pos] != '\\' || r->text[pos + 1] != 'u')
		return -1;
	for (size_t i = pos + 2; i < pos + 6; i++) {
		int digit = bytes_hex_digit(r->text[i]);

		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

/* Decode the escape at pos and advance past it; -1 with the error set. A character outside the BMP
 * is a surrogate pair, that is two escapes (RFC 8259 section 7). */
static long read_escape(struct reader *r, bool nul)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p;
	long c, low;

	if (r->len - r->pos < 2)
		return refuse(r, "unterminated string");
	p = r->text[r->pos + 1] ? strchr(from, r->text[r->pos + 1]) : NULL;
	if (p) {
		r->pos += 2;
		return to[p - from];
	}
	c = hex4(r, r->pos);
	if (c < 0)
		return refuse(r, "unknown escape");
	if (c == 0 && !nul)
		return refuse(r, "\\u0000 not allowed");
	if (c >= 0xdc00 && c <= 0xdfff)
		return refuse(r, "lone surrogate");
	if (c < 0xd800 || c > 0xdbff) {
		r->pos += 6;
		return c;
	}
	low = hex4(r, r->pos + 6);
	if (low < 0xdc00 || low > 0xdfff)
		return refuse(r, "lone surrogate");
	r->pos += 12;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* Unescape the string from start to its closing quote at end into new memory, which the caller wipes
 * and frees. skip_string() has checked it, and an escape is never shorter than its character. */
static char *unescape(struct reader *r, size_t start, size_t end, size_t *len)
{
	char *plain = xmalloc(end - start + 1);
	size_t n = 0;

	for (r->pos = start; r->pos < end;) {
		if (r->text[r->pos] == '\\')
			n += utf8_put(plain + n, (uint32_t)read_escape(r, true));
		else
			plain[n++] = r->text[r->pos++];
	}
	plain[n] = '\0';
	r->pos = end + 1;
	*len = n;
	return plain;
}

/* Check the string at pos and move past it. *escaped: it has escapes; nul: \u0000 is permitted. */
static int skip_string(struct reader *r, bool nul, bool *escaped)
{
	*escaped = false;
	r->pos++;
	for (;;) {
		r->pos = (size_t)(json_plain_run(r->text + r->pos, r->text + r->len) - r->text);
		if (r->pos == r->len)
			return refuse(r, "unterminated string");
		if (r->text[r->pos] == '"')
			break;
		if (r->text[r->pos] != '\\')
			return refuse(r, "unescaped control character in a string");
		*escaped = true;
		if (read_escape(r, nul) < 0)
			return -1;
	}
	r->pos++;
	return 0;
}

/* The name exists already: refuse it, or report its path and remove the earlier value. Each open
 * container is the last element or member of its parent, so the stack gives the path. */
static int take_duplicate(struct reader *r, struct json_object *object)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	if (!r->duplicate)
		return refuse(r, "duplicate member name, ending");
	for (unsigned i = 0; i + 1 < r->depth; i++) {
		struct json_object *in = r->stack[i];

		if (json_object_is_type(in, json_type_array))
			strbuf_addf(&path, "[%zu]", json_object_array_length(in) - 1);
		else
			strbuf_addf(&path, "%s%s", path.len ? "." : "",
				(const char *)lh_entry_k(json_object_get_object(in)->tail));
	}
	strbuf_addf(&path, "%s%s", path.len ? "." : "", r->name);
	r->duplicate(r->arg, path.data);
	json_wipe(json_object_object_get(object, r->name));
	json_object_object_del(object, r->name);
	return 0;
}

/* Read the member name at pos and its colon. */
static int read_name(struct reader *r, struct json_object *object)
{
	struct lh_table *members = json_object_get_object(object);
	size_t start = r->pos + 1, len;
	bool escaped;

	if (peek(r) != '"')
		return refuse(r, "expected a member name");
	if (++r->tokens > r->limits->tokens)
		return refuse(r, "too many values");
	if (skip_string(r, false, &escaped) < 0)
		return -1;
	r->name = escaped ? unescape(r, start, r->pos - 1, &len)
			  : xmemdup(r->text + start, r->pos - 1 - start);
	r->name_hash = lh_get_hash(members, r->name);
	if (lh_table_lookup_entry_w_hash(members, r->name, r->name_hash) &&
		take_duplicate(r, object) < 0)
		return -1;
	skip_blanks(r);
	if (peek(r) != ':')
		return refuse(r, "expected ':' after a member name");
	r->pos++;
	skip_blanks(r);
	return 0;
}

/* Put the value into the innermost container, or make it the root. take_v may be NULL, which is
 * json-c's null. */
static void put_value(struct reader *r, struct json_object *take_v)
{
	struct json_object *into = r->depth ? r->stack[r->depth - 1] : NULL;

	if (!into)
		r->root = take_v;
	else if (!r->name)
		json_push(into, take_v);
	else if (lh_table_insert_w_hash(json_object_get_object(into), steal_ptr(&r->name), take_v,
			 r->name_hash, 0) < 0)
		DIE("out of memory (JSON member)");
}

/* Take a string without escapes directly from the text; otherwise wipe the intermediate copy, as it
 * may be a key. */
static int read_string(struct reader *r)
{
	size_t start = r->pos + 1, len;
	bool escaped;
	char *plain;

	if (skip_string(r, r->limits->nul, &escaped) < 0)
		return -1;
	if (!escaped) {
		len = r->pos - 1 - start;
		put_value(r, must(json_object_new_string_len(r->text + start, (int)len)));
		return 0;
	}
	plain = unescape(r, start, r->pos - 1, &len);
	put_value(r, must(json_object_new_string_len(plain, (int)len)));
	secret_wipe(plain, len);
	free(plain);
	return 0;
}

/* Return the number of digits that were skipped. */
static size_t skip_digits(struct reader *r)
{
	size_t start = r->pos;

	while (peek(r) >= '0' && peek(r) <= '9')
		r->pos++;
	return r->pos - start;
}

/* Convert the digits between p and end, saturating at the limits as json-c does. */
static struct json_object *make_integer(const char *p, const char *end)
{
	bool negative = *p == '-';
	uint64_t v = 0, max = negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;

	for (p += negative; p < end; p++) {
		unsigned digit = (unsigned)(*p - '0');

		v = v > (max - digit) / 10 ? max : v * 10 + digit;
	}
	if (negative)
		return json_object_new_int64(v > INT64_MAX ? INT64_MIN : -(int64_t)v);
	return v > INT64_MAX ? json_object_new_uint64(v) : json_object_new_int64((int64_t)v);
}

/* The grammar of RFC 8259 section 6: [ "-" ] int [ frac ] [ exp ], where int has no leading zeros
 * and frac has a digit after the point. '+' and a bare '.' are refused. */
static int read_number(struct reader *r)
{
	cleanup_free char *text = NULL;
	size_t start = r->pos, n;
	bool zero, integer = true;

	if (peek(r) == '-')
		r->pos++;
	zero = peek(r) == '0';
	n = skip_digits(r);
	if (n == 0 || (zero && n > 1))
		return refuse(r, "malformed number");
	if (peek(r) == '.') {
		integer = false;
		r->pos++;
		if (skip_digits(r) == 0)
			return refuse(r, "malformed number");
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		integer = false;
		r->pos++;
		if (peek(r) == '+' || peek(r) == '-')
			r->pos++;
		if (skip_digits(r) == 0)
			return refuse(r, "malformed number");
	}
	if (integer) {
		put_value(r, must(make_integer(r->text + start, r->text + r->pos)));
		return 0;
	}
	text = xmemdup(r->text + start, r->pos - start);
	put_value(r, must(json_object_new_double_s(strtod(text, NULL), text)));
	return 0;
}

/* false, true or null; the index in `words` is the value. */
static int read_word(struct reader *r)
{
	static const char *const words[] = {"false", "true", "null"};

	for (int i = 0; i < (int)ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (r->len - r->pos >= n && memcmp(r->text + r->pos, words[i], n) == 0) {
			r->pos += n;
			put_value(r, i == 2 ? NULL : must(json_object_new_boolean(i)));
			return 0;
		}
	}
	return refuse(r, "expected a value");
}

/* Open an object or array. 1: it awaits its first element; 0: it was empty and is complete. */
static int open_container(struct reader *r, bool object)
{
	struct json_object *o = object ? json_obj() : must(json_object_new_array_ext(4));

	put_value(r, o);
	r->pos++;
	skip_blanks(r);
	if (peek(r) == (object ? '}' : ']')) {
		r->pos++;
		return 0;
	}
	if (r->depth + 1 >= r->limits->depth)
		return refuse(r, "nesting too deep");
	r->stack[r->depth++] = o;
	return 1;
}

/* Read one scalar, or the opening of a container. 1: a container was opened. */
static int read_value(struct reader *r)
{
	int c = peek(r);

	/* Memory use depends on the number of values and names, not on the length of the text. */
	if (++r->tokens > r->limits->tokens)
		return refuse(r, "too many values");
	if (c == '{' || c == '[')
		return open_container(r, c == '{');
	if (c == '"')
		return read_string(r);
	if (c == '-' || (c >= '0' && c <= '9'))
		return read_number(r);
	return read_word(r);
}

/* Close the containers that end after a value. 1: another element follows. */
static int read_after(struct reader *r)
{
	while (r->depth > 0) {
		bool object = json_object_is_type(r->stack[r->depth - 1], json_type_object);

		skip_blanks(r);
		if (peek(r) == ',') {
			r->pos++;
			skip_blanks(r);
			return 1;
		}
		if (peek(r) != (object ? '}' : ']'))
			return refuse(r, "expected ',' or the end of the container");
		r->pos++;
		r->depth--;
	}
	return 0;
}

/* Each round reads one value, preceded by its name in an object. */
static int read_document(struct reader *r)
{
	int more;

	skip_blanks(r);
	do {
		struct json_object *in = r->depth > 0 ? r->stack[r->depth - 1] : NULL;

		if (json_object_is_type(in, json_type_object) && read_name(r, in) < 0)
			return -1;
		more = read_value(r);
		if (more == 0)
			more = read_after(r);
	} while (more > 0);
	if (more < 0)
		return -1;
	skip_blanks(r);
	return r->pos == r->len ? 0 : refuse(r, "trailing data after the value");
}

struct json_object *json_parse(
	const char *text, size_t len, const struct json_limits *limits, struct err *err)
{
	return json_parse_last(text, len, limits, NULL, NULL, err);
}

/* The strict and the lenient reader share all code but the treatment of duplicates. */
struct json_object *json_parse_last(const char *text, size_t len, const struct json_limits *limits,
	json_duplicate_fn duplicate, void *arg, struct err *err)
{
	struct reader r; /* not zeroed as a whole, because the stack has 2 KiB */
	int rc;

	r.text = text;
	r.len = len;
	r.pos = 0;
	r.limits = limits;
	r.err = err;
	r.tokens = r.depth = 0;
	r.root = NULL;
	r.name = NULL;
	r.duplicate = duplicate;
	r.arg = arg;
	if (limits->depth < 1 || limits->depth > DEPTH_MAX || limits->bytes > INT32_MAX)
		DIE("invalid JSON limits: %u levels, %zu bytes", limits->depth, limits->bytes);
	if (len > limits->bytes)
		rc = err_set(err, ERR_INVALID, "JSON: %zu bytes exceed the limit of %zu", len,
			limits->bytes);
	else if (!utf8_valid(text, len))
		rc = err_set(err, ERR_INVALID, "JSON: invalid UTF-8");
	else
		rc = read_document(&r);
	if (rc == 0 && !r.root)
		rc = err_set(err, ERR_INVALID, "JSON: the value is null");
	if (rc == 0)
		return r.root;
	free(r.name);
	json_wipe(r.root);
	json_object_put(r.root);
	return NULL;
}
