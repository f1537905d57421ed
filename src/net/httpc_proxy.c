/* SPDX-License-Identifier: MIT */
/* Pure, but for the environment. A host with other characters than names and addresses have is never
 * one that is permitted: curl would decode it. */
#include "config.h"

#include "tec/net/httpc_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

static const char *const variables[HTTPC_PROXY_VARIABLES] = {
	"https_proxy", "HTTPS_PROXY", "http_proxy", "no_proxy", "NO_PROXY"};

/* ---- hosts ---- */

#define HOST_MAX 256

/* Copy the host without brackets and final dot. -1: curl might read another one. */
static int host_of(const char *url, char out[HOST_MAX])
{
	const char *at = strstr(url, "://");
	bool v6 = at && at[3] == '[';
	size_t len;

	at = at ? at + 3 + v6 : "";
	len = strspn(at, v6 ? "0123456789abcdefABCDEF:."
			    : "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-._");
	if (len == 0 || len >= HOST_MAX ||
		(v6 ? at[len] != ']' : at[len] && !strchr(":/?#", at[len])))
		return -1;
	memcpy(out, at, len);
	out[len - (out[len - 1] == '.')] = '\0';
	return 0;
}

/* Read an address, 0x7f.1 among them as curl does. Return the length of its bytes; 0: it is a name. */
static size_t read_ip(const char *host, uint8_t out[16])
{
	struct in_addr v4;

	if (inet_aton(host, &v4)) {
		memcpy(out, &v4, sizeof(v4));
		return sizeof(v4);
	}
	return inet_pton(AF_INET6, host, out) == 1 ? 16 : 0;
}

enum addr_scope httpc_proxy_scope(const char *url)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	char host[HOST_MAX];
	size_t len;

	if (host_of(url, host) < 0)
		return ADDR_RESERVED;
	if (inet_aton(host, &v4.sin_addr))
		return addr_scope((const struct sockaddr *)&v4);
	if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1)
		return addr_scope((const struct sockaddr *)&v6);
	len = strlen(host);
	if (strcasecmp(host, "localhost") == 0 ||
		(len > 10 && strcasecmp(host + len - 10, ".localhost") == 0))
		return ADDR_LOOPBACK;
	return ADDR_PUBLIC;
}

/* ---- the list of exceptions ---- */

/* Compare an address with an item: an address, or one with the length of a prefix. */
static bool in_prefix(const char *item, const uint8_t ip[16], size_t len)
{
	char text[INET6_ADDRSTRLEN] = "";
	const char *slash = strchr(item, '/');
	size_t n = slash ? (size_t)(slash - item) : strlen(item), from = item[0] == '[';
	uint64_t bits = 8 * len;
	uint8_t net[16];

	n -= from && n > 1 && item[n - 1] == ']' ? 2 : 0;
	if (n >= sizeof(text) || (slash && str_to_u64(slash + 1, bits, &bits) < 0))
		return false;
	memcpy(text, item + from, n);
	if (read_ip(text, net) != len || memcmp(ip, net, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || (ip[bits / 8] ^ net[bits / 8]) >> (8 - bits % 8) == 0;
}

/* Compare a name with an item, which covers the names below it, too. */
static bool in_domain(const char *item, const char *host)
{
	size_t len = strlen(host), n;

	item += *item == '.';
	n = strlen(item);
	n -= n > 0 && item[n - 1] == '.';
	return n > 0 && n <= len && strncasecmp(host + len - n, item, n) == 0 &&
	       (n == len || host[len - n - 1] == '.');
}

bool httpc_proxy_excepts(const char *list, const char *url)
{
	cleanup_free char *items = xstrdup(list);
	char *rest = items, *item, host[HOST_MAX];
	uint8_t ip[16];
	size_t len;

	if (host_of(url, host) < 0)
		return false;
	len = read_ip(host, ip);
	while ((item = strsep(&rest, ", \t")))
		if (str_eq(item, "*") || (len ? in_prefix(item, ip, len) : in_domain(item, host)))
			return true;
	return false;
}

/* ---- the environment ---- */

/* The variable in lower case wins. */
static const char *either(const char *lower, const char *upper)
{
	const char *v = secure_getenv(lower);

	v = v && *v ? v : secure_getenv(upper);
	return v && *v ? v : NULL;
}

const char *httpc_proxy_of_env(const char *url)
{
	const char *proxy = strncasecmp(url, "https:", 6) == 0
				    ? either("https_proxy", "HTTPS_PROXY")
				    : either("http_proxy", "http_proxy");
	const char *except = either("no_proxy", "NO_PROXY");

	return proxy && except && httpc_proxy_excepts(except, url) ? NULL : proxy;
}

void httpc_proxy_env(const char *out[HTTPC_PROXY_VARIABLES + 1])
{
	size_t n = 0;

	for (char **e = environ; e && *e; e++)
		for (size_t i = 0; i < HTTPC_PROXY_VARIABLES && n < HTTPC_PROXY_VARIABLES; i++)
			if (str_starts(*e, variables[i]) && (*e)[strlen(variables[i])] == '=')
				out[n++] = *e;
	while (n <= HTTPC_PROXY_VARIABLES)
		out[n++] = NULL;
}

/* A proxy without a scheme is an http one, as for libcurl. Only the scheme is shown: the rest may
 * contain a password. */
int httpc_proxy_check(const char *proxy, struct err *err)
{
	const char *sep = strstr(proxy, "://"), *host = sep ? sep + 3 : proxy;
	int scheme = sep ? (int)(sep - proxy) : 0;

	for (const char *p = proxy; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			host = "";
	if (!*host || strchr("/:@", *host))
		return err_set(
			err, ERR_INVALID, "the proxy is not http://[USER:PASSWORD@]HOST:PORT");
	if (sep && strncasecmp(proxy, "http://", 7) != 0 && strncasecmp(proxy, "https://", 8) != 0)
		return err_set(err, ERR_INVALID,
			"proxies of type %.*s are not supported: the proxy must begin with http:// or https://",
			scheme < 16 ? scheme : 16, proxy);
	return 0;
}
