/* SPDX-License-Identifier: MIT */
/*
 * How many Machines each source address had made within the last hour. What became of them does not
 * matter: completed registrations count too. Bounded: of more sources than
 * `max`, the one that made nothing for the longest time is forgotten.
 */
#ifndef TEC_SRV_SHARE_H
#define TEC_SRV_SHARE_H

#include <stddef.h>

struct srv_share;
struct srv_share *srv_share_new(unsigned max);
void srv_share_free(struct srv_share *s); /* NULL is fine */
/* peer: an address as httpd_req_peer() has it; an IPv6 network of 64 bits counts as one source, as
 * does everything that is not an address. Up to ten minutes more than an hour. */
size_t srv_share_count(const struct srv_share *s, const char *peer);
void srv_share_add(struct srv_share *s, const char *peer);
void srv_share_give_back(struct srv_share *s, const char *peer); /* it was not made after all */

#endif
