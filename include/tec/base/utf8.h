/* SPDX-License-Identifier: MIT */
/* UTF-8 text: its validity, its characters, and how text of another program reaches a terminal. */
#ifndef TEC_BASE_UTF8_H
#define TEC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"

bool utf8_valid(const void *data, size_t len); /* strict: no overlong forms, no surrogates */
/* Decode the character at p, its length in *n; U+FFFD for a byte that is not UTF-8. left > 0. */
uint32_t utf8_next(const char *p, size_t left, size_t *n);
/* Encode a code point below 0x110000 that is not a surrogate; returns the length. */
size_t utf8_put(char out[4], uint32_t c);
/* Cut a text to max bytes at a character boundary. In a text that is not UTF-8, every non-ASCII byte
 * becomes '?'. */
void utf8_fit(struct strbuf *text, size_t max);
/* True if a terminal acts on the character or shows nothing for it: control characters, line
 * separators, bidirectional formatting and zero-width characters. */
bool utf8_is_control(uint32_t c);
#define UTF8_ESCAPE_LEN 13 /* two escapes and a NUL */
/* Write the character as \uXXXX; returns the length. */
size_t utf8_put_escape(char out[UTF8_ESCAPE_LEN], uint32_t c);
/* Append the text of another program for a terminal: such characters, and bytes that are not UTF-8,
 * become \uXXXX; newlines and tabs are kept. A JSON text keeps its value. */
void utf8_escape(struct strbuf *out, const char *s, size_t len);

#endif
