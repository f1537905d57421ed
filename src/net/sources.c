/* SPDX-License-Identifier: MIT */
/* A table of sources that are also linked from the most to the least recently used one. */
#include "config.h"

#include "tec/net/sources.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/mem.h"
#include "tec/base/table.h"

struct source {
	uint8_t key[ADDR_SOURCE_LEN];
	struct table_link link;
	TAILQ_ENTRY(source) age;
	_Alignas(uint64_t) unsigned char record[];
};

struct sources {
	uint32_t max;
	size_t record_size;
	struct table table;
	TAILQ_HEAD(source_ages, source) ages; /* the most recently used one first; owned */
};

struct sources *sources_new(uint32_t max, size_t record_size)
{
	struct sources *s = xcalloc(1, sizeof(*s));

	assert(max > 0);
	s->max = max;
	s->record_size = record_size;
	TAILQ_INIT(&s->ages);
	return s;
}

void sources_free(struct sources *s)
{
	struct source *o;

	if (!s)
		return;
	while ((o = TAILQ_FIRST(&s->ages))) {
		TAILQ_REMOVE(&s->ages, o, age);
		free(o);
	}
	table_fini(&s->table);
	free(s);
}

static struct source *find(
	const struct sources *s, const uint8_t key[ADDR_SOURCE_LEN], uint32_t hash)
{
	struct source *o;

	TABLE_WITH_HASH (o, link, &s->table, hash)
		if (memcmp(o->key, key, ADDR_SOURCE_LEN) == 0)
			return o;
	return NULL;
}

void *sources_find(const struct sources *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct source *o = find(s, key, table_hash(key, ADDR_SOURCE_LEN));

	return o ? o->record : NULL;
}

void *sources_use(struct sources *s, const uint8_t key[ADDR_SOURCE_LEN], bool *fresh)
{
	uint32_t hash = table_hash(key, ADDR_SOURCE_LEN);
	struct source *o = find(s, key, hash);

	*fresh = !o;
	if (!o && s->table.n == s->max) {
		o = TAILQ_LAST(&s->ages, source_ages);
		table_remove(&s->table, &o->link);
	}
	if (o)
		TAILQ_REMOVE(&s->ages, o, age);
	else
		o = xmalloc(sizeof(*o) + s->record_size);
	if (*fresh) {
		memset(o, 0, sizeof(*o) + s->record_size);
		memcpy(o->key, key, ADDR_SOURCE_LEN);
		table_add(&s->table, &o->link, hash);
	}
	TAILQ_INSERT_HEAD(&s->ages, o, age);
	return o->record;
}
