/* SPDX-License-Identifier: MIT */
/*
 * Token buckets per source address (IPv6 by /64, IPv4-mapped as IPv4). At most `max_sources` buckets
 * exist; when all are in use, the longest idle one is reused, so that memory does not grow with the
 * number of attackers.
 */
#ifndef TEC_NET_RATELIMIT_H
#define TEC_NET_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tec/net/addr.h"

struct ratelimit;
struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources);
/* For rates below one per second: n tokens are returned every `ms` milliseconds. */
struct ratelimit *ratelimit_new_slow(uint32_t burst, uint32_t n, uint32_t ms, uint32_t max_sources);
void ratelimit_free(struct ratelimit *r);
/* Take one token. False if none is left; *retry_s is the time until there is one. A NULL r allows
 * everything. Time is clock_boot_ms(). */
bool ratelimit_take(struct ratelimit *r, const struct sockaddr *sa, uint32_t *retry_s);
/* The same with a source instead of an address; r is not NULL. */
bool ratelimit_take_source(
	struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN], uint32_t *retry_s);
/* Return a token that was not needed. */
void ratelimit_give_source(struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN]);

#endif
