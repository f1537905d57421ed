/* SPDX-License-Identifier: MIT */
/*
 * TOML's strings, numbers, dates and times. A scalar without quotes is cut at the first byte that
 * none of them has and then judged as a whole, so that nothing behind a number is left over.
 */
#include "config.h"

#include "toml_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tec/base/bytes.h"

/* ---- strings */

static void add_utf8(struct strbuf *out, unsigned long c)
{
	if (c < 0x80) {
		strbuf_addc(out, (char)c);
	} else if (c < 0x800) {
		strbuf_addc(out, (char)(0xc0 | c >> 6));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		strbuf_addc(out, (char)(0xe0 | c >> 12));
		strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		strbuf_addc(out, (char)(0xf0 | c >> 18));
		strbuf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		strbuf_addc(out, (char)(0x80 | (c & 0x3f)));
	}
}

static int hex_digit(int c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static int unicode(struct toml *t, unsigned digits, struct strbuf *out)
{
	unsigned long c = 0;

	for (unsigned i = 0; i < digits; i++) {
		int d = hex_digit(toml_peek(t));

		if (d < 0)
			return toml_fail(t, "an escape needs more hexadecimal digits");
		c = c << 4 | (unsigned)d;
		t->p++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return toml_fail(t, "an escape is not a Unicode character");
	if (c == 0) /* TOML allows it; no path and no name may have it */
		return toml_fail(t, "a text has a NUL character");
	add_utf8(out, c);
	return 0;
}

/* Behind a backslash at the end of a line: blanks and ends of lines do not count. */
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
	return newline ? 0 : toml_fail(t, "a backslash is not followed by an escape");
}

static int escape(struct toml *t, bool multi, struct strbuf *out)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	int c = toml_peek(t);
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
	return toml_fail(t, "a text has an unknown escape");
}

static int plain_byte(struct toml *t, bool multi, struct strbuf *out)
{
	unsigned char c = (unsigned char)*t->p++;

	if (c == '\n' && multi)
		t->line++;
	else if (c == '\r' && multi && toml_peek(t) == '\n')
		return 0; /* the next byte ends the line */
	else if ((c < 0x20 && c != '\t') || c == 0x7f)
		return toml_fail(t, c == '\n' ? "a text does not end on its line"
					      : "a text has a control character");
	strbuf_addc(out, (char)c);
	return 0;
}

/* At a run of quotes inside of a multi-line string. True: the string has ended. Up to two quotes
 * may stand before the three that end it. */
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

int toml_string(struct toml *t, bool multi, struct strbuf *out)
{
	char quote = *t->p;
	unsigned line = t->line;

	t->p += multi ? 3 : 1;
	if (multi && toml_looking_at(t, "\r\n"))
		t->p++;
	if (multi && toml_peek(t) == '\n') {
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
	t->line = line;
	return toml_fail(t, "a text does not end");
}

/* ---- dates and times */

static int digits(const char **p, unsigned n, unsigned min, unsigned max)
{
	unsigned v = 0;

	for (unsigned i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return -1;
		v = v * 10 + (unsigned)(**p - '0');
	}
	return v >= min && v <= max ? (int)v : -1;
}

static bool take_time(const char **p)
{
	if (digits(p, 2, 0, 23) < 0 || *(*p)++ != ':' || digits(p, 2, 0, 59) < 0 ||
		*(*p)++ != ':' || digits(p, 2, 0, 59) < 0)
		return false;
	if (**p != '.')
		return true;
	if ((*p)[1] < '0' || (*p)[1] > '9')
		return false;
	for ((*p)++; **p >= '0' && **p <= '9';)
		(*p)++;
	return true;
}

static bool take_date(const char **p)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int year = digits(p, 4, 1, 9999), month, day, leap;

	if (year < 0 || *(*p)++ != '-')
		return false;
	month = digits(p, 2, 1, 12);
	if (month < 0 || *(*p)++ != '-')
		return false;
	leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	day = digits(p, 2, 1, (unsigned)(days[month - 1] + leap));
	return day >= 0;
}

static bool is_time(const char *s)
{
	if (strlen(s) > 2 && s[2] == ':')
		return take_time(&s) && *s == '\0';
	if (!take_date(&s))
		return false;
	if (*s == '\0')
		return true;
	if (*s != 'T' && *s != 't' && *s != ' ')
		return false;
	s++;
	if (!take_time(&s))
		return false;
	if (*s == 'Z' || *s == 'z')
		s++;
	else if (*s == '+' || *s == '-') {
		s++;
		if (digits(&s, 2, 0, 23) < 0 || *s++ != ':' || digits(&s, 2, 0, 59) < 0)
			return false;
	}
	return *s == '\0';
}

/* ---- numbers */

/* Digits of a base with single underscores between them; the rest stays. False: none, or misplaced
 * underscores. */
static bool take_digits(const char **p, int base, struct strbuf *out)
{
	bool after_digit = false;

	for (;; (*p)++) {
		int d = hex_digit((unsigned char)**p);

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

static struct json_object *integer(struct toml *t, const char *text, int base)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, base);
	if (errno || *end) {
		toml_fail(t, "an integer is beyond 64 bits");
		return NULL;
	}
	return json_object_new_int64(v);
}

static struct json_object *real(struct toml *t, const char *text)
{
	double v = strtod(text, NULL);

	if (!isfinite(v)) {
		toml_fail(t, "a float is beyond 64 bits");
		return NULL;
	}
	return json_object_new_double(v);
}

static struct json_object *based(struct toml *t, const char *s, int base)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (!take_digits(&s, base, &out) || *s) {
		toml_fail(t, "a number is malformed");
		return NULL;
	}
	return integer(t, strbuf_str(&out), base);
}

static struct json_object *number(struct toml *t, const char *s)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	bool is_float = false, ok;
	size_t sign = *s == '+' || *s == '-';

	if (sign)
		strbuf_addc(&out, *s++);
	if (str_eq(s, "inf") || str_eq(s, "nan"))
		return json_object_new_string(s - sign);
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
	if (!ok || *s) {
		toml_fail(t, "a value is not a text in quotes, number, date, true or false");
		return NULL;
	}
	return is_float ? real(t, out.data) : integer(t, out.data, 10);
}

static bool is_scalar_byte(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c > 0 && strchr("+-._:", c));
}

struct json_object *toml_scalar(struct toml *t)
{
	const char *from = t->p;
	char s[96];
	size_t len;

	while (is_scalar_byte(toml_peek(t)))
		t->p++;
	/* One blank may stand between a date and a time. */
	if (t->p - from == 10 && from[4] == '-' && t->end - t->p > 3 && *t->p == ' ' &&
		t->p[1] >= '0' && t->p[1] <= '9')
		for (t->p++; is_scalar_byte(toml_peek(t));)
			t->p++;
	len = (size_t)(t->p - from);
	if (len == 0 || len >= sizeof(s)) {
		toml_fail(t, len ? "a number is too long" : "a value is missing");
		return NULL;
	}
	memcpy(s, from, len);
	s[len] = '\0';
	if (str_eq(s, "true") || str_eq(s, "false"))
		return json_object_new_boolean(s[0] == 't');
	if (len > 4 && (s[2] == ':' || s[4] == '-') && is_time(s))
		return json_object_new_string(s);
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'o' || s[1] == 'b'))
		return based(t, s + 2, s[1] == 'x' ? 16 : s[1] == 'o' ? 8 : 2);
	return number(t, s);
}
