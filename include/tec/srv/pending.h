/* SPDX-License-Identifier: MIT */
/*
 * The limits on what unknown clients can make: counts of listener-made objects that nothing has
 * matched yet, kept by watching the caches, so a request costs O(1).
 *
 * A handler that is about to make an object takes a place first. The place counts until the object is in the
 * cache, not only until the API has answered: between the two, a crowd would pass every limit.
 * Places are counted by this process alone, so N listeners used at the same time may pass a limit
 * by what N - 1 of them have in progress.
 */
#ifndef TEC_SRV_PENDING_H
#define TEC_SRV_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/model/cluster.h"
#include "tec/state/state.h"

enum srv_limit {
	SRV_LIMIT_NONE,
	SRV_LIMIT_MACHINES,       /* pendingLimit, of Machines */
	SRV_LIMIT_ALL_MACHINES,   /* machineLimit */
	SRV_LIMIT_NEVER_ATTESTED, /* half of machineLimit */
	SRV_LIMIT_SHARE,          /* one source's part of pendingLimit */
	SRV_LIMIT_KEYS,           /* pendingLimit, of keys */
	SRV_LIMIT_WAITING_KEYS,   /* waitingKeysPerMachine */
	SRV_LIMIT_N,
};
const char *srv_limit_name(enum srv_limit l); /* for metrics and logs */
const char *srv_limit_text(enum srv_limit l); /* for the client */

struct srv_pending;
struct srv_place;
struct srv_pending *srv_pending_new(const struct state *state);
void srv_pending_free(struct srv_pending *p); /* after the caches' last change */

/* The limit that keeps peer (httpd_req_peer) from having a Machine made now. */
enum srv_limit srv_pending_machine_limit(
	struct srv_pending *p, const struct model_cluster *c, const char *peer);
/* NULL: *why says which limit. */
struct srv_place *srv_pending_take_machine(struct srv_pending *p, const struct model_cluster *c,
	const char *peer, const char *name, enum srv_limit *why);
/* machine: a Machine with this uuid exists or is about to be made. Its first key is taken whatever
 * else waits. uuid may be NULL. */
struct srv_place *srv_pending_take_key(struct srv_pending *p, const struct model_cluster *c,
	const char *name, const char *uuid, bool machine, enum srv_limit *why);
/* How a place ends. Kept: it counts until the cache shows the object, 10 s at most. made_uid: the
 * API said that it made the object, with this uid; NULL: it may have been made. */
void srv_place_keep(struct srv_place *take, const char *made_uid);
void srv_place_give_back(struct srv_place *take); /* it was not made */

/* A key of this name that this process has under way, or has made, and that the cache does not show
 * yet. */
enum srv_under_way { SRV_UNDER_WAY_NONE, SRV_UNDER_WAY_OPEN, SRV_UNDER_WAY_MADE };
/* *uuid (borrowed until the next call; "": none) of one that is made. */
enum srv_under_way srv_pending_key_under_way(
	struct srv_pending *p, const char *name, const char **uuid);

/* The uid of a Machine of this name that this process has made and that the cache does not show yet;
 * borrowed until the next call, NULL: there is none. */
const char *srv_pending_made_machine(struct srv_pending *p, const char *name);

/* Objects that a request of this process is making, or has made or may have made, and that the cache
 * does not show yet. */
size_t srv_pending_under_way(struct srv_pending *p);
size_t srv_pending_count(struct srv_pending *p); /* Machines and keys, places included */
/* Whether a refusal may be logged and reported in an Event: once a minute for each limit. *left_out:
 * how many were not since. */
bool srv_pending_may_tell(struct srv_pending *p, enum srv_limit l, unsigned *left_out);

#endif
