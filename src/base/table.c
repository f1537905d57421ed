/* SPDX-License-Identifier: MIT */
/*
 * Chained buckets. uthash was evaluated and rejected: its 56 bytes per entry exceed the budget for
 * caches of ten thousand objects (tests/k8s/test_cache.c), and its hash functions are not keyed.
 *
 * The number of buckets is a power of two, and a bucket's index is the low bits of the hash. When it
 * doubles, the entries of bucket i go to i or i + n, so the slices of table_next() remain valid.
 */
#include "config.h"

#include "tec/base/table.h"

#define FIRST_N 16u

static struct table_link **bucket_of(const struct table *t, uint32_t hash)
{
	return &t->buckets[hash & (t->n_buckets - 1)];
}

/* Double the buckets and move every entry; an entry stores its hash, so no key is read. */
static void grow(struct table *t)
{
	struct table old = *t;

	if (old.n_buckets > UINT32_MAX / 2)
		DIE("table too large: %u entries", (unsigned)old.n);
	t->n_buckets = old.n_buckets ? old.n_buckets * 2 : FIRST_N;
	t->buckets = xcalloc(t->n_buckets, sizeof(struct table_link *));
	for (uint32_t i = 0; i < old.n_buckets; i++) {
		while (old.buckets[i]) {
			struct table_link *l = old.buckets[i], **b = bucket_of(t, l->hash);

			old.buckets[i] = l->next;
			l->next = *b;
			*b = l;
		}
	}
	free(old.buckets);
}

void table_fini(struct table *t)
{
	free(t->buckets);
	*t = (struct table){0};
}

/* Growing at one entry per bucket keeps lookups short. A duplicate key is not detected: the caller
 * looks first. */
void table_add(struct table *t, struct table_link *l, uint32_t hash)
{
	struct table_link **b;

	if (t->n == t->n_buckets)
		grow(t);
	b = bucket_of(t, hash);
	l->hash = hash;
	l->next = *b;
	*b = l;
	t->n++;
}

/* Search the bucket's chain, which has about one entry. An l that is not in the table would crash
 * here. */
void table_remove(struct table *t, struct table_link *l)
{
	struct table_link **pp = bucket_of(t, l->hash);

	while (*pp != l)
		pp = &(*pp)->next;
	*pp = l->next;
	t->n--;
}

/* Find the first entry with this hash from l on: a bucket also holds other hashes. */
static struct table_link *with_hash(struct table_link *l, uint32_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}

struct table_link *table_first(const struct table *t, uint32_t hash)
{
	return t->n ? with_hash(*bucket_of(t, hash), hash) : NULL;
}

struct table_link *table_same(const struct table_link *l)
{
	return with_hash(l->next, l->hash);
}

/* A slice is given by the low bits of a hash, as a bucket is. So slice i is every n-th bucket
 * starting at i, or, while the table has fewer than n buckets, a part of one bucket. */
struct table_link *table_next(
	const struct table *t, const struct table_link *l, uint32_t i, uint32_t n)
{
	uint32_t at = t->n_buckets ? (l ? l->hash : i) & (t->n_buckets - 1) : 0;
	struct table_link *next = l ? l->next : NULL;

	if (!l && at < t->n_buckets)
		next = t->buckets[at];
	for (;;) {
		while (next && (next->hash & (n - 1)) != i)
			next = next->next;
		at += n;
		if (next || at >= t->n_buckets)
			return next;
		next = t->buckets[at];
	}
}
