/* SPDX-License-Identifier: MIT */
/*
 * struct sessions: handshakes that clients began, by their cookie, bounded in number, per source
 * (addr_source()) and in time. Every client may open one and leave it: a key broker keeps them until
 * they time out, and a proxy before one counts them before the broker sees them.
 *
 * A session exists from sessions_open() until it is ended, or older than the session time. Its data
 * is the owner's, and is released with it. Time is an argument; it only grows.
 */
#ifndef TEC_NET_SESSIONS_H
#define TEC_NET_SESSIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tec/net/addr.h"

struct sessions;
struct session;

/* release (may be NULL) runs for the data of a session that ends, unless that is NULL. */
struct sessions *sessions_new(
	unsigned max, unsigned max_per_source, uint32_t time_ms, void (*release)(void *data));
void sessions_free(struct sessions *s); /* NULL is fine; none is awaited */

/* A place for a session whose cookie is not known yet, and which does not time out:
 * session_named() or sessions_end() ends the waiting. NULL: a limit is reached, *retry_s says when a
 * place is free at the latest. */
struct session *sessions_open(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN],
	uint64_t now_ms, uint32_t *retry_s);
/* It has this cookie; NULL: none is known, and it lasts until it times out. */
void session_named(struct sessions *s, struct session *e, const char *cookie);
void sessions_end(struct sessions *s, struct session *take_it);
/* The one with this cookie that is not too old; borrowed until it ends. NULL: none. */
struct session *sessions_find(struct sessions *s, const char *cookie, uint64_t now_ms);
size_t sessions_count(const struct sessions *s);
/* Ends those that are too old, which every other call does on its way too. */
void sessions_sweep(struct sessions *s, uint64_t now_ms);

void session_set_data(struct session *e, void *take_data); /* once */
void *session_data(const struct session *e);

/* The value of kbs-session-id in a Cookie or Set-Cookie header; the caller frees. NULL: none. */
char *sessions_cookie(const char *header);

#endif
