/* SPDX-License-Identifier: MIT */
/* A hash table of sources, which are also linked from the most to the least recently used. Each
 * has a ring of counts, one for each ten minutes. */
#include "config.h"

#include "tec/srv/share.h"

#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/net/addr.h"

#define SLOT_MS 600000u
#define N_SLOTS 7 /* the current one and an hour */

struct source {
	uint8_t key[ADDR_SOURCE_LEN];
	uint64_t slot; /* last used, in SLOT_MS of boot time; n[slot % N_SLOTS] is its count */
	uint32_t n[N_SLOTS];
	struct table_link link;
	TAILQ_ENTRY(source) age;
};

struct srv_share {
	unsigned max;
	struct table sources;
	TAILQ_HEAD(source_ages, source) ages; /* the most recently used one first; owned */
};

struct srv_share *srv_share_new(unsigned max)
{
	struct srv_share *s = xcalloc(1, sizeof(*s));

	s->max = max;
	TAILQ_INIT(&s->ages);
	return s;
}

void srv_share_free(struct srv_share *s)
{
	struct source *o;

	if (!s)
		return;
	while ((o = TAILQ_FIRST(&s->ages))) {
		TAILQ_REMOVE(&s->ages, o, age);
		free(o);
	}
	table_fini(&s->sources);
	free(s);
}

/* An IPv6 address is cut to its /64: one host can use all of that network. */
static void make_key(const char *peer, uint8_t key[ADDR_SOURCE_LEN])
{
	struct err ignored = ERR_INIT;
	struct addr a;

	if (addr_parse(peer, &a, &ignored) < 0)
		addr_source(NULL, key);
	else
		addr_source((const struct sockaddr *)&a.ss, key);
}

static struct source *find(const struct srv_share *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct source *o;

	TABLE_WITH_HASH (o, link, &s->sources, table_hash(key, ADDR_SOURCE_LEN))
		if (memcmp(o->key, key, ADDR_SOURCE_LEN) == 0)
			return o;
	return NULL;
}

static uint64_t now_slot(void)
{
	return clock_boot_ms() / SLOT_MS;
}

/* Sum the slots of the last hour, backwards from the last one used; older slots hold outdated
 * counts. */
size_t srv_share_count(const struct srv_share *s, const char *peer)
{
	uint64_t now = now_slot();
	uint8_t key[ADDR_SOURCE_LEN];
	const struct source *o;
	size_t sum = 0;

	make_key(peer, key);
	o = find(s, key);
	for (uint64_t i = 0; o && i < N_SLOTS; i++)
		if (o->slot >= i && o->slot - i + N_SLOTS > now)
			sum += o->n[(o->slot - i) % N_SLOTS];
	return sum;
}

/* Find or create a source and mark it the most recently used. When the table is full, the least
 * recently used one is replaced. */
static struct source *get(struct srv_share *s, const uint8_t key[ADDR_SOURCE_LEN])
{
	struct source *o = find(s, key);

	if (o) {
		TAILQ_REMOVE(&s->ages, o, age);
	} else {
		o = s->sources.n < s->max ? NULL : TAILQ_LAST(&s->ages, source_ages);
		if (o) {
			TAILQ_REMOVE(&s->ages, o, age);
			table_remove(&s->sources, &o->link);
		} else {
			o = xmalloc(sizeof(*o));
		}
		memset(o, 0, sizeof(*o));
		memcpy(o->key, key, ADDR_SOURCE_LEN);
		o->slot = now_slot();
		table_add(&s->sources, &o->link, table_hash(key, ADDR_SOURCE_LEN));
	}
	TAILQ_INSERT_HEAD(&s->ages, o, age);
	return o;
}

/* Clear the slots between the last use and now: the ring still has counts from an hour ago in
 * them. */
void srv_share_add(struct srv_share *s, const char *peer)
{
	uint64_t now = now_slot();
	uint8_t key[ADDR_SOURCE_LEN];
	struct source *o;

	make_key(peer, key);
	o = get(s, key);
	if (now >= o->slot + N_SLOTS)
		memset(o->n, 0, sizeof(o->n));
	else
		for (uint64_t t = o->slot + 1; t <= now; t++)
			o->n[t % N_SLOTS] = 0;
	o->slot = now;
	o->n[now % N_SLOTS]++;
}

/* Taken from the last slot used, which may not be the one that it was added to; the sum is the
 * same. */
void srv_share_give_back(struct srv_share *s, const char *peer)
{
	uint8_t key[ADDR_SOURCE_LEN];
	struct source *o;

	make_key(peer, key);
	o = find(s, key);
	if (o && o->n[o->slot % N_SLOTS] > 0)
		o->n[o->slot % N_SLOTS]--;
}
