/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/net/httpc_proxy.h"

static const char *const names[] = {
	"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"};

static void clear(void)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

TestSuite(httpc_proxy, .init = clear);

Test(httpc_proxy, each_scheme_has_its_variables_and_lower_case_wins)
{
	static const char https[] = "https://registry.test/v2/", http[] = "http://registry.test/";

	cr_assert_null(httpc_proxy_of_env(https));
	setenv("HTTP_PROXY", "http://header:1", 1); /* from a request's header, in CGI programs */
	cr_assert_null(httpc_proxy_of_env(http));
	cr_assert_null(httpc_proxy_of_env(https));
	setenv("HTTPS_PROXY", "http://upper:1", 1);
	cr_assert_str_eq(httpc_proxy_of_env(https), "http://upper:1");
	setenv("https_proxy", "http://lower:1", 1);
	cr_assert_str_eq(httpc_proxy_of_env(https), "http://lower:1");
	cr_assert_null(httpc_proxy_of_env(http));
	setenv("http_proxy", "plain:1", 1);
	cr_assert_str_eq(httpc_proxy_of_env(http), "plain:1");
	setenv("https_proxy", "", 1);
	cr_assert_str_eq(httpc_proxy_of_env(https), "http://upper:1");
	setenv("NO_PROXY", "registry.test", 1);
	cr_assert_null(httpc_proxy_of_env(https));
	setenv("no_proxy", "other.test", 1);
	cr_assert_str_eq(httpc_proxy_of_env(https), "http://upper:1");
}

Test(httpc_proxy, a_child_gets_these_variables_only)
{
	const char *env[HTTPC_PROXY_VARIABLES + 1] = {"x", "x", "x", "x", "x", "x"};

	httpc_proxy_env(env);
	cr_assert_null(env[0]);
	setenv("https_proxy_not", "1", 1);
	setenv("HTTP_PROXY", "2", 1);
	setenv("https_proxy", "http://a:1", 1);
	setenv("NO_PROXY", "b,c", 1);
	httpc_proxy_env(env);
	cr_assert(strcmp(env[0], "https_proxy=http://a:1") == 0 ||
		  strcmp(env[1], "https_proxy=http://a:1") == 0);
	cr_assert(strcmp(env[0], "NO_PROXY=b,c") == 0 || strcmp(env[1], "NO_PROXY=b,c") == 0);
	cr_assert_null(env[2]);
	unsetenv("https_proxy_not");
}

Test(httpc_proxy, hosts_that_are_connected_to_directly)
{
	static const struct {
		const char *list, *url;
		bool listed;
	} cases[] = {
		{"", "https://a.test", false},
		{"*", "https://a.test:5000/v2/", true},
		{"a.test", "https://a.test:5000/v2/", true},
		{"a.test", "https://A.TEST./v2/", true},
		{"x.test, a.test", "https://b.a.test", true},
		{".a.test", "https://b.a.test", true},
		{".a.test", "https://a.test", true},
		{"a.test", "https://ba.test", false},
		{"a.test", "https://a.test.evil", false},
		{"b.a.test", "https://a.test", false},
		{",,. ,", "https://a.test", false},
		{"10.0.0.0/8", "https://10.255.0.1", true},
		{"10.0.0.0/8", "https://11.0.0.1", false},
		{"10.0.0.0/9", "https://10.128.0.1", false},
		{"10.0.0.0/9", "https://10.127.0.1", true},
		{"0.0.0.0/0", "https://1.2.3.4", true},
		{"0.0.0.0/0", "https://[::1]", false},
		{"10.0.0.0/33", "https://10.0.0.0", false},
		{"10.0.0.0/", "https://10.0.0.0", false},
		{"127.0.0.1", "http://127.0.0.1:5000/", true},
		{"127.0.0.1", "http://0x7f.1:5000/", true},
		{"127.0.0.1", "http://127.0.0.11/", false},
		{"1", "http://127.0.0.1/", false},
		{"::1", "https://[::1]:5000/", true},
		{"[::1]", "https://[0:0::1]/", true},
		{"2001:db8::/32", "https://[2001:db8:1::2]/", true},
		{"2001:db8::/32", "https://[2001:db9::]/", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(httpc_proxy_excepts(cases[i].list, cases[i].url), cases[i].listed,
			"%s of %s", cases[i].url, cases[i].list);
}

Test(httpc_proxy, the_url_may_say_where_it_leads)
{
	static const struct {
		const char *url;
		enum addr_scope scope;
	} cases[] = {
		{"https://registry.test/", ADDR_PUBLIC},
		{"https://8.8.8.8/", ADDR_PUBLIC},
		{"https://10.1.2.3:5000/", ADDR_PRIVATE},
		{"http://169.254.169.254/latest", ADDR_LINK_LOCAL},
		{"http://0x7f.1/", ADDR_LOOPBACK},
		{"http://2130706433/", ADDR_LOOPBACK},
		{"http://127.1/", ADDR_LOOPBACK},
		{"http://[::1]/", ADDR_LOOPBACK},
		{"http://[::ffff:127.0.0.1]/", ADDR_LOOPBACK},
		{"http://[fe80::1]/", ADDR_LINK_LOCAL},
		{"http://localhost:1/", ADDR_LOOPBACK},
		{"http://LOCALHOST./", ADDR_LOOPBACK},
		{"http://a.localhost/", ADDR_LOOPBACK},
		{"http://notlocalhost/", ADDR_PUBLIC},
		/* curl decodes these. */
		{"http://127%2e0.0.1/", ADDR_RESERVED},
		{"http://\xef\xbc\x91"
		 "27.0.0.1/",
			ADDR_RESERVED},
		{"http://a@127.0.0.1/", ADDR_RESERVED},
		{"http://", ADDR_RESERVED},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(httpc_proxy_scope(cases[i].url), cases[i].scope, "%s", cases[i].url);
}

Test(httpc_proxy, proxies_of_other_types_are_refused)
{
	static const char *const good[] = {"http://p:1", "HTTPS://u:secret@p:1", "p:3128", "p",
		"http://[::1]:1"},
				 *const bad[] = {"socks5://u:secret@p:1", "socks5h://p", "http://",
					 "http:///p", "http://secret p", ""};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		cr_expect_eq(httpc_proxy_check(good[i], &err), 0, "%s: %s", good[i], err.text);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err_clear(&err);
		cr_expect_eq(httpc_proxy_check(bad[i], &err), -1, "%s", bad[i]);
		cr_expect(err.kind == ERR_INVALID && !strstr(err.text, "secret"), "%s", err.text);
	}
	err_clear(&err);
	cr_expect_eq(httpc_proxy_check("socks5://p:1", &err), -1);
	cr_expect(strstr(err.text, "socks5"), "%s", err.text);
}
