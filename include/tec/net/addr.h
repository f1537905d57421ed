/* SPDX-License-Identifier: MIT */
/* Socket addresses as text: "127.0.0.1:8000", "[::]:8001", ":8000" (all addresses, IPv6 and IPv4).
 * Numeric only: no DNS. */
#ifndef TEC_NET_ADDR_H
#define TEC_NET_ADDR_H

#include <stdint.h>
#include <sys/socket.h>

#include "tec/base/err.h"

#define ADDR_TEXT_LEN 64

struct addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* What counts as one source: an IPv4 address, an IPv6 network of 64 bits, and one for all that is
 * neither (NULL). */
#define ADDR_SOURCE_LEN 16
void addr_source(const struct sockaddr *sa, uint8_t key[ADDR_SOURCE_LEN]);

int addr_parse(const char *text, struct addr *out, struct err *err) MUST_CHECK;
void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_LEN]); /* "?" when unknown */
/* A bound, listening, non-blocking, close-on-exec socket; [::] takes IPv4 too. -1: ERR_INVALID says
 * what to do (port in use...). */
int addr_listen(const struct addr *a, struct err *err) MUST_CHECK;
unsigned addr_port(int fd); /* of a bound socket */

#endif
