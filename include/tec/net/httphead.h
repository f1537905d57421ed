/* SPDX-License-Identifier: MIT */
/*
 * The framing guard's check of one request head (RFC 9112). It is strict, because the parser after it
 * is not. Pure: bytes in, verdict out; a fuzz target.
 */
#ifndef TEC_NET_HTTPHEAD_H
#define TEC_NET_HTTPHEAD_H

#include <stdbool.h>
#include <stddef.h>

struct httphead_limits {
	size_t head;    /* bytes of request line, fields and empty line; default 16 KiB */
	size_t body;    /* bytes of a body; default 16 KiB */
	unsigned lines; /* number of fields; default 64 */
	size_t line;    /* bytes of one field line; default 8,000 */
	size_t target;  /* bytes of the request target; default 2,048 */
	bool chunked;   /* accept chunked bodies: only where clients need them, as every further way
			   to delimit a body is an opportunity for request smuggling */
};

struct httphead {
	size_t head_len;   /* with the empty line */
	size_t target_off; /* of the request target's path, after scheme and host if it has them */
	size_t target_len;
	size_t fields_off; /* of the first field line */
	size_t body_len;   /* Content-Length, 0 if none */
	bool has_length;   /* a Content-Length was sent */
	bool chunked;      /* the body is chunked: its length is not known yet */
	bool http10;       /* otherwise HTTP/1.1 */
	bool expect_continue;
	bool keep_alive; /* as the client requests */
};

/*
 * `data` holds a complete head ending in CRLFCRLF. Returns 0 and fills *out, or the HTTP status to
 * refuse with: 400 (malformed, two lengths), 411 (Transfer-Encoding if limits->chunked is false), 413,
 * 414, 415 (form-urlencoded, Content-Encoding), 417, 431, 501 (unknown method or transfer coding),
 * 505.
 */
int httphead_check(
	const char *data, size_t len, const struct httphead_limits *limits, struct httphead *out);

#endif
