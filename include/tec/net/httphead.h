/* SPDX-License-Identifier: MIT */
/*
 * The framing guard's check of one request head (RFC 9112): strict, because the parser after it is
 * not. Pure: bytes in, verdict out; a fuzz target.
 */
#ifndef TEC_NET_HTTPHEAD_H
#define TEC_NET_HTTPHEAD_H

#include <stdbool.h>
#include <stddef.h>

struct httphead_limits {
	size_t head;    /* bytes of request line and fields with the empty line: 16 KiB */
	size_t body;    /* largest Content-Length: 16 KiB */
	unsigned lines; /* fields: 64 */
	size_t line;    /* bytes of one field line: 8,000 */
	size_t target;  /* 2,048 */
	bool chunked;   /* a body may be chunked: only where clients need it, as each way to say
			   where a body ends is one more to disagree about */
};
extern const struct httphead_limits httphead_limits_default;

struct httphead {
	size_t head_len;   /* with the empty line */
	size_t target_off; /* of the request target's path, after scheme and host if it has them */
	size_t target_len;
	size_t fields_off; /* of the first field line */
	size_t body_len;   /* Content-Length, 0 if none */
	bool has_length;   /* there is a Content-Length */
	bool chunked;      /* there is a body, and how long it is follows from its chunks */
	bool http10;       /* otherwise HTTP/1.1 */
	bool expect_continue;
	bool keep_alive; /* what the client asks for */
};

/*
 * `data` holds a complete head ending in CRLFCRLF. Returns 0 and fills *out, or the HTTP status to
 * refuse with: 400 (malformed, two lengths), 411 (Transfer-Encoding where limits->chunked is not set), 413, 414, 415 (form-urlencoded,
 * Content-Encoding), 417, 431, 501 (unknown method or transfer coding), 505.
 */
int httphead_check(
	const char *data, size_t len, const struct httphead_limits *limits, struct httphead *out);

#endif
