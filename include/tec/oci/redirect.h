/* SPDX-License-Identifier: MIT */
/*
 * Where a registry may send us: what a redirect and the realm of a token server may name. A
 * registry is not trusted with the network this process stands in, and what it names is its own
 * choice. Pure: text and numbers in, a verdict out; the addresses are compared by net/httpc when it
 * connects, because a name is whatever its DNS server says at that moment.
 *
 *  - From https only to https. Plain http is spoken to the registry's own host and port and to the
 *    hosts that are listed as insecure, and only by a registry that is in plain http itself.
 *  - To any address that is public, and to others of the kind the registry's own address is: a
 *    private registry may name private addresses, not loopback or link-local ones.
 *  - A registry that is named by a number or as localhost may be anywhere; a name that leads to a
 *    loopback or link-local address is not asked. Its address stays of the kind that answered
 *    first.
 */
#ifndef TEC_OCI_REDIRECT_H
#define TEC_OCI_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/net/addr.h"

struct oci_place {
	const char *base;            /* "https://host[:port]/..." of the registry or mirror */
	bool answered;               /* then `scope` is that of its address */
	enum addr_scope scope;       /* of its address */
	const char *const *insecure; /* host[:port] that may be spoken to in plain http */
	size_t n_insecure;
};

/* Whether `from`, which p's registry answered or sent us to, may name `to`. ERR_DENIED: no. */
int oci_redirect_check(
	const struct oci_place *p, const char *from, const char *to, struct err *err) MUST_CHECK;
/* ADDR_REACH() of the addresses that `url`, which was checked, may lead to. */
unsigned oci_redirect_reach(const struct oci_place *p, const char *url);

/* Scheme, host and port are the same text. */
bool oci_same_origin(const char *a, const char *b);
bool oci_is_https(const char *url);

#endif
