/* SPDX-License-Identifier: MIT */
/*
 * HTTP proxies. httpc uses only the proxy that a request names; the environment's is meant for
 * registries, so their caller asks here. The variables are those that libcurl reads: https_proxy or
 * HTTPS_PROXY for https, http_proxy (lower case only, as a CGI server sets HTTP_PROXY from a header)
 * for http, no_proxy or NO_PROXY for hosts that are connected to directly. Empty counts as unset.
 */
#ifndef TEC_NET_HTTPC_PROXY_H
#define TEC_NET_HTTPC_PROXY_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/net/addr.h"

#define HTTPC_PROXY_VARIABLES 5

/* Return the environment's proxy for a URL, borrowed from the environment; NULL: none. */
const char *httpc_proxy_of_env(const char *url);
/* Copy "NAME=value" of the variables that are set, borrowed from the environment, for a process that
 * asks a registry; the rest is NULL. */
void httpc_proxy_env(const char *out[HTTPC_PROXY_VARIABLES + 1]);

/* Check that a proxy is [http://|https://][USER:PASSWORD@]HOST[:PORT]. ERR_INVALID; the text does not
 * contain the password. */
int httpc_proxy_check(const char *proxy, struct err *err) MUST_CHECK;
/* Check whether the host of a URL is in a list: "*", names that cover their subdomains (a leading dot
 * is ignored), addresses, and address prefixes such as 10.0.0.0/8, separated by commas or blanks. */
bool httpc_proxy_excepts(const char *list, const char *url);
/* Return what the URL itself says of the address that the proxy will connect to: the scope of an
 * address, ADDR_LOOPBACK of localhost, ADDR_PUBLIC of another name. */
enum addr_scope httpc_proxy_scope(const char *url);

#endif
