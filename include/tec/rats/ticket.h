/* SPDX-License-Identifier: MIT */
/*
 * Machine ids that prove that a listener of this cluster issued them, so that issuing one needs no
 * API object. A ticket is a UUID of version 8 (RFC 9562): 48 random bits, 10 bits of epoch, 64 bits
 * of HMAC-SHA-256 over both and the scope.
 *
 * A ticket is neither a secret of the node nor a right to a disk key: it lets a client create a
 * Machine with this id, which without tickets any client that reaches the listener can do. It is
 * valid until the epoch after its own ends, its key is replaced, or the scope changes. Pure: key,
 * time and random bytes are arguments.
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

/* What a ticket is bound to besides its key. A change of any member invalidates all issued
 * tickets. */
struct rats_ticket_scope {
	const char *cluster_uid;
	const char *mode;            /* registration.mode */
	const uint8_t *token_sha256; /* of the token Secret; NULL: no token required */
};

/* The wall clock divided by the lifetime, modulo 1024; ttl_ms <= 0: 24 hours. */
uint16_t rats_ticket_epoch(int64_t wall_s, int64_t ttl_ms);
void rats_ticket_make(const struct secret *key, const struct rats_ticket_scope *scope,
	const uint8_t random[RATS_TICKET_RANDOM_LEN], uint16_t epoch, char out[UUID_TEXT_LEN + 1]);
/* uuid: any text. Tickets of the previous and the next epoch are valid too: the epoch may have
 * just changed, or the issuing listener's clock may be ahead. The MAC is compared in constant
 * time. */
bool rats_ticket_valid(const struct secret *key, const struct rats_ticket_scope *scope,
	const char *uuid, uint16_t epoch);
/* Whether the text has the form of a ticket and its epoch has not expired; the MAC is not
 * checked. */
bool rats_ticket_counts(const char *uuid, uint16_t epoch);

#endif
