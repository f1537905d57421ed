/* SPDX-License-Identifier: MIT */
/*
 * Counts the Machines created for each source address within the last hour. Completed
 * registrations count, too. Memory is bounded: beyond `max` sources, the one that created nothing
 * for the longest time is forgotten.
 */
#ifndef TEC_SRV_SHARE_H
#define TEC_SRV_SHARE_H

#include <stddef.h>

#include "tec/net/sources.h"

/* Ends with sources_free(). */
struct sources *srv_share_new(unsigned max);
/* peer: an address as httpd_req_peer() returns it. An IPv6 /64 network counts as one source, as
 * does everything that is not an address. The count covers an hour and up to ten minutes more. */
size_t srv_share_count(const struct sources *s, const char *peer);
void srv_share_add(struct sources *s, const char *peer);
void srv_share_give_back(struct sources *s, const char *peer); /* none was created */

#endif
