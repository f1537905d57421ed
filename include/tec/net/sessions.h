/* SPDX-License-Identifier: MIT */
/*
 * struct sessions: handshakes that clients started, by cookie, limited in total, per source
 * (addr_source()) and in time. Any client may open one and abandon it. A key broker keeps sessions
 * until they time out; a proxy in front of a broker counts them before the broker sees them.
 *
 * When the maximum of unfinished sessions is reached, a new one replaces the oldest unfinished session
 * of the source that has the most. If that is its own source, or the source has reached its own limit,
 * its oldest session is replaced, but only after SESSIONS_YIELD_MS: nodes that share an address must
 * not end each other's handshakes. Attested sessions are counted separately, up to the same number,
 * and are replaced only by attested ones.
 *
 * A session exists from sessions_open() until it is ended, evicted, or older than the session time.
 * Its data is released with it. Time is an argument and must not decrease. Every call is O(1), except
 * for ending what has timed out.
 */
#ifndef TEC_NET_SESSIONS_H
#define TEC_NET_SESSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/metric.h"
#include "tec/net/addr.h"

#define SESSIONS_YIELD_MS 10000 /* a node's handshake takes a few seconds */

struct sessions;
struct session;

/* evicted counts evictions; it is static, as is release. release (may be NULL) runs for the data of a
 * session that ends, unless the data is NULL. */
struct sessions *sessions_new(unsigned max, unsigned max_per_source, uint32_t time_ms,
	struct metric *evicted, void (*release)(void *data));
void sessions_free(struct sessions *s); /* NULL is fine; no session may await its name */

/* Reserve a session whose cookie is not known yet. It does not time out until session_named() or
 * sessions_end() is called for it. NULL if a limit is reached; *retry_s is then the time until the
 * oldest session of this source can be replaced. */
struct session *sessions_open(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN],
	uint64_t now_ms, uint32_t *retry_s);
/* Set the cookie; with NULL the session has none and just lasts until it times out. If it was evicted
 * meanwhile, it is freed. */
void session_named(struct sessions *s, struct session *e, const char *cookie);
void sessions_end(struct sessions *s, struct session *take_it);
/* The session with this cookie that has not timed out; borrowed until it ends. NULL: none. */
struct session *sessions_find(struct sessions *s, const char *cookie, uint64_t now_ms);
/* Mark it as attested: from now on only attested sessions can replace it. */
void session_attested(struct sessions *s, struct session *e);
size_t sessions_count(const struct sessions *s);
/* End the sessions that have timed out, as every call with now_ms does. */
void sessions_sweep(struct sessions *s, uint64_t now_ms);

void session_set_data(struct session *e, void *take_data); /* once */
void *session_data(const struct session *e);
const uint8_t *session_source(const struct session *e); /* ADDR_SOURCE_LEN bytes */

/* The value of kbs-session-id in a Cookie or Set-Cookie header; the caller frees. NULL: none. */
char *sessions_cookie(const char *header);

#endif
