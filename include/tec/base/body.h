/* SPDX-License-Identifier: MIT */
/*
 * struct body: the bytes of an HTTP request or response. They may hold key material, so memory is
 * wiped before it is released, also when the body grows. It has one owner, is passed on by
 * body_move() and is never copied. BODY_INIT is the empty body.
 */
#ifndef TEC_BASE_BODY_H
#define TEC_BASE_BODY_H

#include <stddef.h>

#include "tec/base/secret.h"

struct body {
	char *data; /* owned, or borrowed from `secret` if that is set; NULL: empty */
	size_t len, cap;
	struct secret *secret; /* owned; NULL: data is on the heap */
};
#define BODY_INIT                                                                                  \
	{                                                                                          \
		NULL, 0, 0, NULL                                                                   \
	}

struct body body_of_text(char *take_text); /* a NUL-terminated string on the heap */
struct body body_of_secret(struct secret *take_bytes);
struct body body_move(struct body *from); /* leaves *from empty */
/* Append and keep a NUL byte after the end; not for the body of a secret. `expect` is the final length
 * if it is known, otherwise 0. */
void body_add(struct body *b, const void *data, size_t len, size_t expect);
void body_fini(struct body *b);

#endif
