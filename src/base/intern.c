/* SPDX-License-Identifier: MIT */
/* A table of reference-counted bytes; those of a text include its NUL. It releases its buckets with the last string, so that leak
 * checkers find nothing at exit. */
#include "config.h"

#include "tec/base/intern.h"

#include <assert.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/table.h"

struct copy {
	struct table_link link; /* link.owner: number of references */
	uint32_t len;
	uint8_t bytes[];
};

static struct table copies;

/* Return the shared copy, so that equal bytes have equal addresses. */
const uint8_t *intern_ref_bytes(const void *bytes, size_t len)
{
	uint32_t hash = table_hash(bytes, len);
	struct copy *c;

	assert(len <= UINT32_MAX);
	TABLE_WITH_HASH (c, link, &copies, hash) {
		if (c->len == len && memcmp(c->bytes, bytes, len) == 0) {
			assert(c->link.owner < UINT32_MAX);
			c->link.owner++;
			return c->bytes;
		}
	}
	c = xmalloc(offsetof(struct copy, bytes) + len);
	memcpy(c->bytes, bytes, len);
	c->len = (uint32_t)len;
	c->link.owner = 1;
	table_add(&copies, &c->link, hash);
	return c->bytes;
}

const char *intern_ref(const char *text)
{
	return text ? (const char *)intern_ref_bytes(text, strlen(text) + 1) : NULL;
}

/* The copy is inside its struct, so the pointer alone leads to it. */
void intern_unref(const void *interned)
{
	struct copy *c;

	if (!interned)
		return;
	c = container_of((uint8_t *)(uintptr_t)interned, struct copy, bytes);
	assert(c->link.owner > 0);
	if (--c->link.owner > 0)
		return;
	table_remove(&copies, &c->link);
	free(c);
	if (copies.n == 0)
		table_fini(&copies);
}
