/* SPDX-License-Identifier: MIT */
/* Strict UTF-8, and the characters of it that a terminal must not receive from somebody else. */
#include "config.h"

#include "tec/base/utf8.h"

#include <string.h>

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

/* Almost all text is ASCII, so checking eight bytes at a time saves most of the work. */
static bool eight_are_ascii(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return !(v & 0x8080808080808080u);
}

/* Also the precondition of JSON and Kubernetes strings, so it runs on every body. */
bool utf8_valid(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0, n; i < len; i += n) {
		n = len - i >= 8 && eight_are_ascii(p + i) ? 8 : sequence(p + i, len - i);
		if (n == 0)
			return false;
	}
	return true;
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

/* C0 and C1 controls, Arabic letter mark, zero-width and directional marks, line and paragraph
 * separators, bidirectional embeddings and isolates, invisible operators, and the byte order
 * mark. */
bool utf8_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Protects the terminal of a user who prints text that someone else controls, such as a condition's
 * message. */
void utf8_escape(struct strbuf *out, const char *s, size_t len)
{
	for (size_t i = 0, n = 0; i < len; i += n) {
		uint32_t c = utf8_next(s + i, len - i, &n);

		if (c != '\n' && c != '\t' && (utf8_is_control(c) || c == 0xfffd))
			strbuf_addf(out, "\\u%04x", (unsigned)c);
		else
			strbuf_add(out, s + i, n);
	}
}
