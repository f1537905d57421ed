/* SPDX-License-Identifier: MIT */
/*
 * The framing is read byte by byte, the content in runs. RFC 9112 section 7.1, without extensions and
 * trailers:
 *   chunked-body = *( size CRLF data CRLF ) "0" CRLF CRLF
 */
#include "config.h"

#include "tec/net/chunks.h"

#include <string.h>

#define DIGITS_MAX 8 /* including leading zeros: 4 GiB, far above any limit of a body */

/* Read one byte of framing. */
static int take_frame(struct chunks *c, char b, size_t max)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *digit;

	switch (c->state) {
	case CHUNKS_SIZE:
		/* The limit is checked when the size is complete, before any content. */
		if (b == '\r' && c->digits > 0) {
			c->state = CHUNKS_LINE;
			return c->left > max ? 413 : 0;
		}
		digit = b ? strchr(digits, b) : NULL;
		if (!digit)
			return 400;
		if (++c->digits > DIGITS_MAX)
			return 413;
		c->left = c->left * 16 + (size_t)(digit - digits) % 16;
		return 0;
	case CHUNKS_LINE:
		/* The chunk of size 0 is the last one. */
		c->state = c->left > 0 ? CHUNKS_DATA : CHUNKS_END_CR;
		return b == '\n' ? 0 : 400;
	case CHUNKS_CR:
		c->state = CHUNKS_LF;
		return b == '\r' ? 0 : 400;
	case CHUNKS_LF:
		*c = (struct chunks){.state = CHUNKS_SIZE};
		return b == '\n' ? 0 : 400;
	case CHUNKS_END_CR:
		c->state = CHUNKS_END_LF;
		return b == '\r' ? 0 : 400; /* anything else would be a trailer */
	case CHUNKS_END_LF:
		c->state = CHUNKS_DONE;
		return b == '\n' ? 0 : 400;
	case CHUNKS_DATA:
	case CHUNKS_DONE:
		break;
	}
	return 400;
}

/* Content moves to the front over the framing before it; max shrinks with what was already
 * decoded. */
int chunks_take(struct chunks *c, char *data, size_t len, size_t max, size_t *used, size_t *got)
{
	size_t at = 0, kept = 0;
	int status = 0;

	while (at < len && status == 0 && c->state != CHUNKS_DONE) {
		if (c->state == CHUNKS_DATA) {
			size_t n = c->left < len - at ? c->left : len - at;

			memmove(data + kept, data + at, n);
			kept += n;
			at += n;
			c->left -= n;
			c->state = c->left == 0 ? CHUNKS_CR : CHUNKS_DATA;
		} else {
			status = take_frame(c, data[at++], max - kept);
		}
	}
	*used = at;
	*got = kept;
	return status;
}
