/* SPDX-License-Identifier: MIT */
/* A table of reference-counted strings. It releases its buckets with the last string, so that leak
 * checkers find nothing at exit. */
#include "config.h"

#include "tec/base/intern.h"

#include <assert.h>

#include "tec/base/mem.h"
#include "tec/base/table.h"

struct text {
	struct table_link link; /* link.owner: number of references */
	char s[];
};

static struct table texts;

/* Return the shared copy, so that equal strings have equal addresses. */
const char *intern_ref(const char *text)
{
	uint32_t hash;
	struct text *t;
	size_t len;

	if (!text)
		return NULL;
	len = strlen(text);
	hash = table_hash(text, len);
	TABLE_WITH_HASH (t, link, &texts, hash) {
		if (strcmp(t->s, text) == 0) {
			assert(t->link.owner < UINT32_MAX);
			t->link.owner++;
			return t->s;
		}
	}
	t = xmalloc(offsetof(struct text, s) + len + 1);
	memcpy(t->s, text, len + 1);
	t->link.owner = 1;
	table_add(&texts, &t->link, hash);
	return t->s;
}

/* The string is inside its struct, so the pointer alone leads to it. */
void intern_unref(const char *interned)
{
	struct text *t;

	if (!interned)
		return;
	t = container_of((char *)(uintptr_t)interned, struct text, s);
	assert(t->link.owner > 0);
	if (--t->link.owner > 0)
		return;
	table_remove(&texts, &t->link);
	free(t);
	if (texts.n == 0)
		table_fini(&texts);
}
