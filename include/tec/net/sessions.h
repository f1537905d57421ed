/* SPDX-License-Identifier: MIT */
/*
 * struct sessions: handshakes that clients began, by their cookie, bounded in number, per source
 * (addr_source()) and in time. Every client may open one and leave it: a key broker keeps them until
 * they time out, and a proxy before one counts them before the broker sees them.
 *
 * When as many are unfinished as there may be, a new one takes the place of the oldest unfinished one
 * of the source that has the most. A source that has the most itself, or as many as one may have,
 * gives up its own oldest, but only after SESSIONS_YIELD_MS: nodes that share an address must not end
 * each other's handshakes. Attested ones are counted apart, up to the same number, and give way to
 * each other alone.
 *
 * A session exists from sessions_open() until it is ended, evicted, or older than the session time.
 * Its data is the owner's, and is released with it. Time is an argument; it only grows. Every call is
 * O(1), but for those that end what has timed out.
 */
#ifndef TEC_NET_SESSIONS_H
#define TEC_NET_SESSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/metric.h"
#include "tec/net/addr.h"

#define SESSIONS_YIELD_MS 10000 /* a handshake takes a node a few seconds */

struct sessions;
struct session;

/* evicted counts those that gave way; static, as release. release (may be NULL) runs for the data of a
 * session that ends, unless that is NULL. */
struct sessions *sessions_new(unsigned max, unsigned max_per_source, uint32_t time_ms,
	struct metric *evicted, void (*release)(void *data));
void sessions_free(struct sessions *s); /* NULL is fine; none is awaited */

/* A place for a session whose cookie is not known yet, and which does not time out:
 * session_named() or sessions_end() ends the waiting. NULL: a limit is reached, *retry_s says when
 * this source's oldest gives way. */
struct session *sessions_open(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN],
	uint64_t now_ms, uint32_t *retry_s);
/* It has this cookie; NULL: none is known, and it lasts until it times out. It may have been evicted
 * meanwhile, and is gone then. */
void session_named(struct sessions *s, struct session *e, const char *cookie);
void sessions_end(struct sessions *s, struct session *take_it);
/* The one with this cookie that is not too old; borrowed until it ends. NULL: none. */
struct session *sessions_find(struct sessions *s, const char *cookie, uint64_t now_ms);
/* It gives way only to others that are attested. */
void session_attested(struct sessions *s, struct session *e);
size_t sessions_count(const struct sessions *s);
/* Ends those that are too old, which every other call does on its way too. */
void sessions_sweep(struct sessions *s, uint64_t now_ms);

void session_set_data(struct session *e, void *take_data); /* once */
void *session_data(const struct session *e);
const uint8_t *session_source(const struct session *e); /* ADDR_SOURCE_LEN bytes */

/* The value of kbs-session-id in a Cookie or Set-Cookie header; the caller frees. NULL: none. */
char *sessions_cookie(const char *header);

#endif
