/* SPDX-License-Identifier: MIT */
/* Each source has a ring of counts, one for each ten minutes. */
#include "config.h"

#include "tec/srv/share.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/net/addr.h"
#include "tec/net/sources.h"

#define SLOT_MS 600000u
#define N_SLOTS 7 /* the current one and an hour */

struct ring {
	uint64_t slot; /* last used, in SLOT_MS of boot time; n[slot % N_SLOTS] is its count */
	uint32_t n[N_SLOTS];
};

struct srv_share {
	struct sources *rings; /* owned */
};

struct srv_share *srv_share_new(unsigned max)
{
	struct srv_share *s = xcalloc(1, sizeof(*s));

	s->rings = sources_new(max, sizeof(struct ring));
	return s;
}

void srv_share_free(struct srv_share *s)
{
	if (!s)
		return;
	sources_free(s->rings);
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
	const struct ring *ring;
	size_t sum = 0;

	make_key(peer, key);
	ring = sources_find(s->rings, key);
	for (uint64_t i = 0; ring && i < N_SLOTS; i++)
		if (ring->slot >= i && ring->slot - i + N_SLOTS > now)
			sum += ring->n[(ring->slot - i) % N_SLOTS];
	return sum;
}

/* Clear the slots between the last use and now: the ring still has counts from an hour ago in
 * them. */
void srv_share_add(struct srv_share *s, const char *peer)
{
	uint64_t now = now_slot();
	uint8_t key[ADDR_SOURCE_LEN];
	struct ring *ring;
	bool fresh;

	make_key(peer, key);
	ring = sources_use(s->rings, key, &fresh);
	if (fresh)
		ring->slot = now;
	if (now >= ring->slot + N_SLOTS)
		memset(ring->n, 0, sizeof(ring->n));
	else
		for (uint64_t t = ring->slot + 1; t <= now; t++)
			ring->n[t % N_SLOTS] = 0;
	ring->slot = now;
	ring->n[now % N_SLOTS]++;
}

/* Taken from the last slot used, which may not be the one that it was added to; the sum is the
 * same. */
void srv_share_give_back(struct srv_share *s, const char *peer)
{
	uint8_t key[ADDR_SOURCE_LEN];
	struct ring *ring;

	make_key(peer, key);
	ring = sources_find(s->rings, key);
	if (ring && ring->n[ring->slot % N_SLOTS] > 0)
		ring->n[ring->slot % N_SLOTS]--;
}
