/* SPDX-License-Identifier: MIT */
/*
 * A hash table of structs that embed a struct table_link. The table owns its buckets and never an
 * entry: its owner removes it before freeing it. It does not know keys: a lookup walks the entries
 * with one hash and compares them itself. Hashes are keyed with a random number of this process
 * (str_hash()), so that they cannot be made to collide from outside. 16 bytes per entry in the
 * entry, and 8 to 16 in the buckets; they double when there are as many entries, and do not shrink.
 *
 * An all-zero struct table is empty and ready. Out of memory aborts.
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
	uint32_t owner; /* for the owner's use: it would be padding otherwise */
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

/* The first entry with this hash, and the one after l with the same; NULL: none. */
struct table_link *table_first(const struct table *t, uint32_t hash);
struct table_link *table_same(const struct table_link *l);
/* The next entry of all after l, in no order; after NULL: the first. */
struct table_link *table_next(const struct table *t, const struct table_link *l);
/* The same of slice i of n, a power of two. An entry is in one slice, and stays there when the table
 * grows: who takes slice by slice, over any time, passes by every entry that is there throughout. */
struct table_link *table_next_in(
	const struct table *t, const struct table_link *l, uint32_t i, uint32_t n);

/*
 * struct entry *e;
 * TABLE_WITH_HASH (e, link, &t, hash)
 *         if (strcmp(e->key, key) == 0)
 *                 return e;
 * The body may remove and free e, and no other entry.
 */
#define TABLE_WITH_HASH(e, member, t, h)                                                           \
	for (struct table_link *e##_next_ = table_first(t, h), *e##_at_;                           \
		(e##_at_ = e##_next_) &&                                                           \
		(e##_next_ = table_same(e##_at_),                                                  \
		(e) = container_of(e##_at_, __typeof__(*(e)), member), true);)

/* Every entry; the body may remove and free e, and no other. */
#define TABLE_EACH(e, member, t)                                                                   \
	for (struct table_link *e##_next_ = table_next(t, NULL), *e##_at_;                         \
		(e##_at_ = e##_next_) &&                                                           \
		(e##_next_ = table_next(t, e##_at_),                                               \
		(e) = container_of(e##_at_, __typeof__(*(e)), member), true);)

/* Every entry of slice i of n; otherwise the same. */
#define TABLE_EACH_IN(e, member, t, i, n)                                                          \
	for (struct table_link *e##_next_ = table_next_in(t, NULL, i, n), *e##_at_;                \
		(e##_at_ = e##_next_) &&                                                           \
		(e##_next_ = table_next_in(t, e##_at_, i, n),                                      \
		(e) = container_of(e##_at_, __typeof__(*(e)), member), true);)

#endif
