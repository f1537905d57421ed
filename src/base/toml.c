/* SPDX-License-Identifier: MIT */
/*
 * One pass over the text; the current [table] is a borrowed pointer into the result. Whether a table
 * may still be extended is stored in the object itself (its user data), because TOML forbids what JSON
 * cannot represent: to define a table twice, or to extend an inline one. An unquoted scalar ends at
 * the first byte that no scalar may contain and is then checked as a whole, so that trailing data
 * after a number is detected.
 *
 * Names in comments such as "basic-string" are those of TOML's ABNF (toml.abnf of version 1.0.0).
 */
#include "config.h"

#include "tec/base/toml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/utf8.h"

#define TEXT_MAX  ((size_t)1 << 20)
#define DEPTH_MAX 64

struct toml {
	const char *p, *end;
	unsigned line, depth;
	struct err *err; /* borrowed; set once */
};

/* Set the error with the line number. The first error wins: helpers that return NULL are called in
 * chains. */
static int fail(struct toml *t, const char *what)
{
	if (err_is_set(t->err))
		return -1;
	return err_set(t->err, ERR_INVALID, "line %u: %s", t->line, what);
}

/* The same for a function that returns a pointer. */
static void *refuse(struct toml *t, const char *what)
{
	fail(t, what);
	return NULL;
}

/* Return the next byte, or -1 at the end. */
static int peek(const struct toml *t)
{
	return t->p < t->end ? (unsigned char)*t->p : -1;
}

static bool looking_at(const struct toml *t, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(t->end - t->p) >= n && memcmp(t->p, s, n) == 0;
}

/* ---- strings */

/* The digits after \u (4) or \U (8): escape-seq-char in the ABNF. Must be a Unicode scalar
 * value. */
static int unicode(struct toml *t, unsigned digits, struct strbuf *out)
{
	uint32_t c = 0;
	char utf8[4];

	for (unsigned i = 0; i < digits; i++) {
		int d = bytes_hex_digit(peek(t));

		if (d < 0)
			return fail(t, "an escape has too few hexadecimal digits");
		c = c << 4 | (unsigned)d;
		t->p++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return fail(t, "an escape is not a Unicode character");
	if (c == 0) /* TOML permits it, but no path or name can contain it */
		return fail(t, "a string has a NUL character");
	strbuf_add(out, utf8, utf8_put(utf8, c));
	return 0;
}

/* After a backslash at the end of a line (mlb-escaped-nl), skip blanks and line ends up to the next
 * character. */
static int skip_fold(struct toml *t)
{
	bool newline = false;

	for (; t->p < t->end; t->p++) {
		if (*t->p == '\n') {
			newline = true;
			t->line++;
		} else if (*t->p == '\r' && t->p + 1 < t->end && t->p[1] == '\n') {
			continue;
		} else if (*t->p != ' ' && *t->p != '\t') {
			break;
		}
	}
	return newline ? 0 : fail(t, "a backslash is followed by no valid escape");
}

/* Decode the escape after a backslash; multi: in a multi-line string, where a line end may follow
 * too. */
static int escape(struct toml *t, bool multi, struct strbuf *out)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	int c = peek(t);
	const char *at = c > 0 ? strchr(from, c) : NULL;

	if (at) {
		t->p++;
		strbuf_addc(out, to[at - from]);
		return 0;
	}
	if (c == 'u' || c == 'U') {
		t->p++;
		return unicode(t, c == 'u' ? 4 : 8, out);
	}
	if (multi && (c == ' ' || c == '\t' || c == '\r' || c == '\n'))
		return skip_fold(t);
	return fail(t, "a string has an unknown escape");
}

/* Append one byte of a string. Control characters other than tab are refused; in multi-line strings
 * CRLF becomes LF. */
static int plain_byte(struct toml *t, bool multi, struct strbuf *out)
{
	unsigned char c = (unsigned char)*t->p++;

	if (c == '\n' && multi)
		t->line++;
	else if (c == '\r' && multi && peek(t) == '\n')
		return 0; /* the LF that follows ends the line */
	else if ((c < 0x20 && c != '\t') || c == 0x7f)
		return fail(t, c == '\n' ? "a string does not end on its line"
					 : "a string has a control character");
	strbuf_addc(out, (char)c);
	return 0;
}

/* Handle a run of quotes inside a multi-line string. True: the string has ended. Up to two quotes
 * may precede the three that end it. */
static bool multi_end(struct toml *t, char quote, struct strbuf *out)
{
	size_t n = 0;

	while (t->p < t->end && *t->p == quote && n < 5) {
		n++;
		t->p++;
	}
	for (size_t i = 0; i < (n >= 3 ? n - 3 : n); i++)
		strbuf_addc(out, quote);
	return n >= 3;
}

/* Read any of the four kinds of string: basic or literal ('), each on one line or several (multi).
 * Literal strings have no escapes. A newline directly after the opening quotes is not part of the
 * string. */
static int read_string(struct toml *t, bool multi, struct strbuf *out)
{
	char quote = *t->p;
	unsigned line = t->line;

	t->p += multi ? 3 : 1;
	if (multi && looking_at(t, "\r\n"))
		t->p++;
	if (multi && peek(t) == '\n') {
		t->p++;
		t->line++;
	}
	while (t->p < t->end) {
		if (*t->p == quote && !multi) {
			t->p++;
			return 0;
		}
		if (*t->p == quote) {
			if (multi_end(t, quote, out))
				return 0;
		} else if (*t->p == '\\' && quote == '"') {
			t->p++;
			if (escape(t, multi, out) < 0)
				return -1;
		} else if (plain_byte(t, multi, out) < 0) {
			return -1;
		}
	}
	t->line = line; /* report where the string began */
	return fail(t, "unterminated string");
}

/* ---- dates and times */

/* True for any of TOML's four forms: offset date-time, local date-time, local date, local time. What a
 * local form lacks is added for clock_parse(). A leap second (60) is refused, as few readers accept it,
 * and so is the year 0. */
static bool is_time(const char *s)
{
	size_t len = strlen(s);
	bool date = s[2] != ':', time = !date || len > 10;
	cleanup_free char *full = NULL;
	int64_t us;

	if (date && len < 10)
		return false;
	full = xasprintf("%s%s%s", date ? "" : "2000-01-01T", s,
		!time                             ? "T00:00:00Z"
		: date && strpbrk(s + 10, "Zz+-") ? ""
						  : "Z");
	if (full[10] == ' ')
		full[10] = 'T';
	return clock_parse(full, &us) == 0 && full[17] != '6' && !str_starts(full, "0000");
}

/* ---- numbers */

/* Copy digits of a base, removing single underscores between them. False: no digits, or misplaced
 * underscores. */
static bool take_digits(const char **p, int base, struct strbuf *out)
{
	bool after_digit = false;

	for (;; (*p)++) {
		int d = bytes_hex_digit(**p);

		if (**p == '_') {
			if (!after_digit)
				return false;
			after_digit = false;
		} else if (d >= 0 && d < base) {
			strbuf_addc(out, **p);
			after_digit = true;
		} else {
			return after_digit;
		}
	}
}

/* TOML requires 64-bit signed integers; a larger one is an error, not a float. */
static struct json_object *integer(struct toml *t, const char *text, int base)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, base);
	if (errno || *end)
		return refuse(t, "an integer is beyond 64 bits");
	return json_object_new_int64(v);
}

/* An integer or float. Leading zeros are permitted after 0x, 0o and 0b only. inf and nan become strings
 * with their sign, and an overflow to infinity is refused, as JSON cannot represent them as numbers. */
static struct json_object *number(struct toml *t, const char *s)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int base = !str_starts(s, "0") ? 10
		   : s[1] == 'x'       ? 16
		   : s[1] == 'o'       ? 8
		   : s[1] == 'b'       ? 2
				       : 10;
	size_t sign = *s == '+' || *s == '-';
	bool is_float = false, ok;
	double v;

	if (base != 10) {
		s += 2;
		return take_digits(&s, base, &out) && !*s ? integer(t, out.data, base)
							  : refuse(t, "a number is malformed");
	}
	if (sign)
		strbuf_addc(&out, *s++);
	if (str_eq(s, "inf") || str_eq(s, "nan"))
		return json_object_new_string(s - sign); /* with its sign */
	ok = take_digits(&s, 10, &out);
	if (out.len > sign + 1 && out.data[sign] == '0')
		ok = false;
	if (ok && *s == '.') {
		is_float = true;
		strbuf_addc(&out, *s++);
		ok = take_digits(&s, 10, &out);
	}
	if (ok && (*s == 'e' || *s == 'E')) {
		is_float = true;
		strbuf_addc(&out, *s++);
		if (*s == '+' || *s == '-')
			strbuf_addc(&out, *s++);
		ok = take_digits(&s, 10, &out);
	}
	if (!ok || *s)
		return refuse(t, "a value is not a quoted string, number, date, true or false");
	if (!is_float)
		return integer(t, out.data, 10);
	v = strtod(out.data, NULL);
	return isfinite(v) ? json_object_new_double(v) : refuse(t, "a float is beyond 64 bits");
}

/* Bytes of bare keys and unquoted values: letters, digits, and some others. */
static bool is_word(int c, const char *others)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c > 0 && strchr(others, c));
}

/* Read an unquoted value. One of 96 bytes or more is refused: no sensible number is that long. */
static struct json_object *read_scalar(struct toml *t)
{
	const char *from = t->p;
	char s[96];
	size_t len;

	while (is_word(peek(t), "+-._:"))
		t->p++;
	/* One blank may separate a date from a time, in place of 'T'. */
	if (t->p - from == 10 && from[4] == '-' && t->end - t->p > 3 && *t->p == ' ' &&
		t->p[1] >= '0' && t->p[1] <= '9')
		for (t->p++; is_word(peek(t), "+-._:");)
			t->p++;
	len = (size_t)(t->p - from);
	if (len == 0 || len >= sizeof(s))
		return refuse(t, len ? "a number is too long" : "a value is missing");
	memcpy(s, from, len);
	s[len] = '\0';
	if (str_eq(s, "true") || str_eq(s, "false"))
		return json_object_new_boolean(s[0] == 't');
	if (len > 4 && (s[2] == ':' || s[4] == '-') && is_time(s))
		return json_object_new_string(s);
	return number(t, s);
}

/* ---- tables and arrays */

/*
 * How a table or array was created, which decides what may be added to it. TOML's rules by example:
 *   [a.b]      creates a implicitly: [a] may follow, once
 *   a.b = 1    creates a by a dotted key: a.c = 2 may follow in the same table, but [a] may not
 *   a = {b=1}  is complete: neither a.c = 2 nor [a.c] may follow
 *   [[a]]      appends to a list; a = [] is a static array, which [[a]] cannot extend
 */
enum made {
	MADE_IMPLICIT = 0, /* a of [a.b]: may be defined once */
	MADE_DEFINED = 1,  /* a of [a]: may get subtables, but not be defined again */
	MADE_DOTTED = 2,   /* a of a.b = 1: may get further dotted keys */
	MADE_FIXED = 3,    /* an inline table or static array: nothing may be added */
	MADE_LIST = 4,     /* a of [[a]]: may get further elements */
};

static enum made made_of(struct json_object *o)
{
	return (enum made)(uintptr_t)json_object_get_userdata(o);
}

static struct json_object *mark(struct json_object *o, enum made made)
{
	json_object_set_userdata(o, (void *)(uintptr_t)made, NULL);
	return o;
}

/* ---- blanks, comments, line ends */

static void skip_blanks(struct toml *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\t'))
		t->p++;
}

/* A comment extends to the end of its line. Control characters are refused in it as well. */
static int skip_comment(struct toml *t)
{
	if (peek(t) != '#')
		return 0;
	for (; t->p < t->end && *t->p != '\n'; t->p++) {
		unsigned char c = (unsigned char)*t->p;

		if (c == '\r' && t->p + 1 < t->end && t->p[1] == '\n')
			break;
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return fail(t, "a comment has a control character");
	}
	return 0;
}

/* Move past a line end (LF or CRLF). False: there is none. */
static bool take_newline(struct toml *t)
{
	if (looking_at(t, "\r\n"))
		t->p++;
	if (peek(t) != '\n')
		return false;
	t->p++;
	t->line++;
	return true;
}

/* Skip blanks, comments and line ends, which may separate the elements of an array. */
static int skip_lines(struct toml *t)
{
	do {
		skip_blanks(t);
		if (skip_comment(t) < 0)
			return -1;
	} while (take_newline(t));
	return 0;
}

/* ---- keys */

/* simple-key: one part of a dotted key, bare or quoted. A bare key of digits is a string, not a
 * number. */
static int key_part(struct toml *t, struct strbuf *out)
{
	int c = peek(t);

	strbuf_reset(out);
	if (c == '"' || c == '\'')
		return looking_at(t, c == '"' ? "\"\"\"" : "'''")
			       ? fail(t, "a key cannot be a multi-line string")
			       : read_string(t, false, out);
	while (is_word(peek(t), "_-"))
		strbuf_addc(out, *t->p++);
	return out->len ? 0 : fail(t, "a key is missing");
}

/* Descend one key part, creating a missing table. NULL: refused. In a header, [[a]] followed by
 * [a.b] refers to the last element of a. */
static struct json_object *enter(
	struct toml *t, struct json_object *at, const char *key, bool dotted)
{
	struct json_object *o = NULL;

	if (!json_object_object_get_ex(at, key, &o)) {
		o = mark(json_obj(), dotted ? MADE_DOTTED : MADE_IMPLICIT);
		json_add(at, key, o);
		return o;
	}
	if (!dotted && o && json_object_is_type(o, json_type_array) && made_of(o) == MADE_LIST)
		return json_object_array_get_idx(o, json_object_array_length(o) - 1);
	if (!o || !json_object_is_type(o, json_type_object) || made_of(o) == MADE_FIXED ||
		(dotted && made_of(o) != MADE_DOTTED && made_of(o) != MADE_IMPLICIT))
		return refuse(t, "duplicate key, or a table that cannot be extended");
	return dotted ? mark(o, MADE_DOTTED) : o;
}

/* For a.b.c, descend from `at` to b and return it, leaving c in out. NULL: refused. */
static struct json_object *dotted_key(
	struct toml *t, struct json_object *at, bool dotted, struct strbuf *out)
{
	unsigned depth = 0;

	for (;;) {
		skip_blanks(t);
		if (key_part(t, out) < 0)
			return NULL;
		skip_blanks(t);
		if (peek(t) != '.')
			return at;
		t->p++;
		if (++depth + t->depth > DEPTH_MAX)
			return refuse(t, "tables are nested too deeply");
		at = enter(t, at, strbuf_str(out), dotted);
		if (!at)
			return NULL;
	}
}

/* ---- values */

static struct json_object *value(struct toml *t);

/* Read the elements of an array. Types may be mixed (TOML 1.0), and a comma may follow the last
 * element. */
static int elements(struct toml *t, struct json_object *a)
{
	t->p++;
	for (;;) {
		struct json_object *v;

		if (skip_lines(t) < 0)
			return -1;
		if (peek(t) == ']')
			break;
		v = value(t);
		if (!v)
			return -1;
		json_push(a, v);
		if (skip_lines(t) < 0)
			return -1;
		if (peek(t) == ']')
			break;
		if (peek(t) != ',')
			return fail(t, "expected ',' or ']' in an array");
		t->p++;
	}
	t->p++;
	return 0;
}

/* Read "key = value" into a table, which is the current one or an inline table. */
static int key_value(struct toml *t, struct json_object *table)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	struct json_object *in = dotted_key(t, table, true, &key), *v;

	if (!in)
		return -1;
	if (peek(t) != '=')
		return fail(t, "missing '=' after a key");
	t->p++;
	skip_blanks(t);
	if (json_object_object_get_ex(in, strbuf_str(&key), NULL))
		return fail(t, "duplicate key");
	v = value(t);
	if (!v)
		return -1;
	json_add(in, strbuf_str(&key), v);
	return 0;
}

/* Read the members of an inline table. Unlike an array it must be on one line and has no trailing
 * comma. */
static int members(struct toml *t, struct json_object *table)
{
	t->p++;
	skip_blanks(t);
	if (peek(t) == '}') {
		t->p++;
		return 0;
	}
	for (;;) {
		if (key_value(t, table) < 0)
			return -1;
		skip_blanks(t);
		if (peek(t) == '}')
			break;
		if (peek(t) != ',')
			return fail(t, "expected ',' or '}' in an inline table");
		t->p++;
	}
	t->p++;
	return 0;
}

static struct json_object *value(struct toml *t)
{
	cleanup_json struct json_object *o = NULL;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	int c = peek(t), rc;

	if (c == '"' || c == '\'') {
		bool multi = looking_at(t, c == '"' ? "\"\"\"" : "\'\'\'");

		if (read_string(t, multi, &text) < 0)
			return NULL;
		return json_object_new_string_len(strbuf_str(&text), (int)text.len);
	}
	if (c != '[' && c != '{')
		return read_scalar(t);
	if (++t->depth > DEPTH_MAX)
		return refuse(t, "values are nested too deeply");
	o = mark(c == '[' ? json_arr() : json_obj(), MADE_DEFINED);
	rc = c == '[' ? elements(t, o) : members(t, o);
	t->depth--;
	mark(o, MADE_FIXED);
	return rc < 0 ? NULL : steal_ptr(&o);
}

/* ---- [table] and [[table]] */

/* Create the table of a header, or the next element of an array of tables. A table that exists only
 * through its subtables may be defined once. */
static struct json_object *define(
	struct toml *t, struct json_object *in, const char *key, bool list)
{
	struct json_object *o = NULL, *made;

	if (!json_object_object_get_ex(in, key, &o)) {
		made = mark(json_obj(), MADE_DEFINED);
		json_add(in, key, list ? json_push(mark(json_arr(), MADE_LIST), made) : made);
		return made;
	}
	if (list && o && made_of(o) == MADE_LIST) {
		made = mark(json_obj(), MADE_DEFINED);
		json_push(o, made);
		return made;
	}
	if (!list && o && json_object_is_type(o, json_type_object) && made_of(o) == MADE_IMPLICIT)
		return mark(o, MADE_DEFINED);
	return refuse(t, "duplicate table");
}

/* Read [table] or [[table]] and return the new current table. NULL: refused. */
static struct json_object *header(struct toml *t, struct json_object *root)
{
	cleanup_strbuf struct strbuf key = STRBUF_INIT;
	bool list = looking_at(t, "[[");
	struct json_object *in;

	t->p += list ? 2 : 1;
	in = dotted_key(t, root, false, &key);
	if (!in)
		return NULL;
	if (!looking_at(t, list ? "]]" : "]"))
		return refuse(t, "unterminated table name");
	t->p += list ? 2 : 1;
	return define(t, in, strbuf_str(&key), list);
}

/* Each line is a header, a key with its value, a comment or empty. */
static int document(struct toml *t, struct json_object *root)
{
	struct json_object *at = root;

	while (t->p < t->end) {
		int c;

		skip_blanks(t);
		c = peek(t);
		if (c == '[') {
			at = header(t, root);
			if (!at)
				return -1;
		} else if (c >= 0 && c != '#' && c != '\n' && c != '\r') {
			if (key_value(t, at) < 0)
				return -1;
		}
		/* Only blanks and a comment may follow. */
		skip_blanks(t);
		if (skip_comment(t) < 0)
			return -1;
		if (t->p < t->end && !take_newline(t))
			return fail(t, "trailing data after a value or table name");
	}
	return 0;
}

/* UTF-8 is checked once for the whole text, so the reader only looks at ASCII. */
struct json_object *toml_parse(const char *text, size_t len, struct err *err)
{
	struct toml t = {.p = text, .end = text + len, .line = 1, .err = err};
	cleanup_json struct json_object *root = mark(json_obj(), MADE_DEFINED);

	if (len > TEXT_MAX || !utf8_valid(text, len))
		return err_null(err, ERR_INVALID, "%s",
			len > TEXT_MAX ? "more than 1 MiB" : "not valid UTF-8");
	return document(&t, root) < 0 ? NULL : steal_ptr(&root);
}
