/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/httpd.h"
#include "tec/net/httphead.h"

#define H "Host: a\r\n"

struct row {
	const char *name;
	int status;
	const char *head;
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct httphead out;
		int status = httphead_check(
			rows[i].head, strlen(rows[i].head), &httpd_conf_default.limits, &out);

		cr_expect_eq(status, rows[i].status, "%s: %d instead of %d", rows[i].name, status,
			rows[i].status);
		if (rows[i].status == 0)
			cr_expect_eq(out.head_len, strlen(rows[i].head), "%s", rows[i].name);
	}
}

Test(net_httphead, request_lines)
{
	static const struct row rows[] = {
		{"plain", 0, "GET / HTTP/1.1\r\n" H "\r\n"},
		{"1.0 without Host", 0, "GET / HTTP/1.0\r\n\r\n"},
		{"query", 0, "GET /a/b%20c?d=e&f HTTP/1.1\r\n" H "\r\n"},
		{"HEAD", 0, "HEAD / HTTP/1.1\r\n" H "\r\n"},
		{"OPTIONS is known", 0, "OPTIONS / HTTP/1.1\r\n" H "\r\n"},
		{"unknown method", 501, "BREW / HTTP/1.1\r\n" H "\r\n"},
		{"lower case method", 501, "get / HTTP/1.1\r\n" H "\r\n"},
		{"CONNECT", 501, "CONNECT a:443 HTTP/1.1\r\n" H "\r\n"},
		{"h2 preface", 501, "PRI * HTTP/2.0\r\n\r\n"},
		{"method with a separator", 400, "GE(T / HTTP/1.1\r\n" H "\r\n"},
		{"no method", 400, " / HTTP/1.1\r\n" H "\r\n"},
		{"empty line first", 400, "\r\nGET / HTTP/1.1\r\n" H "\r\n"},
		{"HTTP/0.9", 400, "GET /\r\n\r\n"},
		{"HTTP/0.9 with fields", 400, "GET /\r\n" H "\r\n"},
		{"absolute-form", 0, "GET http://a/ HTTP/1.1\r\n" H "\r\n"},
		{"absolute-form, https", 0, "GET HTTPS://A/b?c HTTP/1.1\r\n" H "\r\n"},
		{"absolute-form with a port", 0, "GET http://a:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n"},
		{"absolute-form of IPv6", 0,
			"GET http://[::1]:80/ HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"},
		{"absolute-form on 1.0", 0, "GET http://a/ HTTP/1.0\r\n\r\n"},
		{"absolute-form on 1.0, another host", 400, "GET http://b/ HTTP/1.0\r\n" H "\r\n"},
		{"absolute-form without Host", 400, "GET http://a/ HTTP/1.1\r\n\r\n"},
		{"absolute-form, empty Host", 400, "GET http://a/ HTTP/1.1\r\nHost:\r\n\r\n"},
		{"another host", 400, "GET http://b/ HTTP/1.1\r\n" H "\r\n"},
		{"a longer host", 400, "GET http://ab/ HTTP/1.1\r\n" H "\r\n"},
		{"another port", 400, "GET http://a:80/ HTTP/1.1\r\n" H "\r\n"},
		{"no host", 400, "GET http:/// HTTP/1.1\r\nHost:\r\n\r\n"},
		{"no path", 400, "GET http://a HTTP/1.1\r\n" H "\r\n"},
		{"query without path", 400, "GET http://a?b HTTP/1.1\r\n" H "\r\n"},
		{"query with a path", 400, "GET http://a?b/ HTTP/1.1\r\nHost: a?b\r\n\r\n"},
		{"user information", 400, "GET http://u@a/ HTTP/1.1\r\n" H "\r\n"},
		{"user information in both", 400, "GET http://u@a/ HTTP/1.1\r\nHost: u@a\r\n\r\n"},
		{"another scheme", 400, "GET ftp://a/ HTTP/1.1\r\n" H "\r\n"},
		{"no scheme", 400, "GET //a HTTP/1.1\r\nHost\r\n\r\n"},
		{"one slash", 400, "GET http:/a/ HTTP/1.1\r\n" H "\r\n"},
		{"fragment in absolute-form", 400, "GET http://a/#b HTTP/1.1\r\n" H "\r\n"},
		{"control in the host", 400, "GET http://a\x01/ HTTP/1.1\r\n" H "\r\n"},
		{"asterisk-form", 400, "OPTIONS * HTTP/1.1\r\n" H "\r\n"},
		{"no slash", 400, "GET a HTTP/1.1\r\n" H "\r\n"},
		{"empty target", 400, "GET  HTTP/1.1\r\n" H "\r\n"},
		{"fragment", 400, "GET /a#b HTTP/1.1\r\n" H "\r\n"},
		{"blank in the target", 400, "GET /a b HTTP/1.1\r\n" H "\r\n"},
		{"two blanks", 400, "GET  / HTTP/1.1\r\n" H "\r\n"},
		{"tab as separator", 400, "GET\t/ HTTP/1.1\r\n" H "\r\n"},
		{"control in the target", 400, "GET /\x01 HTTP/1.1\r\n" H "\r\n"},
		{"DEL in the target", 400, "GET /\x7f HTTP/1.1\r\n" H "\r\n"},
		{"raw UTF-8 in the target", 400, "GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n"},
		{"blank at the end", 400, "GET / HTTP/1.1 \r\n" H "\r\n"},
		{"no version", 400, "GET / \r\n" H "\r\n"},
		{"2.0", 505, "GET / HTTP/2.0\r\n" H "\r\n"},
		{"1.2", 505, "GET / HTTP/1.2\r\n" H "\r\n"},
		{"0.9 named", 505, "GET / HTTP/0.9\r\n" H "\r\n"},
		{"lower case version", 400, "GET / http/1.1\r\n" H "\r\n"},
		{"version without minor", 400, "GET / HTTP/1\r\n" H "\r\n"},
		{"long version", 400, "GET / HTTP/1.11\r\n" H "\r\n"},
		{"bare LF", 400, "GET / HTTP/1.1\n" H "\r\n"},
		{"bare CR", 400, "GET / HTTP/1.1\r" H "\r\n"},
		{"CR in the target", 400, "GET /\rb HTTP/1.1\r\n" H "\r\n"},
	};

	check_rows(rows, ARRAY_LEN(rows));
}

Test(net_httphead, fields)
{
	static const struct row rows[] = {
		{"usual", 0, "GET / HTTP/1.1\r\n" H "Accept: */*\r\nX-Y_z!:a\r\n\r\n"},
		{"empty value", 0, "GET / HTTP/1.1\r\n" H "X:\r\n\r\n"},
		{"tab and obs-text", 0, "GET / HTTP/1.1\r\n" H "X:\ta\xe4\t\r\n\r\n"},
		{"no Host", 400, "GET / HTTP/1.1\r\n\r\n"},
		{"two Hosts", 400, "GET / HTTP/1.1\r\n" H H "\r\n"},
		{"two Hosts on 1.0", 400, "GET / HTTP/1.0\r\n" H H "\r\n"},
		{"Host with a slash", 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
		{"Host with a blank", 400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{"Host with userinfo", 400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
		{"Host list", 400, "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n"},
		{"IPv6 Host", 0, "GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n"},
		{"empty Host", 0, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
		{"blank before the colon", 400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
		{"tab before the colon", 400, "GET / HTTP/1.1\r\n" H "X\t: a\r\n\r\n"},
		{"obs-fold", 400, "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n"},
		{"obs-fold by tab", 400, "GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n"},
		{"fold before the first", 400, "GET / HTTP/1.1\r\n " H "\r\n"},
		{"no colon", 400, "GET / HTTP/1.1\r\n" H "X\r\n\r\n"},
		{"no name", 400, "GET / HTTP/1.1\r\n" H ": a\r\n\r\n"},
		{"name with a blank", 400, "GET / HTTP/1.1\r\n" H "X Y: a\r\n\r\n"},
		{"name with obs-text", 400, "GET / HTTP/1.1\r\n" H "X\xe4: a\r\n\r\n"},
		{"control in a value", 400, "GET / HTTP/1.1\r\n" H "X: a\x01\r\n\r\n"},
		{"escape in a value", 400, "GET / HTTP/1.1\r\n" H "X: \x1b[31m\r\n\r\n"},
		{"DEL in a value", 400, "GET / HTTP/1.1\r\n" H "X: a\x7f\r\n\r\n"},
		{"bare LF in a value", 400, "GET / HTTP/1.1\r\n" H "X: a\nY: b\r\n\r\n"},
		{"bare CR in a value", 400, "GET / HTTP/1.1\r\n" H "X: a\rY: b\r\n\r\n"},
		{"CR CR LF", 400, "GET / HTTP/1.1\r\n" H "X: a\r\r\n\r\n"},
		{"CR in a name", 400, "GET / HTTP/1.1\r\n" H "\rX: a\r\n\r\n"},
		{"unfinished", 400, "GET / HTTP/1.1\r\n" H},
		{"empty", 400, ""},
		{"Upgrade", 400, "GET / HTTP/1.1\r\n" H "Upgrade: h2c\r\n\r\n"},
		{"form", 415,
			"PUT / HTTP/1.1\r\n" H
			"Content-Type: Application/X-WWW-form-urlencoded\r\n\r\n"},
		{"form with a parameter", 415,
			"PUT / HTTP/1.1\r\n" H
			"Content-Type: application/x-www-form-urlencoded; charset=a\r\n\r\n"},
		{"JSON", 0, "PUT / HTTP/1.1\r\n" H "Content-Type: application/json\r\n\r\n"},
		{"gzip", 415, "PUT / HTTP/1.1\r\n" H "Content-Encoding: gzip\r\n\r\n"},
		{"identity and gzip", 415,
			"PUT / HTTP/1.1\r\n" H "content-encoding: identity, gzip\r\n\r\n"},
		{"gzip on a second line", 415,
			"PUT / HTTP/1.1\r\n" H
			"Content-Encoding: identity\r\nContent-Encoding: x-gzip\r\n\r\n"},
		{"coding without a name", 415,
			"PUT / HTTP/1.1\r\n" H "Content-Encoding: \"identity\"\r\n\r\n"},
		{"identity", 0, "PUT / HTTP/1.1\r\n" H "Content-Encoding: Identity\r\n\r\n"},
		{"no coding", 0, "PUT / HTTP/1.1\r\n" H "Content-Encoding: ,\r\n\r\n"},
		{"Expect", 0, "PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\n\r\n"},
		{"other Expect", 417, "PUT / HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n"},
	};

	check_rows(rows, ARRAY_LEN(rows));
}

Test(net_httphead, framing)
{
	static const struct row rows[] = {
		{"length", 0, "PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n"},
		{"largest", 0, "PUT / HTTP/1.1\r\n" H "Content-Length: 16384\r\n\r\n"},
		{"too large", 413, "PUT / HTTP/1.1\r\n" H "Content-Length: 16385\r\n\r\n"},
		{"overflow", 413,
			"PUT / HTTP/1.1\r\n" H "Content-Length: 18446744073709551621\r\n\r\n"},
		{"overflow, long", 413,
			"PUT / HTTP/1.1\r\n" H
			"Content-Length: 99999999999999999999999999999999999999\r\n\r\n"},
		{"two lengths", 400,
			"PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"},
		{"the same length twice", 400,
			"PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\ncontent-length: 5\r\n\r\n"},
		{"list", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n"},
		{"sign", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n"},
		{"negative", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n"},
		{"hex", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n"},
		{"blank inside", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: 5 5\r\n\r\n"},
		{"empty", 400, "PUT / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"},
		{"text", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: five\r\n\r\n"},
		{"high byte", 400, "PUT / HTTP/1.1\r\n" H "Content-Length: \xb2\r\n\r\n"},
		{"chunked", 411, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"},
		{"gzip, chunked", 411,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"},
		{"identity", 411, "PUT / HTTP/1.1\r\n" H "transfer-encoding: identity\r\n\r\n"},
		{"chunked and length", 411,
			"PUT / HTTP/1.1\r\n" H
			"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
		{"length and chunked", 411,
			"PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: x\r\n\r\n"},
		{"chunked on 1.0", 411, "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"obfuscated", 400, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n"},
		{"TE is harmless", 0, "PUT / HTTP/1.1\r\n" H "TE: trailers\r\n\r\n"},
	};

	check_rows(rows, ARRAY_LEN(rows));
}

/* Where it is expected: with nothing beside it that also says where the body ends. */
Test(net_httphead, chunked_bodies_only_where_they_are_expected)
{
	static const struct row rows[] = {
		{"chunked", 0, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"},
		{"in capitals", 0, "PUT / HTTP/1.1\r\n" H "TRANSFER-ENCODING:  Chunked \r\n\r\n"},
		{"twice", 400,
			"PUT / HTTP/1.1\r\n" H
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"and a length", 400,
			"PUT / HTTP/1.1\r\n" H
			"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
		{"a length before it", 400,
			"PUT / HTTP/1.1\r\n" H
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"a length of nothing", 400,
			"PUT / HTTP/1.1\r\n" H
			"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"},
		{"a length and what is not known", 400,
			"PUT / HTTP/1.1\r\n" H
			"Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\n"},
		{"on 1.0", 400, "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"gzip, chunked", 501,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"},
		{"chunked, chunked", 501,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n"},
		{"identity", 501, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"},
		{"empty", 501, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"},
		{"quoted", 501, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n"},
		{"a parameter", 501,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;a=b\r\n\r\n"},
		{"vertical tab", 400,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: \vchunked\r\n\r\n"},
		{"obfuscated", 400, "PUT / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n"},
		{"folded: the first line is empty", 501,
			"PUT / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n"},
	};
	struct httphead_limits limits = httpd_conf_default.limits;

	limits.chunked = true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct httphead out;
		int status = httphead_check(rows[i].head, strlen(rows[i].head), &limits, &out);

		cr_expect_eq(status, rows[i].status, "%s: %d", rows[i].name, status);
		if (status == 0)
			cr_expect(out.chunked && !out.has_length && out.body_len == 0);
	}
}

Test(net_httphead, nul_bytes_anywhere_are_refused)
{
	static const char good[] = "GET /a HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";

	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		char head[sizeof(good)];
		struct httphead out;
		int status;

		memcpy(head, good, sizeof(good));
		head[i] = '\0';
		status = httphead_check(head, sizeof(good) - 1, &httpd_conf_default.limits, &out);
		cr_assert_eq(status, 400, "%d at %zu", status, i);
	}
}

static int check_sized(size_t target, size_t value, unsigned lines)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct httphead out;

	strbuf_adds(&b, "GET /");
	for (size_t i = 1; i < target; i++)
		strbuf_addc(&b, 'a');
	strbuf_adds(&b, " HTTP/1.1\r\nHost: a\r\n");
	for (unsigned i = 1; i < lines; i++) {
		strbuf_adds(&b, "X:");
		for (size_t n = 0; n < value; n++)
			strbuf_addc(&b, 'v');
		strbuf_adds(&b, "\r\n");
	}
	strbuf_adds(&b, "\r\n");
	return httphead_check(b.data, b.len, &httpd_conf_default.limits, &out);
}

Test(net_httphead, limits_hold_to_the_byte)
{
	cr_assert_eq(check_sized(2048, 1, 2), 0);
	cr_assert_eq(check_sized(2049, 1, 2), 414);
	cr_assert_eq(check_sized(10000, 1, 2), 414);
	cr_assert_eq(check_sized(1, 7998, 2), 0);
	cr_assert_eq(check_sized(1, 7999, 2), 431);
	cr_assert_eq(check_sized(1, 1, 64), 0);
	cr_assert_eq(check_sized(1, 1, 65), 431);
	cr_assert_eq(check_sized(1, 5000, 4), 0);
	cr_assert_eq(check_sized(1, 5500, 4), 431);
	cr_assert_eq(check_sized(20000, 1, 2), 431);
	cr_assert_eq(httphead_check("GET /", 5, &(struct httphead_limits){.head = 4},
			     &(struct httphead){.head_len = 0}),
		431);
}

Test(net_httphead, tells_what_the_request_asks_for)
{
	static const struct {
		const char *head;
		bool keep_alive, http10, expect, has_length;
		size_t body;
	} rows[] = {
		{"GET /p HTTP/1.1\r\n" H "\r\n", true, false, false, false, 0},
		{"GET /p HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false, false, false, false,
			0},
		{"GET /p HTTP/1.1\r\n" H "Connection: TE, Close\r\n\r\n", false, false, false,
			false, 0},
		{"GET /p HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", true, false, false, false,
			0},
		{"GET /p HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: close\r\n\r\n",
			false, false, false, false, 0},
		{"GET /p HTTP/1.0\r\n\r\n", false, true, false, false, 0},
		{"GET /p HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, true, false, false, 0},
		{"GET /p HTTP/1.0\r\nConnection: keep-alive,close\r\n\r\n", false, true, false,
			false, 0},
		{"PUT /p HTTP/1.1\r\n" H "Content-Length: \t007 \r\n\r\n", true, false, false, true,
			7},
		{"PUT /p HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", true, false, false, true, 0},
		{"PUT /p HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n", true, false, true, false,
			0},
		{"PUT /p HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", false, true, false, false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct httphead out;
		const char *head = rows[i].head;

		cr_assert_eq(httphead_check(head, strlen(head), &httpd_conf_default.limits, &out),
			0, "%s", head);
		cr_expect_eq(out.keep_alive, rows[i].keep_alive, "%s", head);
		cr_expect_eq(out.http10, rows[i].http10, "%s", head);
		cr_expect_eq(out.expect_continue, rows[i].expect, "%s", head);
		cr_expect_eq(out.has_length, rows[i].has_length, "%s", head);
		cr_expect_eq(out.body_len, rows[i].body, "%s", head);
		cr_expect_eq(out.target_len, 2);
		cr_expect_arr_eq(head + out.target_off, "/p", 2);
		cr_expect_eq(head[out.fields_off - 1], '\n');
	}
}

Test(net_httphead, an_absolute_target_is_its_path)
{
	static const char head[] = "GET http://a/b?c HTTP/1.1\r\n" H "\r\n";
	struct httphead out;

	cr_assert_eq(httphead_check(head, sizeof(head) - 1, &httpd_conf_default.limits, &out), 0);
	cr_assert_eq(out.target_len, 4);
	cr_assert_arr_eq(head + out.target_off, "/b?c", 4);
}

Test(net_httphead, stops_at_the_first_empty_line)
{
	static const char two[] = "GET / HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n";
	struct httphead out;

	cr_assert_eq(httphead_check(two, sizeof(two) - 1, &httpd_conf_default.limits, &out), 0);
	cr_assert_eq(out.head_len, strlen("GET / HTTP/1.1\r\n" H "\r\n"));
}
