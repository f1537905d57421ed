/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/addr.h"

Test(net_addr, reads_numeric_addresses_and_writes_them_back)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"127.0.0.1:8000", "127.0.0.1:8000"},
		{"0.0.0.0:0", "0.0.0.0:0"},
		{"[::1]:8001", "[::1]:8001"},
		{"[::]:65535", "[::]:65535"},
		{"[2001:db8::7]:1", "[2001:db8::7]:1"},
		{":8000", "[::]:8000"},
		{"[::ffff:10.1.2.3]:80", "10.1.2.3:80"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct addr a;
		char text[ADDR_TEXT_LEN];

		cr_assert_eq(addr_parse(rows[i].in, &a, &err), 0, "%s: %s", rows[i].in, err.text);
		addr_format((struct sockaddr *)&a.ss, text);
		cr_assert_str_eq(text, rows[i].out);
	}
}

Test(net_addr, refuses_everything_else)
{
	static const char *const rows[] = {"", "8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
		"127.0.0.1:-1", "127.0.0.1:8x", "localhost:80", "::1:80", "[::1]", "[::1]80",
		"[]:80", "[:80", "[127.0.0.1]:80", "127.0.0.1]:80", "1.2.3:80", " 127.0.0.1:80",
		"[::1%lo]:80", "not-an-ip:80",
		"[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd]:1"};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct addr a;

		cr_assert_eq(addr_parse(rows[i], &a, &err), -1, "%s", rows[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

static const struct {
	const char *text;
	enum addr_scope scope;
} scopes[] = {
	{"8.8.8.8", ADDR_PUBLIC},
	{"1.0.0.0", ADDR_PUBLIC},
	{"9.255.255.255", ADDR_PUBLIC},
	{"10.0.0.0", ADDR_PRIVATE},
	{"10.255.255.255", ADDR_PRIVATE},
	{"11.0.0.0", ADDR_PUBLIC},
	{"172.15.255.255", ADDR_PUBLIC},
	{"172.16.0.0", ADDR_PRIVATE},
	{"172.31.255.255", ADDR_PRIVATE},
	{"172.32.0.0", ADDR_PUBLIC},
	{"192.167.255.255", ADDR_PUBLIC},
	{"192.168.0.1", ADDR_PRIVATE},
	{"192.169.0.0", ADDR_PUBLIC},
	{"100.63.255.255", ADDR_PUBLIC},
	{"100.64.0.0", ADDR_PRIVATE},
	{"100.127.255.255", ADDR_PRIVATE},
	{"100.128.0.0", ADDR_PUBLIC},
	{"127.0.0.1", ADDR_LOOPBACK},
	{"127.255.255.255", ADDR_LOOPBACK},
	{"0.0.0.0", ADDR_LOOPBACK},
	{"0.1.2.3", ADDR_LOOPBACK},
	{"169.253.255.255", ADDR_PUBLIC},
	{"169.254.169.254", ADDR_LINK_LOCAL},
	{"192.0.0.1", ADDR_RESERVED},
	{"192.0.2.1", ADDR_RESERVED},
	{"198.17.255.255", ADDR_PUBLIC},
	{"198.19.255.255", ADDR_RESERVED},
	{"203.0.113.9", ADDR_RESERVED},
	{"223.255.255.255", ADDR_PUBLIC},
	{"224.0.0.1", ADDR_RESERVED},
	{"240.0.0.1", ADDR_RESERVED},
	{"255.255.255.255", ADDR_RESERVED},
	{"2600::1", ADDR_PUBLIC},
	{"2a00:1450::200e", ADDR_PUBLIC},
	{"::1", ADDR_LOOPBACK},
	{"::", ADDR_LOOPBACK},
	{"fc00::1", ADDR_PRIVATE},
	{"fdff:ffff::1", ADDR_PRIVATE},
	{"fec0::1", ADDR_PRIVATE},
	{"fe7f::1", ADDR_RESERVED},
	{"fe80::1", ADDR_LINK_LOCAL},
	{"febf::1", ADDR_LINK_LOCAL},
	{"ff02::1", ADDR_RESERVED},
	{"2001:db8::1", ADDR_RESERVED},
	{"2001::1", ADDR_RESERVED},
	{"64:ff9b:1::a00:1", ADDR_RESERVED},
	{"4000::1", ADDR_RESERVED},
	/* With an IPv4 address inside. */
	{"::ffff:8.8.8.8", ADDR_PUBLIC},
	{"::ffff:127.0.0.1", ADDR_LOOPBACK},
	{"::ffff:169.254.169.254", ADDR_LINK_LOCAL},
	{"::ffff:0:10.0.0.1", ADDR_PRIVATE},
	{"::10.0.0.1", ADDR_PRIVATE},
	{"::127.0.0.1", ADDR_LOOPBACK},
	{"64:ff9b::10.1.2.3", ADDR_PRIVATE},
	{"64:ff9b::8.8.8.8", ADDR_PUBLIC},
	{"2002:a00:1::", ADDR_PRIVATE},
	{"2002:7f00:1::", ADDR_LOOPBACK},
	{"2002:808:808::1", ADDR_PUBLIC},
};

Test(net_addr, an_address_says_where_it_leads)
{
	struct sockaddr unknown = {.sa_family = AF_UNIX};

	for (size_t i = 0; i < ARRAY_LEN(scopes); i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
		bool is_v4 = inet_pton(AF_INET, scopes[i].text, &v4.sin_addr) == 1;

		cr_assert(is_v4 || inet_pton(AF_INET6, scopes[i].text, &v6.sin6_addr) == 1);
		cr_assert_eq(addr_scope(is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6),
			scopes[i].scope, "%s", scopes[i].text);
	}
	cr_assert_eq(addr_scope(&unknown), ADDR_RESERVED);
	cr_assert_str_eq(addr_scope_name(ADDR_LINK_LOCAL), "link-local");
}

Test(net_addr, formats_what_it_does_not_know_as_a_question_mark)
{
	struct sockaddr sa = {.sa_family = AF_UNSPEC}, local = {.sa_family = AF_UNIX};
	char text[ADDR_TEXT_LEN];

	addr_format(NULL, text);
	cr_assert_str_eq(text, "?");
	addr_format(&sa, text);
	cr_assert_str_eq(text, "?");
	addr_format(&local, text);
	cr_assert_str_eq(text, "local");
}

Test(net_addr, listens_non_blocking_and_close_on_exec)
{
	struct err err = ERR_INIT;
	struct addr a;
	int fd;

	cr_assert_eq(addr_parse("127.0.0.1:0", &a, &err), 0);
	fd = addr_listen(&a, &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_assert_gt(addr_port(fd), 0);
	cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

Test(net_addr, all_addresses_take_ipv4_too)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	struct err err = ERR_INIT;
	struct addr a;
	int fd, c;

	cr_assert_eq(addr_parse(":0", &a, &err), 0);
	fd = addr_listen(&a, &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	sa.sin_port = htons((uint16_t)addr_port(fd));
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(c, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(c);
	close(fd);
}

Test(net_addr, says_what_to_do_when_the_port_is_taken)
{
	struct err err = ERR_INIT;
	struct addr a;
	char text[ADDR_TEXT_LEN];
	int fd;

	cr_assert_eq(addr_parse("127.0.0.1:0", &a, &err), 0);
	fd = addr_listen(&a, &err);
	snprintf(text, sizeof(text), "127.0.0.1:%u", addr_port(fd));
	cr_assert_eq(addr_parse(text, &a, &err), 0);
	cr_assert_eq(addr_listen(&a, &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, "choose another port"), "%s", err.text);
	close(fd);
}

Test(net_addr, a_local_socket_has_its_mode_and_replaces_only_a_stale_one)
{
	char dir[] = "/tmp/test_addr.XXXXXX", path[64], long_path[200];
	struct err err = ERR_INIT;
	struct stat st;
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	fd = addr_listen_local(path, 0640, getgid(), &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode, S_IFSOCK | 0640);
	cr_assert_eq(addr_port(fd), 0);
	cr_assert_eq(addr_listen_local(path, 0640, (gid_t)-1, &err), -1, "somebody listens there");
	cr_assert_eq(err.kind, ERR_INVALID);
	close(fd);
	err = (struct err)ERR_INIT;
	fd = addr_listen_local(path, 0600, (gid_t)-1, &err);
	cr_assert_geq(fd, 0, "%s", err.text);
	close(fd);
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	cr_assert_eq(addr_listen_local(path, 0600, (gid_t)-1, &err), -1, "a file is not replaced");
	unlink(path);
	rmdir(dir);
	memset(long_path, '/', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	err = (struct err)ERR_INIT;
	cr_assert_eq(addr_listen_local(long_path, 0600, (gid_t)-1, &err), -1);
	err = (struct err)ERR_INIT;
	cr_assert_eq(addr_listen_local("relative", 0600, (gid_t)-1, &err), -1);
}

/* Only a privileged process may give the socket to a group that it does not belong to. */
Test(net_addr, a_local_socket_that_failed_leaves_no_file)
{
	char dir[] = "/tmp/test_addr.XXXXXX", path[64];
	struct err err = ERR_INIT;
	struct stat st;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0777), 0);
	snprintf(path, sizeof(path), "%s/s", dir);
	if (geteuid() == 0)
		cr_assert_eq(seteuid(65534), 0);
	cr_assert_eq(addr_listen_local(path, 0640, 54321, &err), -1);
	cr_assert_eq(err.sys, EPERM);
	cr_assert_eq(stat(path, &st), -1);
	cr_assert_eq(errno, ENOENT);
	if (getuid() == 0)
		cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(rmdir(dir), 0);
}

Test(net_addr, a_source_is_an_ipv4_address_or_an_ipv6_64)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {
		{"10.0.0.1:1", "10.0.0.1:2", true},
		{"10.0.0.1:1", "10.0.0.2:1", false},
		{"10.0.0.1:1", "[::ffff:10.0.0.1]:1", true},
		{"[2001:db8::1]:1", "[2001:db8::ffff:0:0:2]:1", true},
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"0.0.0.0:1", "[::]:1", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t a[ADDR_SOURCE_LEN], b[ADDR_SOURCE_LEN];
		struct err err = ERR_INIT;
		struct addr addr;

		cr_assert_eq(addr_parse(rows[i].a, &addr, &err), 0, "%s", err.text);
		addr_source((const struct sockaddr *)&addr.ss, a);
		cr_assert_eq(addr_parse(rows[i].b, &addr, &err), 0, "%s", err.text);
		addr_source((const struct sockaddr *)&addr.ss, b);
		cr_expect_eq(memcmp(a, b, sizeof(a)) == 0, rows[i].same, "row %zu", i);
	}
}
