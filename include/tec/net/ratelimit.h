/* SPDX-License-Identifier: MIT */
/*
 * Token buckets per source address (IPv6 by /64, IPv4-mapped as IPv4). Bounded: at most
 * `max_sources` buckets; when full, the longest idle one is reused, so memory does not grow with
 * attackers.
 */
#ifndef TEC_NET_RATELIMIT_H
#define TEC_NET_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tec/net/addr.h"

struct ratelimit;
struct ratelimit *ratelimit_new(uint32_t burst, uint32_t per_s, uint32_t max_sources);
/* n tokens come back every `ms` milliseconds, for rates below one a second. */
struct ratelimit *ratelimit_new_slow(uint32_t burst, uint32_t n, uint32_t ms, uint32_t max_sources);
void ratelimit_free(struct ratelimit *r);
/* Takes one token; false: none left, *retry_s says when one will be. NULL r always allows. Time is
 * clock_boot_ms(). */
bool ratelimit_take(struct ratelimit *r, const struct sockaddr *sa, uint32_t *retry_s);
/* The same by the source; r is not NULL. */
bool ratelimit_take_source(
	struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN], uint32_t *retry_s);
/* A token that was taken was not needed. */
void ratelimit_give_source(struct ratelimit *r, const uint8_t source[ADDR_SOURCE_LEN]);

#endif
