/* SPDX-License-Identifier: MIT */
/*
 * A chunked body (RFC 9112 7.1) as it comes, decoded where it lies: what was read is never longer than
 * what it is read from. Strict, because it says where the next request begins: chunk extensions and
 * trailers, which no client of ours sends, are refused. Pure: bytes in, bytes out; a fuzz target.
 */
#ifndef TEC_NET_CHUNKS_H
#define TEC_NET_CHUNKS_H

#include <stddef.h>

enum chunks_state {
	CHUNKS_SIZE, /* in the digits of a size */
	CHUNKS_LINE, /* the LF of that line is to come */
	CHUNKS_DATA, /* `left` bytes of a chunk are to come */
	CHUNKS_CR,   /* and the end of its line */
	CHUNKS_LF,
	CHUNKS_END_CR, /* the last chunk was there: the empty line that ends the body */
	CHUNKS_END_LF,
	CHUNKS_DONE,
};

/* All-zero is the beginning. */
struct chunks {
	enum chunks_state state;
	unsigned digits; /* of the size, so far */
	size_t left;     /* of the chunk */
};

/*
 * Reads data[0..len): *used bytes of it, the last of which is the last one of the body once it is
 * there, and leaves *got bytes of content in their place, from data[0] on. 0: as far as it goes, see
 * c->state; otherwise the HTTP status to refuse with: 400, or 413 for more than max bytes of content.
 */
int chunks_take(struct chunks *c, char *data, size_t len, size_t max, size_t *used, size_t *got);

#endif
