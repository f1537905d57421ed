/* SPDX-License-Identifier: MIT */
/*
 * Decode a chunked body (RFC 9112 section 7.1) as it arrives, in place: the content is never longer
 * than its encoding. It is strict because it determines where the next request begins: chunk
 * extensions and trailers, which no supported client sends, are refused. Pure: bytes in, bytes out; a
 * fuzz target.
 */
#ifndef TEC_NET_CHUNKS_H
#define TEC_NET_CHUNKS_H

#include <stddef.h>

enum chunks_state {
	CHUNKS_SIZE, /* in the hex digits of a chunk's size */
	CHUNKS_LINE, /* expects the LF of that line */
	CHUNKS_DATA, /* expects `left` bytes of content */
	CHUNKS_CR,   /* expects the CRLF after the content */
	CHUNKS_LF,
	CHUNKS_END_CR, /* after the chunk of size 0: expects the empty line that ends the body */
	CHUNKS_END_LF,
	CHUNKS_DONE,
};

/* All-zero is the initial state. */
struct chunks {
	enum chunks_state state;
	unsigned digits; /* number of size digits so far */
	size_t left;     /* bytes of the chunk still to come */
};

/*
 * Decode data[0..len) in place: consume *used bytes, up to the end of the body at most, and leave *got
 * bytes of content from data[0] on. Returns 0, with the progress in c->state, or the HTTP status to
 * refuse with: 400, or 413 for more than max bytes of content.
 */
int chunks_take(struct chunks *c, char *data, size_t len, size_t max, size_t *used, size_t *got);

#endif
