/* SPDX-License-Identifier: MIT */
/*
 * Numeric addresses only: a listener's address must not depend on a name service. An empty host means
 * all addresses of this host: [::] which also accepts IPv4, or 0.0.0.0 if the kernel lacks IPv6.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"

/* The last colon separates the port. An IPv6 address must be in brackets, as its colons would be
 * ambiguous. Port 0 lets the kernel choose one; see addr_port(). */
int addr_parse(const char *text, struct addr *out, struct err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->ss;
	const char *colon = strrchr(text, ':');
	bool brackets = text[0] == '[';
	const char *host = text + (brackets ? 1 : 0);
	char name[INET6_ADDRSTRLEN] = "";
	size_t host_len;
	uint64_t port;

	*out = (struct addr){.len = 0};
	if (!colon || str_to_u64(colon + 1, 65535, &port) < 0)
		return err_set(
			err, ERR_INVALID, "address %s: expected host:port or :port", log_esc(text));
	if (brackets && (colon - text < 2 || colon[-1] != ']'))
		return err_set(
			err, ERR_INVALID, "address %s: missing ']' before the port", log_esc(text));
	host_len = (size_t)(colon - host) - (brackets ? 1 : 0);
	if (host_len < sizeof(name))
		memcpy(name, host, host_len);
	if ((host_len == 0 && !brackets) ||
		(brackets && inet_pton(AF_INET6, name, &v6->sin6_addr) == 1)) {
		v6->sin6_family = AF_INET6; /* zero bytes are [::] */
		v6->sin6_port = htons((uint16_t)port);
		out->len = sizeof(*v6);
	} else if (!brackets && inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		out->len = sizeof(*v4);
	} else {
		return err_set(err, ERR_INVALID,
			"address %s: the host is not an IPv4 address or an IPv6 address in brackets",
			log_esc(text));
	}
	return 0;
}

/* Return the family of an address, and of an IP address its bytes and port. An IPv4 client of an IPv6
 * socket is shown and counted as IPv4. */
static int ip_of(const struct sockaddr *sa, const uint8_t **ip, unsigned *port)
{
	*ip = NULL;
	*port = 0;
	if (sa && sa->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

		*ip = (const uint8_t *)&v4->sin_addr;
		*port = ntohs(v4->sin_port);
		return AF_INET;
	}
	if (sa && sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
		bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

		*ip = v6->sin6_addr.s6_addr + (mapped ? 12 : 0);
		*port = ntohs(v6->sin6_port);
		return mapped ? AF_INET : AF_INET6;
	}
	return sa ? sa->sa_family : AF_UNSPEC;
}

void addr_format(const struct sockaddr *sa, char out[ADDR_TEXT_LEN])
{
	char host[INET6_ADDRSTRLEN];
	const uint8_t *ip;
	unsigned port;
	int family = ip_of(sa, &ip, &port);

	if (family == AF_INET || family == AF_INET6) {
		inet_ntop(family, ip, host, sizeof(host));
		snprintf(out, ADDR_TEXT_LEN, family == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
	} else { /* clients of a Unix socket have no name */
		snprintf(out, ADDR_TEXT_LEN, "%s", family == AF_UNIX ? "local" : "?");
	}
}

/* The first byte tells the families apart. All Unix socket clients are one source of zero bytes. */
void addr_source(const struct sockaddr *sa, uint8_t out[ADDR_SOURCE_LEN])
{
	const uint8_t *ip;
	unsigned port;
	int family = ip_of(sa, &ip, &port);

	memset(out, 0, ADDR_SOURCE_LEN);
	if (family == AF_INET || family == AF_INET6) {
		out[0] = family == AF_INET ? 4 : 6;
		memcpy(out + 1, ip, family == AF_INET ? 4 : 8);
	}
}

/* Add what to do about the usual reasons. */
static int bind_error(const struct addr *a, int sys, struct err *err)
{
	char text[ADDR_TEXT_LEN];
	const char *hint = "";

	addr_format((const struct sockaddr *)&a->ss, text);
	if (sys == EADDRINUSE)
		hint = " (stop the program that listens there, or choose another port)";
	else if (sys == EACCES)
		hint = " (ports below 1024 require privileges; choose a higher port)";
	else if (sys == EADDRNOTAVAIL)
		hint = " (this host does not have that address)";
	return err_set_errno(err, ERR_INVALID, sys, "cannot listen on %s%s", text, hint);
}

int addr_listen(const struct addr *a, struct err *err)
{
	struct addr to = *a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->ss;
	int fd = socket(a->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0, sys;

	/* The kernel lacks IPv6: 0.0.0.0 instead of [::]. */
	if (fd < 0 && errno == EAFNOSUPPORT && a->ss.ss_family == AF_INET6 &&
		IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) {
		struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = v6->sin6_port};

		memcpy(&to.ss, &any, sizeof(any));
		to.len = sizeof(any);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return bind_error(a, errno, err);
	/* Accepted sockets inherit these options. Without TCP_NODELAY each request on a persistent
	 * connection stalls for 40 ms. */
	if ((to.ss.ss_family == AF_INET6 &&
		    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0 ||
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
		bind(fd, (struct sockaddr *)&to.ss, to.len) < 0 || listen(fd, SOMAXCONN) < 0) {
		sys = errno;
		close(fd);
		return bind_error(a, sys, err);
	}
	return fd;
}

/* ---- sockets in the file system */

/* True for a socket file without a listener, which a killed process left. */
static bool is_stale(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat st; /* files of other types refuse connections too and must not be removed */
	bool stale = fd >= 0 && lstat(un->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		     connect(fd, (const struct sockaddr *)un, sizeof(*un)) < 0 &&
		     errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return stale;
}

int addr_listen_local(const char *path, mode_t mode, gid_t group, struct err *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd, sys, bound = -1;
	mode_t before;

	if (*path != '/' || strlen(path) >= sizeof(un.sun_path))
		return err_set(err, ERR_INVALID,
			"socket %s: expected an absolute path of at most %zu bytes", log_esc(path),
			sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* Bind with the file mode already set: chmod() after bind() would leave a window with a wider
	 * mode. */
	before = umask(0777 & ~mode);
	if (fd >= 0)
		bound = bind(fd, (const struct sockaddr *)&un, sizeof(un));
	if (fd >= 0 && bound < 0 && errno == EADDRINUSE && is_stale(&un) && unlink(path) == 0)
		bound = bind(fd, (const struct sockaddr *)&un, sizeof(un));
	umask(before);
	/* No client can connect before listen(), so the group is set before the first one. */
	if (bound < 0 || (group != (gid_t)-1 && lchown(path, (uid_t)-1, group) < 0) ||
		listen(fd, SOMAXCONN) < 0) {
		sys = errno;
		if (bound == 0)
			unlink(path);
		if (fd >= 0)
			close(fd);
		return err_set_errno(
			err, ERR_INVALID, sys, "cannot listen on socket %s", log_esc(path));
	}
	return fd;
}

unsigned addr_port(int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	const uint8_t *ip;
	unsigned port;

	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0)
		return 0;
	(void)ip_of((const struct sockaddr *)&ss, &ip, &port);
	return port;
}

/* ---- the scope of an address ---- */

struct block {
	uint8_t prefix[16];
	uint8_t bits;
	enum addr_scope scope;
};

/* The IANA special-purpose registry. The first block that contains an address determines its scope; an
 * address in no block is public. */
static const struct block v4_blocks[] = {
	{{0}, 8, ADDR_LOOPBACK},
	{{127}, 8, ADDR_LOOPBACK},
	{{10}, 8, ADDR_PRIVATE},
	{{172, 16}, 12, ADDR_PRIVATE},
	{{192, 168}, 16, ADDR_PRIVATE},
	{{100, 64}, 10, ADDR_PRIVATE},
	{{169, 254}, 16, ADDR_LINK_LOCAL},
	{{192, 0, 0}, 24, ADDR_RESERVED},
	{{192, 0, 2}, 24, ADDR_RESERVED},
	{{192, 88, 99}, 24, ADDR_RESERVED},
	{{198, 18}, 15, ADDR_RESERVED},
	{{198, 51, 100}, 24, ADDR_RESERVED},
	{{203, 0, 113}, 24, ADDR_RESERVED},
	{{224}, 3, ADDR_RESERVED},
};

static const struct block v6_blocks[] = {
	{{0xfc}, 7, ADDR_PRIVATE}, {{0xfe, 0xc0}, 10, ADDR_PRIVATE},
	{{0xfe, 0x80}, 10, ADDR_LINK_LOCAL}, {{0x20, 0x01, 0x0d, 0xb8}, 32, ADDR_RESERVED},
	{{0x20, 0x01, 0}, 23, ADDR_RESERVED}, /* Teredo, ORCHID and their kind */
	{{0x3f, 0xff}, 20, ADDR_RESERVED}, {{0x20}, 3, ADDR_PUBLIC},
	{{0}, 0, ADDR_RESERVED}, /* only 2000::/3 has ever been allocated */
};

/* IPv6 prefixes that are followed by an IPv4 address; the scope here is not used. */
static const struct block v6_carriers[] = {
	{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, ADDR_PUBLIC},
	{{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, ADDR_PUBLIC}, /* SIIT */
	{{0}, 96, ADDR_PUBLIC},
	{{0, 0x64, 0xff, 0x9b}, 96, ADDR_PUBLIC},
	{{0x20, 0x02}, 16, ADDR_PUBLIC},
};

/* Compare the whole bytes of the prefix, then its remaining bits. */
static bool in_block(const uint8_t *a, const struct block *b)
{
	size_t whole = b->bits / 8, rest = b->bits % 8;

	return memcmp(a, b->prefix, whole) == 0 &&
	       (!rest || (a[whole] ^ b->prefix[whole]) >> (8 - rest) == 0);
}

static enum addr_scope scope_in(const struct block *blocks, size_t n, const uint8_t *a)
{
	for (size_t i = 0; i < n; i++)
		if (in_block(a, &blocks[i]))
			return blocks[i].scope;
	return ADDR_PUBLIC;
}

/* Used against SSRF: a registry's redirect must not lead into this host or its network. */
enum addr_scope addr_scope(const struct sockaddr *sa)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	const uint8_t *a = v6.sin6_addr.s6_addr;

	if (sa->sa_family == AF_INET) {
		memcpy(&v4, sa, sizeof(v4)); /* curl's address may be unaligned */
		return scope_in(v4_blocks, ARRAY_LEN(v4_blocks), (const uint8_t *)&v4.sin_addr);
	}
	if (sa->sa_family != AF_INET6)
		return ADDR_RESERVED;
	memcpy(&v6, sa, sizeof(v6));
	if (IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr))
		return ADDR_LOOPBACK;
	/* An embedded IPv4 address decides first: otherwise ::ffff:127.0.0.1 would bypass a check for
	 * loopback. */
	for (size_t i = 0; i < ARRAY_LEN(v6_carriers); i++)
		if (in_block(a, &v6_carriers[i]))
			return scope_in(
				v4_blocks, ARRAY_LEN(v4_blocks), a + v6_carriers[i].bits / 8);
	return scope_in(v6_blocks, ARRAY_LEN(v6_blocks), a);
}

const char *addr_scope_name(enum addr_scope s)
{
	static const char *const names[] = {
		"public", "private", "loopback", "link-local", "reserved"};

	return (size_t)s < ARRAY_LEN(names) ? names[s] : "?";
}
