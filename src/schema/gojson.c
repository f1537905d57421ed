/* SPDX-License-Identifier: MIT */
/*
 * A scanner without recursion: what is open stands on a stack of one byte for each level, up to the
 * depth that Go allows. Nothing is kept of what it reads.
 */
#include "config.h"

#include "gojson.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#define DEPTH_MAX  10000
#define NUMBER_MAX 256 /* of one that is too large, in the text */

struct scan {
	const char *s;
	size_t len, at;
	struct strbuf *why, *huge; /* huge: the first number beyond float64 */
};

/* quoteChar() of encoding/json: the byte as a code point. */
static void add_char(struct strbuf *out, unsigned char c)
{
	const char utf8[] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))};
	cleanup_strbuf struct strbuf quoted = STRBUF_INIT;

	if (c == '\'' || c == '"') {
		strbuf_adds(out, c == '"' ? "'\"'" : "'\\''");
		return;
	}
	if (c < 0x80)
		schema_quote_go(&quoted, (const char *)&c, 1);
	else
		schema_quote_go(&quoted, utf8, sizeof(utf8));
	strbuf_addc(out, '\'');
	strbuf_add(out, quoted.data + 1, quoted.len - 2);
	strbuf_addc(out, '\'');
}

/* The character that is next does not fit; false, for the caller to return. */
static bool unfit(struct scan *p, const char *where)
{
	if (p->at >= p->len) {
		strbuf_adds(p->why, "unexpected end of JSON input");
		return false;
	}
	strbuf_adds(p->why, "invalid character ");
	add_char(p->why, (unsigned char)p->s[p->at]);
	strbuf_addf(p->why, " %s", where);
	return false;
}

/* The next character, a space at the end. */
static char peek(const struct scan *p)
{
	return p->at < p->len ? p->s[p->at] : ' ';
}

static void skip_space(struct scan *p)
{
	while (p->at < p->len && p->s[p->at] && strchr(" \t\r\n", p->s[p->at]))
		p->at++;
}

static bool escape(struct scan *p)
{
	char c = peek(p);

	if (!c || !strchr("bfnrt\\/\"u", c))
		return unfit(p, "in string escape code");
	p->at++;
	for (int i = 0; c == 'u' && i < 4; i++) {
		if (!isxdigit((unsigned char)peek(p)))
			return unfit(p, "in \\u hexadecimal character escape");
		p->at++;
	}
	return true;
}

static bool string(struct scan *p)
{
	for (p->at++; p->at < p->len;) {
		char c = p->s[p->at];

		if ((unsigned char)c < ' ')
			return unfit(p, "in string literal");
		p->at++;
		if (c == '"')
			return true;
		if (c == '\\' && !escape(p))
			return false;
	}
	return unfit(p, "");
}

static bool digits(struct scan *p, const char *where)
{
	if (!isdigit((unsigned char)peek(p)))
		return unfit(p, where);
	while (isdigit((unsigned char)peek(p)))
		p->at++;
	return true;
}

static bool number(struct scan *p)
{
	size_t begin = p->at;
	cleanup_free char *text = NULL;

	p->at += peek(p) == '-';
	if (peek(p) == '0')
		p->at++;
	else if (!digits(p, "in numeric literal"))
		return false;
	if (peek(p) == '.') {
		p->at++;
		if (!digits(p, "after decimal point in numeric literal"))
			return false;
	}
	if (peek(p) == 'e' || peek(p) == 'E') {
		p->at++;
		p->at += peek(p) == '+' || peek(p) == '-';
		if (!digits(p, "in exponent of numeric literal"))
			return false;
	}
	text = xstrndup(p->s + begin, p->at - begin);
	if (!p->huge->len && isinf(strtod(text, NULL)))
		strbuf_addf(p->huge, "%.*s", NUMBER_MAX, text);
	return true;
}

static bool word(struct scan *p, const char *w)
{
	for (size_t i = 1; w[i]; i++) {
		cleanup_free char *where = xasprintf("in literal %s (expecting '%c')", w, w[i]);

		p->at++;
		if (p->at >= p->len || p->s[p->at] != w[i])
			return unfit(p, where);
	}
	p->at++;
	return true;
}

/* A value that is neither an object nor an array. */
static bool scalar(struct scan *p)
{
	char c = peek(p);

	if (c == '"')
		return string(p);
	if (c == '-' || isdigit((unsigned char)c))
		return number(p);
	if (c == 't' || c == 'f' || c == 'n')
		return word(p, c == 't' ? "true" : c == 'f' ? "false" : "null");
	return unfit(p, "looking for beginning of value");
}

static bool key(struct scan *p)
{
	skip_space(p);
	if (p->at >= p->len || peek(p) != '"')
		return unfit(p, "looking for beginning of object key string");
	if (!string(p))
		return false;
	skip_space(p);
	if (p->at >= p->len || peek(p) != ':')
		return unfit(p, "after object key");
	p->at++;
	return true;
}

/* Into an object or an array; *value: a value comes next, and no end of it. */
static bool open(struct scan *p, struct strbuf *stack, bool *value)
{
	char c = p->s[p->at++];

	if (stack->len >= DEPTH_MAX) {
		strbuf_adds(p->why, "exceeded max depth");
		return false;
	}
	strbuf_addc(stack, c);
	skip_space(p);
	*value = p->at >= p->len || peek(p) != (c == '{' ? '}' : ']');
	return !*value || c == '[' || key(p);
}

/* After a value: out of what ends here, and on to the next value if there is one. */
static bool close(struct scan *p, struct strbuf *stack, bool *value)
{
	for (*value = false; stack->len > 0;) {
		bool object = stack->data[stack->len - 1] == '{';

		skip_space(p);
		if (p->at < p->len && peek(p) == ',') {
			p->at++;
			*value = true;
			return !object || key(p);
		}
		if (p->at >= p->len || peek(p) != (object ? '}' : ']'))
			return unfit(
				p, object ? "after object key:value pair" : "after array element");
		p->at++;
		stack->len--;
	}
	return true;
}

static bool document(struct scan *p)
{
	cleanup_strbuf struct strbuf stack = STRBUF_INIT;
	bool value = true;

	while (value) {
		skip_space(p);
		if (p->at < p->len && (peek(p) == '{' || peek(p) == '[')) {
			if (!open(p, &stack, &value))
				return false;
			if (value)
				continue;
		} else if (!scalar(p)) {
			return false;
		}
		if (!close(p, &stack, &value))
			return false;
	}
	skip_space(p);
	return p->at >= p->len || unfit(p, "after top-level value");
}

bool gojson_is_map(const char *s, size_t len, struct strbuf *why)
{
	cleanup_strbuf struct strbuf huge = STRBUF_INIT;
	struct scan p = {s, len, 0, why, &huge};
	char first;

	if (!document(&p))
		return false;
	p.at = 0;
	skip_space(&p);
	first = peek(&p);
	if (first == '{' && huge.len)
		strbuf_addf(why, "json: cannot unmarshal number %s into Go value of type float64",
			strbuf_str(&huge));
	else if (first != '{' && first != 'n')
		strbuf_addf(why,
			"json: cannot unmarshal %s into Go value of type map[string]interface {}",
			first == '['                   ? "array"
			: first == '"'                 ? "string"
			: first == 't' || first == 'f' ? "bool"
						       : "number");
	return why->len == 0;
}
