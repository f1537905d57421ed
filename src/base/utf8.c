/* SPDX-License-Identifier: MIT */
/* Strict UTF-8, and the characters of it that a terminal must not receive from somebody else. */
#include "config.h"

#include "tec/base/utf8.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/mem.h"

/* Return the length of the UTF-8 sequence at p, 0 if it is invalid. Table 3-7 of the Unicode
 * standard. */
static size_t sequence(const uint8_t *p, size_t left)
{
	uint8_t lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0; /* overlong */
	else if (p[0] == 0xed)
		hi = 0x9f; /* surrogates */
	else if (p[0] == 0xf0)
		lo = 0x90; /* overlong */
	else if (p[0] == 0xf4)
		hi = 0x8f; /* above U+10FFFF */
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

/* Also the precondition of JSON and Kubernetes strings, so it runs on every body. Almost all text is
 * ASCII, so checking eight bytes at a time saves most of the work. */
bool utf8_valid(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0, n; i < len; i += n) {
		uint64_t eight = UINT64_MAX;

		if (len - i >= sizeof(eight))
			memcpy(&eight, p + i, sizeof(eight));
		n = eight & 0x8080808080808080u ? sequence(p + i, len - i) : sizeof(eight);
		if (n == 0)
			return false;
	}
	return true;
}

void utf8_fit(struct strbuf *text, size_t max)
{
	if (!utf8_valid(strbuf_str(text), text->len))
		for (size_t i = 0; i < text->len; i++)
			if ((unsigned char)text->data[i] >= 0x80)
				text->data[i] = '?';
	if (text->len <= max)
		return;
	while (max && ((unsigned char)text->data[max] & 0xc0) == 0x80)
		max--;
	text->len = max;
	text->data[max] = '\0';
}

/* The length follows from the first byte; utf8_valid() then rejects overlong forms and
 * surrogates. */
uint32_t utf8_next(const char *p, size_t left, size_t *n)
{
	uint32_t c = (unsigned char)p[0];

	*n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (*n > left || !utf8_valid(p, *n)) {
		*n = 1;
		return 0xfffd;
	}
	if (*n == 1)
		return c;
	c &= 0x3fu >> (*n - 1);
	for (size_t i = 1; i < *n; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3fu);
	return c;
}

/* The first byte begins with as many ones as the character has bytes, and a zero. */
size_t utf8_put(char out[4], uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(n == 1 ? c : 0xf00u >> n | c);
	return n;
}

bool utf8_is_control(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{0x7f, 0x9f},       /* DEL and C1 */
		{0xad, 0xad},       /* soft hyphen */
		{0x61c, 0x61c},     /* Arabic letter mark */
		{0x180e, 0x180e},   /* Mongolian vowel separator */
		{0x200b, 0x200f},   /* zero-width characters and directional marks */
		{0x2028, 0x202e},   /* line and paragraph separators, embeddings and overrides */
		{0x2060, 0x206f},   /* invisible operators and isolates */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff9, 0xfffb},   /* interlinear annotation */
		{0xe0000, 0xe007f}, /* tags: an invisible copy of ASCII */
	};

	if (c < 0x7f)
		return c < 0x20;
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return false;
}

/* A character outside the BMP takes two escapes, a surrogate pair, as in JSON. */
size_t utf8_put_escape(char out[UTF8_ESCAPE_LEN], uint32_t c)
{
	if (c < 0x10000)
		return (size_t)snprintf(out, UTF8_ESCAPE_LEN, "\\u%04x", (unsigned)c);
	c -= 0x10000;
	return (size_t)snprintf(out, UTF8_ESCAPE_LEN, "\\u%04x\\u%04x",
		0xd800 | (unsigned)(c >> 10), 0xdc00 | (unsigned)(c & 0x3ff));
}

/* Protects the terminal of a user who prints text that someone else controls, such as a condition's
 * message. */
void utf8_escape(struct strbuf *out, const char *s, size_t len)
{
	for (size_t i = 0, n = 0; i < len; i += n) {
		uint32_t c = utf8_next(s + i, len - i, &n);
		char escape[UTF8_ESCAPE_LEN];

		if (c != '\n' && c != '\t' && (utf8_is_control(c) || c == 0xfffd))
			strbuf_add(out, escape, utf8_put_escape(escape, c));
		else
			strbuf_add(out, s + i, n);
	}
}
