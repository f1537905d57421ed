/* SPDX-License-Identifier: MIT */
/*
 * struct share: fair sharing of a limited resource, such as the connections of a listener. It records
 * which source (addr_source) holds each place, and chooses the place to reclaim when all are taken:
 * the longest idle one of the source that holds the most. No source is limited while places are free,
 * and when none are, no source can exclude another.
 *
 * A place is embedded in the struct that occupies it. All calls except share_new and share_free are
 * O(1).
 */
#ifndef TEC_NET_SHARE_H
#define TEC_NET_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tec/net/addr.h"

struct share;
struct share_source;

struct share_place {
	struct share_source *source;   /* owned by the share */
	TAILQ_ENTRY(share_place) link; /* in its source */
	uint64_t active_ms;            /* boot clock */
};

struct share *share_new(void);
void share_free(struct share *s); /* asserts that no place is taken */
void share_join(struct share *s, struct share_place *p, const uint8_t source[ADDR_SOURCE_LEN]);
void share_leave(struct share *s, struct share_place *p);
void share_active(struct share *s, struct share_place *p); /* note activity: no longer idle */
/*
 * The place to reclaim for a newcomer of this source; NULL if none is taken. *own is set if the place
 * belongs to the same source, because no other source holds more.
 */
struct share_place *share_victim(
	const struct share *s, const uint8_t newcomer[ADDR_SOURCE_LEN], bool *own);
/* The place to reclaim when there is no newcomer; NULL if none is taken. */
struct share_place *share_idlest(const struct share *s);
/* The number of places a source holds, and its longest idle one; NULL if it holds none. */
struct share_place *share_held(
	const struct share *s, const uint8_t source[ADDR_SOURCE_LEN], size_t *n);

#endif
