/* SPDX-License-Identifier: MIT */
/* Each source has a ring of counts, one for each ten minutes. */
#include "config.h"

#include "tec/srv/share.h"

#include <stdint.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/net/addr.h"

#define SLOT_MS 600000u
#define N_SLOTS 7 /* the current one and an hour */

struct ring {
	uint64_t slot; /* last used, in SLOT_MS of boot time; n[slot % N_SLOTS] is its count */
	uint32_t n[N_SLOTS];
};

struct sources *srv_share_new(unsigned max)
{
	return sources_new(max, sizeof(struct ring));
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

/* Sum the slots of the last hour, backwards from the last one used; older slots hold outdated
 * counts. */
size_t srv_share_count(const struct sources *s, const char *peer)
{
	uint64_t now = clock_boot_ms() / SLOT_MS;
	uint8_t key[ADDR_SOURCE_LEN];
	const struct ring *ring;
	size_t sum = 0;

	make_key(peer, key);
	ring = sources_find(s, key);
	for (uint64_t i = 0; ring && i < N_SLOTS; i++)
		if (ring->slot >= i && ring->slot - i + N_SLOTS > now)
			sum += ring->n[(ring->slot - i) % N_SLOTS];
	return sum;
}

/* Clear the slots between the last use and now: the ring still has counts from an hour ago in
 * them. */
void srv_share_add(struct sources *s, const char *peer)
{
	uint64_t now = clock_boot_ms() / SLOT_MS;
	uint8_t key[ADDR_SOURCE_LEN];
	struct ring *ring;
	bool fresh;

	make_key(peer, key);
	ring = sources_use(s, key, &fresh);
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
void srv_share_give_back(struct sources *s, const char *peer)
{
	uint8_t key[ADDR_SOURCE_LEN];
	struct ring *ring;

	make_key(peer, key);
	ring = sources_find(s, key);
	if (ring && ring->n[ring->slot % N_SLOTS] > 0)
		ring->n[ring->slot % N_SLOTS]--;
}
