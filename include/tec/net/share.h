/* SPDX-License-Identifier: MIT */
/*
 * struct share: who holds the places of something bounded, such as the connections of a listener, and
 * who has to give one up when all are taken: the source (addr_source) that holds the most, of its
 * places the one idle for longest. No source is limited while there are free places; when there are
 * none, no source can keep another one out.
 *
 * A place is embedded in what takes it. All calls but share_new and share_free are O(1).
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
void share_active(struct share *s, struct share_place *p); /* something was done for it */
/*
 * The place to give up for one of this source; NULL: none is taken. *own: it is of that source
 * itself, as no other one holds more.
 */
struct share_place *share_victim(
	const struct share *s, const uint8_t newcomer[ADDR_SOURCE_LEN], bool *own);
/* The place to give up for any of them; NULL: none is taken. */
struct share_place *share_idlest(const struct share *s);
/* How many places a source holds, and the one idle for longest; NULL: none. */
struct share_place *share_held(
	const struct share *s, const uint8_t source[ADDR_SOURCE_LEN], size_t *n);

#endif
