/* SPDX-License-Identifier: MIT */
/*
 * Numeric addresses only: a listener's address must not depend on a name service. "" as host means
 * every address of this host: [::] with IPv4 mapped into it, or 0.0.0.0 where the kernel has no
 * IPv6.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"

static int parse_host(const char *host, size_t len, bool brackets, struct addr *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->ss;
	char text[INET6_ADDRSTRLEN];

	if (len >= sizeof(text) || (brackets && len == 0))
		return -1;
	memcpy(text, host, len);
	text[len] = '\0';
	if (len == 0 || (brackets && inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)) {
		v6->sin6_family = AF_INET6; /* zero bytes are [::] */
		out->len = sizeof(*v6);
		return 0;
	}
	if (brackets || inet_pton(AF_INET, text, &v4->sin_addr) != 1)
		return -1;
	v4->sin_family = AF_INET;
	out->len = sizeof(*v4);
	return 0;
}

int addr_parse(const char *text, struct addr *out, struct err *err)
{
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[';
	const char *host = text + (brackets ? 1 : 0);
	size_t host_len;
	uint64_t port;

	*out = (struct addr){.len = 0};
	if (!colon || str_to_u64(colon + 1, 65535, &port) < 0)
		return err_set(
			err, ERR_INVALID, "address %s: expected host:port or :port", log_esc(text));
	if (brackets && (colon - text < 2 || colon[-1] != ']'))
		return err_set(
			err, ERR_INVALID, "address %s: no ']' before the port", log_esc(text));
	host_len = (size_t)(colon - host) - (brackets ? 1 : 0);
	if (parse_host(host, host_len, brackets, out) < 0)
		return err_set(err, ERR_INVALID,
			"address %s: the host is not an IPv4 address or an IPv6 address in brackets",
			log_esc(text));
	if (out->ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&out->ss)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&out->ss)->sin_port = htons((uint16_t)port);
	return 0;
}

void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_LEN])
{
	char host[INET6_ADDRSTRLEN];

	if (sa && sa->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(out, ADDR_TEXT_LEN, "%s:%u", host, ntohs(v4->sin_port));
	} else if (sa && sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
			inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, host, sizeof(host));
			snprintf(out, ADDR_TEXT_LEN, "%s:%u", host, ntohs(v6->sin6_port));
		} else {
			inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
			snprintf(out, ADDR_TEXT_LEN, "[%s]:%u", host, ntohs(v6->sin6_port));
		}
	} else {
		snprintf(out, ADDR_TEXT_LEN, "?");
	}
}

void addr_source(const struct sockaddr *sa, uint8_t key[ADDR_SOURCE_LEN])
{
	memset(key, 0, ADDR_SOURCE_LEN);
	if (sa && sa->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

		key[0] = 4;
		memcpy(key + 1, &v4->sin_addr, 4);
	} else if (sa && sa->sa_family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)sa)->sin6_addr;

		key[0] = IN6_IS_ADDR_V4MAPPED(v6) ? 4 : 6;
		if (key[0] == 4)
			memcpy(key + 1, v6->s6_addr + 12, 4);
		else
			memcpy(key + 1, v6->s6_addr, 8);
	}
}

static int open_socket(struct addr *a)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->ss;
	int fd = socket(a->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno == EAFNOSUPPORT && a->ss.ss_family == AF_INET6 &&
		IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) {
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = v6->sin6_port};

		memcpy(&a->ss, &any, sizeof(any));
		a->len = sizeof(any);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	return fd;
}

/* TCP_NODELAY and keepalive are inherited by accepted sockets; without the first, kept connections
 * stall 40 ms a request. */
static int set_options(int fd, int family)
{
	int on = 1, off = 0;

	if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -1;
	return 0;
}

static int bind_error(const struct addr *a, int sys, struct err *err)
{
	char text[ADDR_TEXT_LEN];
	const char *hint = "";

	addr_format((const struct sockaddr *)&a->ss, text);
	if (sys == EADDRINUSE)
		hint = " (stop what listens there, or choose another port)";
	else if (sys == EACCES)
		hint = " (ports below 1024 need a privilege: choose a higher one)";
	else if (sys == EADDRNOTAVAIL)
		hint = " (this host has no such address)";
	return err_set_errno(err, ERR_INVALID, sys, "cannot listen on %s%s", text, hint);
}

int addr_listen(const struct addr *a, struct err *err)
{
	struct addr copy = *a;
	int fd = open_socket(&copy);
	int sys;

	if (fd < 0)
		return bind_error(a, errno, err);
	if (set_options(fd, copy.ss.ss_family) < 0 ||
		bind(fd, (struct sockaddr *)&copy.ss, copy.len) < 0 || listen(fd, SOMAXCONN) < 0) {
		sys = errno;
		close(fd);
		return bind_error(a, sys, err);
	}
	return fd;
}

unsigned addr_port(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ss.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&ss)->sin_port) : 0;
}
