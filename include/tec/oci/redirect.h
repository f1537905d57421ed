/* SPDX-License-Identifier: MIT */
/*
 * Where a registry may send us: what a redirect and the realm of a token server may name. A
 * registry chooses these, but is not trusted with access to the network of this process. Pure: text
 * and numbers in, a verdict out. net/httpc compares the addresses when it connects, because only
 * then is it known what a name resolves to.
 *
 *  - From https only to https. Plain http is used only with the registry's own host and port and
 *    with hosts listed as insecure, and only if the registry itself uses plain http.
 *  - To any public address, and to addresses of the same kind as the registry's: a private registry
 *    may name private addresses, but not loopback or link-local ones.
 *  - A registry given as an IP address or as localhost may be anywhere. A name that resolves to a
 *    loopback or link-local address is not contacted. The kind of address is that of the first
 *    answer.
 */
#ifndef TEC_OCI_REDIRECT_H
#define TEC_OCI_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/net/addr.h"

struct oci_place {
	const char *base;            /* "https://host[:port]/..." of the registry or mirror */
	bool answered;               /* the registry has answered: `scope` is known */
	enum addr_scope scope;       /* kind of its address */
	const char *const *insecure; /* host[:port] that may be used with plain http */
	size_t n_insecure;
};

/* Check that `from`, the registry or where it sent us, may redirect to `to`. ERR_DENIED: it may
 * not. */
int oci_redirect_check(
	const struct oci_place *p, const char *from, const char *to, struct err *err) MUST_CHECK;
/* Return ADDR_REACH() of the addresses that a checked url may resolve to. */
unsigned oci_redirect_reach(const struct oci_place *p, const char *url);

/* Compare a host and its port with a list. */
bool oci_host_listed(const char *const *list, size_t n, const char *host, size_t len);
/* Compare scheme, host and port as text. */
bool oci_same_origin(const char *a, const char *b);
bool oci_is_https(const char *url);

#endif
