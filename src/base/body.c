/* SPDX-License-Identifier: MIT */
/*
 * The buffer grows by doubling into new memory, because realloc would leave an unwiped copy behind.
 */
#include "config.h"

#include "tec/base/body.h"

#include <assert.h>
#include <string.h>

#include "tec/base/mem.h"

/* Bytes of the allocation after the NUL are unknown here and are not wiped. */
struct body body_of_text(char *take_text)
{
	size_t len = strlen(take_text);

	return (struct body){.data = take_text, .len = len, .cap = len + 1};
}

/* The bytes stay in the arena; data only points to them, so the body cannot grow. */
struct body body_of_secret(struct secret *take_bytes)
{
	return (struct body){.data = (char *)secret_bytes(take_bytes),
		.len = secret_len(take_bytes),
		.secret = take_bytes};
}

struct body body_move(struct body *from)
{
	struct body b = *from;

	*from = (struct body)BODY_INIT;
	return b;
}

/* `expect` avoids copying: with a known Content-Length the first allocation is large enough. */
void body_add(struct body *b, const void *data, size_t len, size_t expect)
{
	size_t need = b->len + len + 1;

	assert(!b->secret);
	if (need > b->cap) {
		struct body n = {.len = b->len, .cap = b->cap ? b->cap * 2 : 1024};

		if (n.cap < need)
			n.cap = need;
		if (n.cap < expect + 1)
			n.cap = expect + 1;
		n.data = xmalloc(n.cap);
		if (b->len)
			memcpy(n.data, b->data, b->len);
		body_fini(b);
		*b = n;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

/* Wipe the whole capacity, not just len: a shortened body may have left bytes after its end. */
void body_fini(struct body *b)
{
	if (b->secret) {
		secret_free(b->secret);
	} else if (b->data) {
		secret_wipe(b->data, b->cap);
		free(b->data);
	}
	*b = (struct body)BODY_INIT;
}
