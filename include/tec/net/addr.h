/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses as text: "127.0.0.1:8000", "[::]:8001", ":8000" (all IPv6 and IPv4 addresses);
 * numeric only, without DNS. Also the scope of an address: which networks it can reach.
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
/* Format an address; "local" for a Unix socket, "?" if it is unknown. */
void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_LEN]);
/* The source that limits count by: an IPv4 address or an IPv6 /64, in which a host can choose any
 * address; IPv4-mapped addresses count as IPv4. All other addresses are one source. */
void addr_source(const struct sockaddr *sa, uint8_t out[ADDR_SOURCE_LEN]);
/* Return a listening, non-blocking, close-on-exec socket; [::] accepts IPv4 too. -1 with ERR_INVALID,
 * whose text suggests what to do (port in use ...). */
int addr_listen(const struct addr *a, struct err *err) MUST_CHECK;
/* The same for a Unix socket with this mode and group ((gid_t)-1: the process's). A socket left by a
 * killed process is replaced; the caller removes the file in the end. */
int addr_listen_local(const char *path, mode_t mode, gid_t group, struct err *err) MUST_CHECK;
unsigned addr_port(int fd); /* port of a bound socket; 0: none */

/* The scope of an address, as far as the number shows. */
enum addr_scope {
	ADDR_PUBLIC,
	ADDR_PRIVATE,    /* RFC 1918, RFC 6598 (100.64.0.0/10), fc00::/7, fec0::/10 */
	ADDR_LOOPBACK,   /* 127.0.0.0/8, ::1; also 0.0.0.0/8 and ::, which reach this host too */
	ADDR_LINK_LOCAL, /* 169.254.0.0/16, where clouds serve metadata; fe80::/10 */
	ADDR_RESERVED,   /* multicast, documentation, benchmarks, anything not an IP address */
};
#define ADDR_REACH(scope) (1u << (scope)) /* its bit in a set of scopes */
#define ADDR_REACH_ALL    (ADDR_REACH(ADDR_RESERVED + 1) - 1)
/* An IPv6 address that embeds an IPv4 address (mapped, compatible, NAT64, 6to4) has the scope of that
 * IPv4 address. */
enum addr_scope addr_scope(const struct sockaddr *sa);
const char *addr_scope_name(enum addr_scope s); /* "public", "private", "loopback" ... */

#endif
