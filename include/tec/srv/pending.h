/* SPDX-License-Identifier: MIT */
/*
 * Limits on what unknown clients can create: counts of objects that listeners created and that
 * nothing has matched yet. They are updated on cache changes, so a request costs O(1).
 *
 * A handler takes a place before it creates an object. The place counts until the object is in
 * the cache, not only until the API has answered; otherwise a burst of requests in between would
 * pass every limit. Places are counted per process, so N listeners used at the same time may
 * exceed a limit by what N - 1 of them have in progress.
 */
#ifndef TEC_SRV_PENDING_H
#define TEC_SRV_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/model/cluster.h"
#include "tec/caches/caches.h"

enum srv_limit {
	SRV_LIMIT_NONE,
	SRV_LIMIT_MACHINES,       /* pendingLimit, for Machines */
	SRV_LIMIT_ALL_MACHINES,   /* machineLimit */
	SRV_LIMIT_NEVER_ATTESTED, /* half of machineLimit */
	SRV_LIMIT_SHARE,          /* one source address's share of pendingLimit */
	SRV_LIMIT_KEYS,           /* pendingLimit, for keys */
	SRV_LIMIT_WAITING_KEYS,   /* waitingKeysPerMachine */
	SRV_LIMIT_N,
};
extern const struct srv_limit_words {
	const char *name; /* for metrics and logs */
	const char *text; /* for the client */
} srv_limits[SRV_LIMIT_N];

struct srv_pending;
struct srv_place;
struct srv_pending *srv_pending_new(const struct caches *caches);
void srv_pending_free(struct srv_pending *p); /* after the caches' last change */

/* The limit that currently prevents a new Machine for peer (httpd_req_peer). */
enum srv_limit srv_pending_machine_limit(
	struct srv_pending *p, const struct model_cluster *c, const char *peer);
/* Takes a place for a Machine. NULL: *why is the limit that is reached. */
struct srv_place *srv_pending_take_machine(struct srv_pending *p, const struct model_cluster *c,
	const char *peer, const char *name, enum srv_limit *why);
/* Takes a place for a key. machine: a Machine with this uuid exists or is about to be created;
 * its first key is accepted regardless of pendingLimit. uuid may be NULL. */
struct srv_place *srv_pending_take_key(struct srv_pending *p, const struct model_cluster *c,
	const char *name, const char *uuid, bool machine, enum srv_limit *why);
/* End a place. Kept, it counts until the cache shows the object, at most 10 s. made_uid: the uid
 * of the object that the API created; NULL: it is unknown whether it was created. */
void srv_place_keep(struct srv_place *take, const char *made_uid);
void srv_place_give_back(struct srv_place *take); /* the object was not created */

/* Whether this process is creating (OPEN) or has created (MADE) a key of this name that the cache
 * does not show yet. */
enum srv_under_way { SRV_UNDER_WAY_NONE, SRV_UNDER_WAY_OPEN, SRV_UNDER_WAY_MADE };
/* *uuid: that of a created key ("": none), borrowed until the next call. */
enum srv_under_way srv_pending_key_under_way(
	struct srv_pending *p, const char *name, const char **uuid);

/* The uid of a Machine of this name that this process has created and that the cache does not
 * show yet. Borrowed until the next call; NULL: none. */
const char *srv_pending_made_machine(struct srv_pending *p, const char *name);

/* Counts the objects that this process is creating, has created or may have created, and that the
 * cache does not show yet. */
size_t srv_pending_under_way(struct srv_pending *p);
size_t srv_pending_count(struct srv_pending *p); /* Machines and keys, including places */
/* Whether a refusal may be logged and reported in an Event: once a minute for each limit.
 * *left_out: how many refusals went unreported since the last report. */
bool srv_pending_may_tell(struct srv_pending *p, enum srv_limit l, unsigned *left_out);

#endif
