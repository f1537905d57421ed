/* SPDX-License-Identifier: MIT */
/*
 * Origins are compared as text, ignoring case. Another spelling of the same host (a trailing dot,
 * an explicit default port) counts as a different host, which only removes rights.
 */
#include "config.h"

#include "tec/oci/redirect.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* Return the part between "scheme://" and the path; *len is 0 if there is none. */
static const char *authority(const char *url, size_t *len)
{
	const char *host = strstr(url, "://");

	*len = host ? strcspn(host + 3, "/?#") : 0;
	return host ? host + 3 : url;
}

/* The texts up to the end of the authority must be equal, scheme included. */
bool oci_same_origin(const char *a, const char *b)
{
	size_t a_len, b_len;
	const char *a_host = authority(a, &a_len), *b_host = authority(b, &b_len);
	size_t n = (size_t)(a_host - a) + a_len;

	return a_len && n == (size_t)(b_host - b) + b_len && strncasecmp(a, b, n) == 0;
}

bool oci_is_https(const char *url)
{
	return strncasecmp(url, "https://", 8) == 0;
}

static bool is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0;
}

/* A list entry without a port does not cover other ports. */
bool oci_host_listed(const char *const *list, size_t n, const char *host, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && strncasecmp(list[i], host, len) == 0)
			return true;
	return false;
}

/*
 * https is always allowed. Plain http must not downgrade a request or a registry that used https.
 */
int oci_redirect_check(const struct oci_place *p, const char *from, const char *to, struct err *err)
{
	const char *host;
	size_t len;

	if (oci_is_https(to))
		return 0;
	if (!is_http(to))
		return err_set(err, ERR_DENIED, "the URL is neither https nor http");
	if (!is_http(from) || !is_http(p->base))
		return err_set(err, ERR_DENIED, "plain http, from a host that is used over https");
	host = authority(to, &len);
	if (!oci_same_origin(to, p->base) &&
		!oci_host_listed(p->insecure, p->n_insecure, host, len))
		return err_set(
			err, ERR_DENIED, "plain http to a host that is not listed as insecure");
	return 0;
}

/* Check for an IP address or localhost: the author of the reference knew where it leads. */
static bool is_literal(const char *url)
{
	struct in_addr v4;
	char host[64];
	size_t len;
	const char *at = authority(url, &len), *colon;

	if (len && *at == '[')
		return true;
	colon = memchr(at, ':', len);
	len = colon ? (size_t)(colon - at) : len;
	if (len >= sizeof(host))
		return false;
	memcpy(host, at, len);
	host[len] = '\0';
	return strcasecmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &v4) == 1;
}

/* Before the registry has answered, only its own name may lead to a private address; a name that
 * resolves to loopback is refused, as in DNS rebinding. */
unsigned oci_redirect_reach(const struct oci_place *p, const char *url)
{
	if (p->answered)
		return ADDR_REACH(ADDR_PUBLIC) | ADDR_REACH(p->scope);
	if (!oci_same_origin(url, p->base))
		return ADDR_REACH(ADDR_PUBLIC);
	if (is_literal(p->base))
		return ADDR_REACH_ALL;
	return ADDR_REACH_ALL & ~(ADDR_REACH(ADDR_LOOPBACK) | ADDR_REACH(ADDR_LINK_LOCAL));
}
