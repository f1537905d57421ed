/* SPDX-License-Identifier: MIT */
/*
 * struct body: the bytes of a request or of an answer, which may hold key material: whatever memory
 * it gives up, also while it grows, is wiped first. One owner; it is handed down by body_move() and
 * never copied. BODY_INIT is the empty one.
 */
#ifndef TEC_BASE_BODY_H
#define TEC_BASE_BODY_H

#include <stddef.h>

#include "tec/base/secret.h"

struct body {
	char *data; /* owned, by `secret` when that is set; NULL: none */
	size_t len, cap;
	struct secret *secret;
};
#define BODY_INIT                                                                                  \
	{                                                                                          \
		NULL, 0, 0, NULL                                                                   \
	}

struct body body_of_text(char *take_text); /* of a NUL-terminated string on the heap */
struct body body_of_secret(struct secret *take_bytes);
struct body body_move(struct body *from); /* leaves it empty */
/* Appends and keeps a NUL byte behind the end; not to the body of a secret. `expect`: the length
 * that will be needed in the end, 0 when that is unknown. */
void body_add(struct body *b, const void *data, size_t len, size_t expect);
void body_fini(struct body *b);

#endif
