/* SPDX-License-Identifier: MIT */
/*
 * Machine ids that prove by themselves that a listener of this cluster handed them out, so that
 * handing one out costs no API object. A ticket is a UUID of version 8
 * (RFC 9562): 48 random bits, 10 bits of epoch, 64 bits of HMAC-SHA-256 over both and the scope.
 *
 * It is neither a secret of the node nor a right to a disk key: a client that shows one may have a
 * Machine with this id made, as any client that reaches the listener may without tickets. It is
 * valid until its epoch ends, its key is replaced or the scope changes. Pure: key, time and
 * random bytes are arguments.
 */
#ifndef TEC_RATS_TICKET_H
#define TEC_RATS_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/base/secret.h"
#include "tec/base/uuid.h"

#define RATS_TICKET_KEY_LEN    32
#define RATS_TICKET_RANDOM_LEN 6
#define RATS_TICKET_TTL_MS     (INT64_C(24) * 60 * 60 * 1000) /* when pendingTTL is 0 */

/* What a ticket is bound to beside its key. A change of any of it ends what was handed out. */
struct rats_ticket_scope {
	const char *cluster_uid;
	const char *mode;            /* registration.mode */
	const uint8_t *token_sha256; /* of the token Secret; NULL: none is asked for */
};

/* The number of the lifetime that the wall clock is in, modulo 1024; ttl_ms <= 0: 24 hours. */
uint16_t rats_ticket_epoch(int64_t wall_s, int64_t ttl_ms);
void rats_ticket_make(const struct secret *key, const struct rats_ticket_scope *scope,
	const uint8_t random[RATS_TICKET_RANDOM_LEN], uint16_t epoch, char out[UUID_TEXT_LEN + 1]);
/* uuid: any text. Tickets of the epoch before and after `epoch` count too: of one that was made a
 * moment before it changed, and of a listener whose clock is ahead. Constant-time in the MAC. */
bool rats_ticket_valid(const struct secret *key, const struct rats_ticket_scope *scope,
	const char *uuid, uint16_t epoch);
/* The text is of this form and its epoch still counts: with the right key it could be valid. */
bool rats_ticket_counts(const char *uuid, uint16_t epoch);

#endif
