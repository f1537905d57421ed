/* SPDX-License-Identifier: MIT */
/*
 * One pass over the text with a stack of open containers, without recursion. Every value is put into
 * its container as soon as it is made, so that on an error one json_object_put() of the root releases
 * everything. A name is inserted into json-c's table (which is seeded at random) with the hash that
 * was computed for the duplicate check.
 *
 * Strings are scanned twice: skip_string() finds the end and checks escapes, and only a string with
 * escapes is then copied by unescape(). Most strings have none.
 */
#include "config.h"

#include "tec/base/jsonread.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/secret.h"
#include "tec/base/utf8.h"

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

/* Count values and names: memory use depends on their number, not on the length of the text. */
static int count_token(struct reader *r)
{
	if (++r->tokens > r->limits->tokens)
		return refuse(r, "too many values");
	return 0;
}

/* Read four hex digits of the "\uXXXX" at pos; -1 without setting an error if they are not
 * there. */
static long hex4(const struct reader *r, size_t pos)
{
	long v = 0;

	if (r->len - pos < 6 || r->text[pos] != '\\' || r->text[pos + 1] != 'u')
		return -1;
	for (size_t i = pos + 2; i < pos + 6; i++) {
		char c = r->text[i];

		if (c >= '0' && c <= '9')
			v = v * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v = v * 16 + (c - 'A' + 10);
		else
			return -1;
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

/* Encode a code point below 0x110000; read_escape() returns no surrogates. */
static size_t put_utf8(uint8_t *out, long c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

/* Unescape the string from start to its closing quote at end into new memory, which the caller wipes
 * and frees. skip_string() has checked it, and an escape is never shorter than its character. */
static char *unescape(struct reader *r, size_t start, size_t end, size_t *len)
{
	char *plain = xmalloc(end - start + 1);
	size_t n = 0;

	for (r->pos = start; r->pos < end;) {
		if (r->text[r->pos] == '\\')
			n += put_utf8((uint8_t *)plain + n, read_escape(r, true));
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

/* Report the path of the member being read. Each open container is the last element or member of
 * its parent, so the stack gives the path. */
static void tell_duplicate(struct reader *r)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

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
}

/* The name exists already: refuse it, or remove the earlier value. */
static int take_duplicate(struct reader *r, struct json_object *object)
{
	struct json_object *before = NULL;

	if (!r->duplicate)
		return refuse(r, "duplicate member name, ending");
	tell_duplicate(r);
	json_object_object_get_ex(object, r->name, &before);
	json_wipe(before);
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
	if (count_token(r) < 0 || skip_string(r, false, &escaped) < 0)
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

static struct json_object *must(struct json_object *o)
{
	if (!o)
		DIE("out of memory (JSON value)");
	return o;
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

	if (count_token(r) < 0)
		return -1;
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
