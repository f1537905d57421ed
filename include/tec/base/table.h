/* SPDX-License-Identifier: MIT */
/*
 * An intrusive hash table of structs that embed a struct table_link. The table owns its buckets but
 * not the entries, whose owner removes them before freeing them. It does not know keys: a lookup
 * iterates over the entries with one hash and compares the keys itself. Hashes are keyed with a random
 * number per process (str_hash()), so that outsiders cannot cause collisions. An entry costs 16 bytes
 * in its struct and 8 to 16 in the buckets, whose number doubles when it equals that of the entries
 * and never shrinks.
 *
 * An all-zero struct table is empty and ready for use. Out of memory aborts.
 */
#ifndef TEC_BASE_TABLE_H
#define TEC_BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

struct table_link {
	struct table_link *next; /* in its bucket */
	uint32_t hash;
	uint32_t owner; /* free for the owner's use; otherwise it would be padding */
};

struct table {
	struct table_link **buckets; /* owned */
	uint32_t n_buckets;          /* a power of two, or 0 */
	uint32_t n;                  /* entries */
};

void table_fini(struct table *t); /* the entries stay with their owner */
void table_add(struct table *t, struct table_link *l, uint32_t hash);
void table_remove(struct table *t, struct table_link *l); /* l is in t */

static inline uint32_t table_hash(const void *key, size_t len)
{
	return (uint32_t)str_hash(key, len);
}

static inline uint32_t table_hash_str(const char *key)
{
	return table_hash(key, strlen(key));
}

/* The first entry with this hash, and the next one after l with the same hash; NULL: none. */
struct table_link *table_first(const struct table *t, uint32_t hash);
struct table_link *table_same(const struct table_link *l);
/* The next entry after l in slice i of n, in no particular order; the first if l is NULL. n is a power
 * of two, and 1 for all entries. An entry stays in its slice when the table grows, so a caller that
 * visits slice by slice, over any time, sees every entry that exists throughout. */
struct table_link *table_next(
	const struct table *t, const struct table_link *l, uint32_t i, uint32_t n);

#define TABLE_LOOP_(e, member, first, next)                                                        \
	for (struct table_link *e##_next_ = first, *e##_at_;                                       \
		(e##_at_ = e##_next_) &&                                                           \
		(e##_next_ = next, (e) = container_of(e##_at_, __typeof__(*(e)), member), true);)

/*
 * struct entry *e;
 * TABLE_WITH_HASH (e, link, &t, hash)
 *         if (strcmp(e->key, key) == 0)
 *                 return e;
 * The body may remove and free e, but no other entry.
 */
#define TABLE_WITH_HASH(e, member, t, h)                                                           \
	TABLE_LOOP_(e, member, table_first(t, h), table_same(e##_at_))

/* Iterate over every entry of slice i of n; the body may remove and free e, but no other. */
#define TABLE_EACH_IN(e, member, t, i, n)                                                          \
	TABLE_LOOP_(e, member, table_next(t, NULL, i, n), table_next(t, e##_at_, i, n))

/* Iterate over every entry, under the same rule. */
#define TABLE_EACH(e, member, t) TABLE_EACH_IN(e, member, t, 0, 1)

#endif
