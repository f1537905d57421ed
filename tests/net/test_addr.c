/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
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

Test(net_addr, formats_what_it_does_not_know_as_a_question_mark)
{
	struct sockaddr sa = {.sa_family = AF_UNIX};
	char text[ADDR_TEXT_LEN];

	addr_format(NULL, text);
	cr_assert_str_eq(text, "?");
	addr_format(&sa, text);
	cr_assert_str_eq(text, "?");
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

Test(net_addr, a_source_is_an_address_or_a_network_of_64_bits)
{
	static const struct {
		const char *a, *b;
		bool same;
	} t[] = {
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[::ffff:192.0.2.1]:1", "192.0.2.1:1", true},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:1:ffff::2]:1", true},
		{"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", false},
	};
	uint8_t key[2][ADDR_SOURCE_LEN];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct addr a, b;

		cr_assert_eq(addr_parse(t[i].a, &a, &err), 0);
		cr_assert_eq(addr_parse(t[i].b, &b, &err), 0);
		addr_source((const struct sockaddr *)&a.ss, key[0]);
		addr_source((const struct sockaddr *)&b.ss, key[1]);
		cr_expect_eq(memcmp(key[0], key[1], ADDR_SOURCE_LEN) == 0, t[i].same, "%s %s",
			t[i].a, t[i].b);
	}
	addr_source(NULL, key[0]);
	cr_assert_neq(memcmp(key[0], key[1], ADDR_SOURCE_LEN), 0);
}
