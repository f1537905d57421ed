/* SPDX-License-Identifier: MIT */
/*
 * Causes and their text. People and programs match these words, so values are written exactly as
 * Go writes them: %q for a string, %v for a number, encoding/json for the rest.
 */
#include "config.h"

#include "tec/schema/cause.h"

#include <math.h>
#include <stdio.h>

#include "tec/base/json.h"

static const struct {
	const char *reason, *text;
} problems[] = {
	[SCHEMA_INVALID] = {"FieldValueInvalid", "Invalid value"},
	[SCHEMA_TYPE_INVALID] = {"FieldValueTypeInvalid", "Invalid value"},
	[SCHEMA_REQUIRED] = {"FieldValueRequired", "Required value"},
	[SCHEMA_DUPLICATE] = {"FieldValueDuplicate", "Duplicate value"},
	[SCHEMA_NOT_FOUND] = {"FieldValueNotFound", "Not found"},
	[SCHEMA_UNSUPPORTED] = {"FieldValueNotSupported", "Unsupported value"},
	[SCHEMA_FORBIDDEN] = {"FieldValueForbidden", "Forbidden"},
	[SCHEMA_TOO_LONG] = {"FieldValueTooLong", "Too long"},
	[SCHEMA_TOO_MANY] = {"FieldValueTooMany", "Too many"},
};

/* ---- Go's ways to write a value */

/* Decodes one code point of valid UTF-8; an invalid byte is -1, of length 1. */
static int32_t rune_at(const unsigned char *s, size_t len, size_t *n)
{
	size_t want = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	int32_t r = s[0];

	*n = 1;
	if (want == 1)
		return r;
	if (want == 0 || want > len || s[0] > 0xf4)
		return -1;
	r &= 0x7f >> want;
	for (size_t i = 1; i < want; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return -1;
		r = r << 6 | (s[i] & 0x3f);
	}
	*n = want;
	return r;
}

/* unicode.IsPrint() beyond ASCII, but for code points that are not assigned. */
static bool is_print(int32_t r)
{
	static const int32_t not [][2] = {{0x80, 0xa0}, {0xad, 0xad}, {0x600, 0x605},
		{0x61c, 0x61c}, {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200f},
		{0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000}, {0xd800, 0xf8ff},
		{0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff},
		{0xf0000, 0x10ffff}};

	for (size_t i = 0; i < ARRAY_LEN(not ); i++)
		if (r >= not [i][0] && r <= not [i][1])
			return false;
	return true;
}

static void quote_ascii(struct strbuf *out, unsigned char c)
{
	static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
	const char *at = c ? strchr(from, c) : NULL;

	if (at)
		strbuf_addf(out, "\\%c", to[at - from]);
	else if (c < ' ' || c == 0x7f)
		strbuf_addf(out, "\\x%02x", c);
	else
		strbuf_addc(out, (char)c);
}

void schema_quote_go(struct strbuf *out, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	strbuf_addc(out, '"');
	for (size_t i = 0, n; i < len; i += n) {
		int32_t r = rune_at(p + i, len - i, &n);

		if (r < 0)
			strbuf_addf(out, "\\x%02x", p[i]);
		else if (r < 0x80)
			quote_ascii(out, (unsigned char)r);
		else if (is_print(r))
			strbuf_add(out, s + i, n);
		else
			strbuf_addf(out, r < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)r);
	}
	strbuf_addc(out, '"');
}

/*
 * The shortest digits that read back as v. %v takes an exponent below 1e-4 and from 1e21 on;
 * encoding/json below 1e-6, and writes it without a leading zero. Whole digits beyond 64 bits are not
 * left to stand as JSON, other than there: they would be read again as the largest integer.
 */
static void add_double(struct strbuf *out, double v, bool json)
{
	char digits[40], *e;
	int precision = 0, exponent, decimals;

	do
		snprintf(digits, sizeof(digits), "%.*e", precision, v);
	while (strtod(digits, NULL) != v && ++precision < 17);
	e = strchr(digits, 'e');
	if (!e) { /* inf, nan: JSON has neither */
		strbuf_adds(out, digits);
		return;
	}
	exponent = atoi(e + 1);
	if (v != 0 && (exponent < (json ? -6 : -4) || exponent >= 21 ||
			      (json && (v >= 0x1p64 || v < -0x1p63)))) {
		*e = '\0';
		strbuf_addf(out, json && exponent < 0 ? "%se%d" : "%se%+03d", digits, exponent);
		return;
	}
	decimals = precision - exponent;
	strbuf_addf(out, "%.*f", decimals > 0 ? decimals : 0, v);
}

static void add_int(struct strbuf *out, struct json_object *v, bool json)
{
	uint64_t u = json_object_get_uint64(v);

	if (u > INT64_MAX)
		add_double(out, (double)u, json);
	else
		strbuf_addf(out, "%lld", (long long)json_object_get_int64(v));
}

static void json_string(struct strbuf *out, const char *s, size_t len)
{
	strbuf_addc(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		static const char from[] = "\b\f\n\r\t\\\"", to[] = "bfnrt\\\"";
		const char *at = c ? strchr(from, c) : NULL;

		if (at)
			strbuf_addf(out, "\\%c", to[at - from]);
		else if (c < ' ' || c == '<' || c == '>' || c == '&')
			strbuf_addf(out, "\\u%04x", c);
		else if (len - i >= 3 && memcmp(s + i, "\xe2\x80", 2) == 0 &&
			 ((unsigned char)s[i + 2] | 1) == 0xa9) {
			strbuf_addf(out, "\\u202%x", (unsigned char)s[i + 2] & 0xf);
			i += 2;
		} else
			strbuf_addc(out, (char)c);
	}
	strbuf_addc(out, '"');
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void json_members(struct strbuf *out, struct json_object *o)
{
	size_t n = (size_t)json_object_object_length(o), i = 0;
	cleanup_free const char **names = xcalloc(n + 1, sizeof(*names));

	json_object_object_foreach (o, name, v) {
		(void)v;
		names[i++] = name;
	}
	qsort(names, n, sizeof(*names), by_name);
	strbuf_addc(out, '{');
	for (i = 0; i < n; i++) {
		if (i)
			strbuf_addc(out, ',');
		json_string(out, names[i], strlen(names[i]));
		strbuf_addc(out, ':');
		schema_json_go(out, json_object_object_get(o, names[i]));
	}
	strbuf_addc(out, '}');
}

void schema_json_go(struct strbuf *out, struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_null:
		strbuf_adds(out, "null");
		break;
	case json_type_boolean:
		strbuf_adds(out, json_object_get_boolean(v) ? "true" : "false");
		break;
	case json_type_int:
		add_int(out, v, true);
		break;
	case json_type_double:
		add_double(out, json_object_get_double(v), true);
		break;
	case json_type_string:
		json_string(out, json_object_get_string(v), (size_t)json_object_get_string_len(v));
		break;
	case json_type_object:
		json_members(out, v);
		break;
	case json_type_array:
		strbuf_addc(out, '[');
		for (size_t i = 0; i < json_object_array_length(v); i++) {
			if (i)
				strbuf_addc(out, ',');
			schema_json_go(out, json_object_array_get_idx(v, i));
		}
		strbuf_addc(out, ']');
		break;
	}
}

static void add_value(struct strbuf *out, struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_int:
		add_int(out, v, false);
		break;
	case json_type_double:
		add_double(out, json_object_get_double(v), false);
		break;
	case json_type_string:
		schema_quote_go(
			out, json_object_get_string(v), (size_t)json_object_get_string_len(v));
		break;
	case json_type_null:
	case json_type_boolean:
	case json_type_object:
	case json_type_array:
		schema_json_go(out, v);
		break;
	}
}

/* ---- causes */

void schema_causes_fini(struct schema_causes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->cause[i].field);
		free(c->cause[i].message);
	}
	free(c->cause);
	*c = (struct schema_causes){NULL, 0, 0, false};
}

void schema_causes_cut(struct schema_causes *c, size_t n)
{
	while (c->n > n) {
		struct schema_cause *last = &c->cause[--c->n];

		c->bytes -= strlen(last->field) + strlen(last->message);
		free(last->field);
		free(last->message);
		c->cut = false;
	}
}

static bool is_full(struct schema_causes *c)
{
	if (c->n < SCHEMA_CAUSES_MAX && c->bytes < SCHEMA_CAUSES_BYTES)
		return false;
	c->cut = true;
	return true;
}

/* message: the problem and its value so far. */
static void PRINTF_LIKE(5, 0) add(struct schema_causes *c, enum schema_problem problem,
	const char *field, struct strbuf *message, const char *fmt, va_list ap)
{
	size_t before = message->len;

	strbuf_adds(message, ": ");
	strbuf_vaddf(message, fmt, ap);
	if (message->len == before + 2) { /* no detail: no colon */
		message->len = before;
		message->data[before] = '\0';
	}
	ARRAY_GROW(c->cause, c->n);
	c->cause[c->n++] = (struct schema_cause){.problem = problem,
		.reason = problems[problem].reason,
		.field = xstrdup(field && *field ? field : "<nil>"),
		.message = strbuf_steal(message)};
	c->bytes += strlen(c->cause[c->n - 1].message) + strlen(c->cause[c->n - 1].field);
}

static bool has_value(enum schema_problem p)
{
	return p != SCHEMA_REQUIRED && p != SCHEMA_FORBIDDEN && p != SCHEMA_TOO_LONG;
}

void schema_cause_add(struct schema_causes *c, enum schema_problem problem, const char *field,
	struct json_object *value, const char *fmt, ...)
{
	struct strbuf message = STRBUF_INIT;
	va_list ap;

	if (is_full(c))
		return;
	strbuf_adds(&message, problems[problem].text);
	if (value) {
		strbuf_adds(&message, ": ");
		add_value(&message, value);
	}
	va_start(ap, fmt);
	add(c, problem, field, &message, fmt, ap);
	va_end(ap);
}

void schema_cause_add_text(struct schema_causes *c, enum schema_problem problem, const char *field,
	const char *value, const char *fmt, ...)
{
	struct strbuf message = STRBUF_INIT;
	va_list ap;

	if (is_full(c))
		return;
	strbuf_adds(&message, problems[problem].text);
	if (has_value(problem)) {
		strbuf_adds(&message, ": ");
		schema_quote_go(&message, value, strlen(value));
	}
	va_start(ap, fmt);
	add(c, problem, field, &message, fmt, ap);
	va_end(ap);
}

void schema_cause_add_json(struct schema_causes *c, enum schema_problem problem, const char *field,
	const char *value, const char *fmt, ...)
{
	struct strbuf message = STRBUF_INIT;
	va_list ap;

	if (is_full(c))
		return;
	strbuf_addf(&message, "%s: %s", problems[problem].text, value);
	va_start(ap, fmt);
	add(c, problem, field, &message, fmt, ap);
	va_end(ap);
}

static bool seen_before(const struct schema_causes *c, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (str_eq(c->cause[i].field, c->cause[j].field) &&
			str_eq(c->cause[i].message, c->cause[j].message))
			return true;
	return false;
}

char *schema_causes_text(const struct schema_causes *c)
{
	struct strbuf b = STRBUF_INIT;
	cleanup_free char *all = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (!seen_before(c, i))
			strbuf_addf(&b, "%s%s: %s", n++ ? ", " : "", c->cause[i].field,
				c->cause[i].message);
	all = strbuf_steal(&b);
	return n > 1 ? xasprintf("[%s]", all) : steal_ptr(&all);
}

struct json_object *schema_causes_json(const struct schema_causes *c)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < c->n; i++) {
		struct json_object *o = json_obj();

		json_add_str(o, "reason", c->cause[i].reason);
		json_add_str(o, "message", c->cause[i].message);
		json_add_str(o, "field", c->cause[i].field);
		json_push(a, o);
	}
	return a;
}

/* ---- texts */

void schema_texts_fini(struct schema_texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->text[i]);
	free(t->text);
	*t = (struct schema_texts){NULL, 0, 0};
}

void schema_texts_add(struct schema_texts *t, const char *fmt, ...)
{
	struct strbuf b = STRBUF_INIT;
	va_list ap;

	if (t->n >= SCHEMA_CAUSES_MAX || t->bytes >= SCHEMA_CAUSES_BYTES)
		return;
	va_start(ap, fmt);
	strbuf_vaddf(&b, fmt, ap);
	va_end(ap);
	ARRAY_GROW(t->text, t->n);
	t->bytes += b.len;
	t->text[t->n++] = strbuf_steal(&b);
}

void schema_texts_sort(struct schema_texts *t)
{
	if (t->n)
		qsort(t->text, t->n, sizeof(*t->text), by_name);
}
