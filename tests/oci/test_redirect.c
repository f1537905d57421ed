/* SPDX-License-Identifier: MIT */
/* Where a registry may send us, as tables. */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/redirect.h"

static const char *const insecure[] = {"plain.test:5000", "other.test", "[fd00::1]:80"};

static struct oci_place place_at(const char *base)
{
	return (struct oci_place){
		.base = base, .insecure = insecure, .n_insecure = ARRAY_LEN(insecure)};
}

Test(oci_redirect, plain_http_stays_among_the_hosts_that_are_listed)
{
	static const struct {
		const char *base, *from, *to;
		bool ok;
	} t[] = {
		{"https://r.test/v2/a", "https://r.test/v2/a", "https://s3.test/x", true},
		{"https://r.test/v2/a", "https://r.test/v2/a", "HTTPS://r.test:5000", true},
		{"https://r.test/v2/a", "https://r.test/v2/a", "http://r.test/x", false},
		{"https://r.test/v2/a", "https://r.test/v2/a", "http://plain.test:5000/x", false},
		{"https://r.test/v2/a", "https://s3.test/x", "http://other.test/", false},
		{"http://plain.test:5000/v2/a", "http://plain.test:5000/v2/a",
			"http://plain.test:5000/x", true},
		{"http://plain.test:5000/v2/a", "http://plain.test:5000/v2/a",
			"HTTP://PLAIN.test:5000?x", true},
		{"http://plain.test:5000/v2/a", "http://plain.test:5000/v2/a", "http://other.test",
			true},
		{"http://plain.test:5000/v2/a", "http://plain.test:5000/v2/a",
			"http://[fd00::1]:80/", true},
		{"http://plain.test:5000/v2/a", "http://plain.test:5000/v2/a", "https://s3.test/x",
			true},
		/* Away over https, it does not come back to plain http. */
		{"http://plain.test:5000/v2/a", "https://s3.test/x", "http://plain.test:5000/x",
			false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct oci_place p = place_at(t[i].base);
		struct err err = ERR_INIT;

		cr_assert_eq(oci_redirect_check(&p, t[i].from, t[i].to, &err) == 0, t[i].ok,
			"%s -> %s: %s", t[i].from, t[i].to, err.text);
		cr_assert_eq(err.kind, t[i].ok ? ERR_NONE : ERR_DENIED);
	}
}

Test(oci_redirect, hostile_targets_of_a_plain_registry_are_refused)
{
	static const char *const bad[] = {"", "/x", "//plain.test:5000/", "http:", "http:/",
		"http://", "http:///", "http://169.254.169.254/latest/meta-data/",
		"http://10.0.0.1:10250/pods", "http://[::1]:8081/metrics",
		"http://plain.test:5000.evil.test/", "http://plain.test:50000/",
		"http://plain.test/", "http://plain.test:5000@evil.test/",
		"http://u@plain.test:5000/", "http://evil.test/http://plain.test:5000/",
		"http://evil.test?plain.test:5000", "http://evil.test#plain.test:5000/",
		"http://plain.test:5000\\@evil.test/", "http://other.test./",
		"http://plain.test:05000/", "file:///etc/passwd", "ftp://plain.test:5000/",
		"gopher://127.0.0.1:6379/_x", "httpx://plain.test:5000/", "unix:///run/x"};
	struct oci_place p = place_at("http://plain.test:5000/v2/a/b");

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_assert_eq(oci_redirect_check(&p, p.base, bad[i], &err), -1, "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_DENIED);
	}
}

Test(oci_redirect, addresses_are_public_or_of_the_registrys_kind)
{
	for (enum addr_scope s = ADDR_PUBLIC; s <= ADDR_RESERVED; s++) {
		struct oci_place p = place_at("https://r.test/v2/a");

		p.answered = true;
		p.scope = s;
		cr_assert_eq(oci_redirect_reach(&p, "https://elsewhere.test/x"),
			ADDR_REACH(ADDR_PUBLIC) | ADDR_REACH(s));
		/* Its own name too: what DNS says may be another thing by now. */
		cr_assert_eq(oci_redirect_reach(&p, "https://r.test/x"),
			ADDR_REACH(ADDR_PUBLIC) | ADDR_REACH(s));
	}
}

Test(oci_redirect, only_a_number_or_localhost_may_be_this_host)
{
	static const struct {
		const char *base;
		bool literal;
	} t[] = {
		{"http://127.0.0.1:5000/v2/a", true},
		{"https://169.254.169.254/v2/a", true},
		{"https://[::1]:5000/v2/a", true},
		{"https://[fe80::1]/v2/a", true},
		{"http://localhost:5000/v2/a", true},
		{"http://LOCALHOST/v2/a", true},
		{"https://r.test/v2/a", false},
		{"https://localhost.evil.test/v2/a", false},
		{"https://127.0.0.1.evil.test/v2/a", false},
		{"https://127.1/v2/a", false},
		{"https://2130706433/v2/a", false},
		{"https://0x7f.1/v2/a", false},
	};
	unsigned ours = ADDR_REACH(ADDR_LOOPBACK) | ADDR_REACH(ADDR_LINK_LOCAL);

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct oci_place p = place_at(t[i].base);
		unsigned reach = oci_redirect_reach(&p, t[i].base);

		cr_assert_eq(reach & ours, t[i].literal ? ours : 0, "%s", t[i].base);
		cr_assert(reach & ADDR_REACH(ADDR_PRIVATE), "%s", t[i].base);
		cr_assert_eq(oci_redirect_reach(&p, "https://elsewhere.test/"),
			ADDR_REACH(ADDR_PUBLIC), "before it has answered");
	}
}
