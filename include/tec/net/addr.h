/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses as text: "127.0.0.1:8000", "[::]:8001", ":8000" (all addresses, IPv6 and IPv4),
 * numeric only: no DNS; and where an address leads.
 */
#ifndef TEC_NET_ADDR_H
#define TEC_NET_ADDR_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "tec/base/err.h"

#define ADDR_TEXT_LEN   64
#define ADDR_SOURCE_LEN 16

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

int addr_parse(const char *text, struct addr *out, struct err *err) MUST_CHECK;
/* "local": a socket in the file system; "?": unknown. */
void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_LEN]);
/* What limits count as one source: an IPv4 address, an IPv6 /64 (a host picks any address of its
 * own), IPv4-mapped as IPv4; all that is neither is one source. */
void addr_source(const struct sockaddr *sa, uint8_t out[ADDR_SOURCE_LEN]);
/* A bound, listening, non-blocking, close-on-exec socket; [::] takes IPv4 too. -1: ERR_INVALID says
 * what to do (port in use...). */
int addr_listen(const struct addr *a, struct err *err) MUST_CHECK;
/* The same for a socket in the file system, with this mode and group ((gid_t)-1: the process's). One
 * that a killed process left is replaced; the caller removes the file. */
int addr_listen_local(const char *path, mode_t mode, gid_t group, struct err *err) MUST_CHECK;
unsigned addr_port(int fd); /* of a bound socket; 0: it has none */

/* Where an address leads, as far as the number shows. */
enum addr_scope {
	ADDR_PUBLIC,
	ADDR_PRIVATE,    /* RFC 1918, RFC 6598 (100.64.0.0/10), fc00::/7, fec0::/10 */
	ADDR_LOOPBACK,   /* 127.0.0.0/8, ::1, and 0.0.0.0/8 and ::, which lead to this host too */
	ADDR_LINK_LOCAL, /* 169.254.0.0/16, where clouds serve their metadata; fe80::/10 */
	ADDR_RESERVED,   /* multicast, documentation, benchmarks, and what is not an IP address */
};
#define ADDR_REACH(scope) (1u << (scope)) /* a bit of a set of scopes */
#define ADDR_REACH_ALL    (ADDR_REACH(ADDR_RESERVED + 1) - 1)
/* An IPv6 address that carries an IPv4 address (mapped, compatible, NAT64, 6to4) is where that one
 * leads. */
enum addr_scope addr_scope(const struct sockaddr *sa);
const char *addr_scope_name(enum addr_scope s); /* "public", "private", "loopback" ... */

#endif
