/* SPDX-License-Identifier: MIT */
/*
 * One pass over the text with a stack of container types, no recursion. Names of all objects share
 * one hash set of 128-bit keyed hashes over (object, unescaped name): a false "duplicate" has odds
 * of 2^-128 per pair and nobody outside can aim for one. Refuses everything RFC 8259 does not
 * allow, and says at which byte, never what stood there.
 */
#include "config.h"

#include "tec/base/jsonscan.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"

#define DEPTH_MAX   256
#define NAMES_START 64 /* slots without allocation: enough for a request body */

const struct json_limits json_limits_public = {.bytes = 16384, .depth = 8, .tokens = 256};
const struct json_limits json_limits_object = {.bytes = 2097152, .depth = 64, .tokens = 200000};
const struct json_limits json_limits_api = {
	.bytes = 2097152, .depth = 64, .tokens = 200000, .nul = true};

struct name_hash {
	uint64_t a, b; /* both 0: free */
};

struct frame {
	uint32_t object; /* serial number of an object, 0: array */
};

struct scan {
	const char *text;
	size_t len, pos;
	const struct json_limits *limits;
	struct err *err;
	unsigned tokens;
	uint32_t n_objects;
	unsigned depth; /* open containers */
	struct frame stack[DEPTH_MAX];
	struct name_hash *names; /* `few`, or owned heap memory */
	size_t n_names, n_slots; /* slots: a power of two */
	struct name_hash few[NAMES_START];
};

static int refuse(struct scan *s, const char *what)
{
	return err_set(s->err, ERR_INVALID, "JSON: %s at byte %zu", what, s->pos);
}

static int peek(const struct scan *s)
{
	return s->pos < s->len ? (unsigned char)s->text[s->pos] : -1;
}

static void skip_blanks(struct scan *s)
{
	for (int c = peek(s); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek(s))
		s->pos++;
}

static int count_token(struct scan *s)
{
	if (++s->tokens > s->limits->tokens)
		return refuse(s, "too many values");
	return 0;
}

/* Four hex digits behind a "\u" at pos; -1 without setting an error. */
static long hex4(const struct scan *s, size_t pos)
{
	long v = 0;

	if (s->len - pos < 6 || s->text[pos] != '\\' || s->text[pos + 1] != 'u')
		return -1;
	for (size_t i = pos + 2; i < pos + 6; i++) {
		char c = s->text[i];

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

/* The escape at pos: its character, or -1 with the error set. Moves behind it. */
static long scan_escape(struct scan *s, bool nul)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p;
	long c, low;

	if (s->len - s->pos < 2)
		return refuse(s, "unfinished string");
	p = s->text[s->pos + 1] ? strchr(from, s->text[s->pos + 1]) : NULL;
	if (p) {
		s->pos += 2;
		return to[p - from];
	}
	c = hex4(s, s->pos);
	if (c < 0)
		return refuse(s, "unknown escape");
	if (c == 0 && !nul)
		return refuse(s, "\\u0000");
	if (c >= 0xdc00 && c <= 0xdfff)
		return refuse(s, "lone surrogate");
	if (c < 0xd800 || c > 0xdbff) {
		s->pos += 6;
		return c;
	}
	low = hex4(s, s->pos + 6);
	if (low < 0xdc00 || low > 0xdfff)
		return refuse(s, "lone surrogate");
	s->pos += 12;
	return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
}

/* Eight bytes at a time: (x - n) & ~x has a top bit where a byte of x is below n, up to 128; a byte
 * xored with what is looked for is below 1. */
const char *json_plain_run(const char *p, const char *end)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

	while (end - p >= 8) {
		uint64_t v, quote, back;

		memcpy(&v, p, 8);
		quote = v ^ (ones * '"');
		back = v ^ (ones * '\\');
		if ((((quote - ones) & ~quote) | ((back - ones) & ~back) |
			    ((v - ones * 0x20) & ~v)) &
			tops)
			break;
		p += 8;
	}
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

/* A string with its quotes; *escaped says whether it holds escapes, nul whether \u0000 may be one.
 */
static int scan_string(struct scan *s, bool nul, bool *escaped)
{
	*escaped = false;
	s->pos++;
	for (;;) {
		s->pos = (size_t)(json_plain_run(s->text + s->pos, s->text + s->len) - s->text);
		if (s->pos == s->len)
			return refuse(s, "unfinished string");
		if (s->text[s->pos] == '"')
			break;
		if (s->text[s->pos] != '\\')
			return refuse(s, "raw control byte in a string");
		*escaped = true;
		if (scan_escape(s, nul) < 0)
			return -1;
	}
	s->pos++;
	return 0;
}

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

static struct name_hash hash_name(const void *name, size_t len, uint32_t object)
{
	static unsigned char key[crypto_shorthash_siphashx24_KEYBYTES];
	static bool have_key;
	unsigned char mixed[sizeof(key)];
	struct name_hash h;

	if (!have_key) {
		if (sodium_init() < 0)
			DIE("libsodium has no random numbers");
		randombytes_buf(key, sizeof(key));
		have_key = true;
	}
	memcpy(mixed, key, sizeof(key));
	for (unsigned i = 0; i < 4; i++)
		mixed[i] ^= (unsigned char)(object >> 8 * i);
	_Static_assert(sizeof(h) == crypto_shorthash_siphashx24_BYTES, "two words");
	crypto_shorthash_siphashx24((unsigned char *)&h, name, len, mixed);
	if (h.a == 0 && h.b == 0)
		h.b = 1;
	return h;
}

/* The slot of h, or the free one where it belongs. */
static struct name_hash *slot_of(struct name_hash *names, size_t n_slots, struct name_hash h)
{
	size_t i = h.a & (n_slots - 1);

	while ((names[i].a || names[i].b) && (names[i].a != h.a || names[i].b != h.b))
		i = (i + 1) & (n_slots - 1);
	return &names[i];
}

static void grow_names(struct scan *s)
{
	size_t n_slots = s->n_slots * 2;
	struct name_hash *names = xcalloc(n_slots, sizeof(*names));

	for (size_t i = 0; i < s->n_slots; i++) {
		if (s->names[i].a || s->names[i].b)
			*slot_of(names, n_slots, s->names[i]) = s->names[i];
	}
	if (s->names != s->few)
		free(s->names);
	s->names = names;
	s->n_slots = n_slots;
}

/* The member name at pos; refuses one the object has already. */
static int scan_name(struct scan *s, uint32_t object)
{
	cleanup_free uint8_t *plain = NULL;
	size_t start = s->pos + 1, end, n = 0;
	struct name_hash h, *slot;
	bool escaped;

	if (peek(s) != '"')
		return refuse(s, "no member name");
	if (count_token(s) < 0 || scan_string(s, false, &escaped) < 0)
		return -1;
	end = s->pos - 1;
	if (!escaped) {
		h = hash_name(s->text + start, end - start, object);
	} else {
		plain = xmalloc(end - start); /* an escape is never shorter than its character */
		for (s->pos = start; s->pos < end;) {
			if (s->text[s->pos] == '\\')
				n += put_utf8(plain + n, scan_escape(s, false));
			else
				plain[n++] = (uint8_t)s->text[s->pos++];
		}
		s->pos = end + 1;
		h = hash_name(plain, n, object);
	}
	if (s->n_names >= s->n_slots / 2)
		grow_names(s);
	slot = slot_of(s->names, s->n_slots, h);
	if (slot->a || slot->b)
		return refuse(s, "duplicate name, ending");
	*slot = h;
	s->n_names++;
	skip_blanks(s);
	if (peek(s) != ':')
		return refuse(s, "no ':' behind a name");
	s->pos++;
	return 0;
}

static size_t scan_digits(struct scan *s)
{
	size_t start = s->pos;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->pos++;
	return s->pos - start;
}

static int scan_number(struct scan *s)
{
	size_t n;
	bool zero;

	if (peek(s) == '-')
		s->pos++;
	zero = peek(s) == '0';
	n = scan_digits(s);
	if (n == 0 || (zero && n > 1))
		return refuse(s, "bad number");
	if (peek(s) == '.') {
		s->pos++;
		if (scan_digits(s) == 0)
			return refuse(s, "bad number");
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->pos++;
		if (peek(s) == '+' || peek(s) == '-')
			s->pos++;
		if (scan_digits(s) == 0)
			return refuse(s, "bad number");
	}
	return 0;
}

static int scan_word(struct scan *s)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (s->len - s->pos >= n && memcmp(s->text + s->pos, words[i], n) == 0) {
			s->pos += n;
			return 0;
		}
	}
	return refuse(s, "no value");
}

/* Opens a container. `1` = it is still open and wants its first element, 0 = it was empty. */
static int open_container(struct scan *s, bool object)
{
	s->pos++;
	skip_blanks(s);
	if (peek(s) == (object ? '}' : ']')) {
		s->pos++;
		return 0;
	}
	if (s->depth + 1 >= s->limits->depth)
		return refuse(s, "nested too deep");
	s->stack[s->depth++].object = object ? ++s->n_objects : 0;
	return 1;
}

/* One value, or the opening of one. 1: a container was opened. */
static int scan_value(struct scan *s)
{
	int c = peek(s);
	bool escaped;

	if (count_token(s) < 0)
		return -1;
	if (c == '{' || c == '[')
		return open_container(s, c == '{');
	if (c == '"')
		return scan_string(s, s->limits->nul, &escaped);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s);
	return scan_word(s);
}

/* Behind a value: closes what ends here. 1: another element follows. */
static int scan_behind(struct scan *s)
{
	while (s->depth > 0) {
		bool object = s->stack[s->depth - 1].object != 0;

		skip_blanks(s);
		if (peek(s) == ',') {
			s->pos++;
			skip_blanks(s);
			return 1;
		}
		if (peek(s) != (object ? '}' : ']'))
			return refuse(s, "no ',' or end of a container");
		s->pos++;
		s->depth--;
	}
	return 0;
}

static int scan_document(struct scan *s)
{
	int more;

	skip_blanks(s);
	do {
		uint32_t object = s->depth > 0 ? s->stack[s->depth - 1].object : 0;

		if (object) {
			if (scan_name(s, object) < 0)
				return -1;
			skip_blanks(s);
		}
		more = scan_value(s);
		if (more == 0)
			more = scan_behind(s);
	} while (more > 0);
	if (more < 0)
		return -1;
	skip_blanks(s);
	return s->pos == s->len ? 0 : refuse(s, "something behind the value");
}

int json_scan(const char *text, size_t len, const struct json_limits *limits, struct err *err)
{
	struct scan s = {
		.text = text, .len = len, .limits = limits, .err = err, .n_slots = NAMES_START};
	int rc;

	if (limits->depth < 1 || limits->depth > DEPTH_MAX)
		DIE("JSON depth limit of %u", limits->depth);
	if (len > limits->bytes)
		return err_set(
			err, ERR_INVALID, "JSON: %zu bytes, more than %zu", len, limits->bytes);
	if (!bytes_valid_utf8(text, len))
		return err_set(err, ERR_INVALID, "JSON: no valid UTF-8");
	s.names = s.few;
	rc = scan_document(&s);
	if (s.names != s.few)
		free(s.names);
	return rc;
}
