/* SPDX-License-Identifier: MIT */
/* Where scripted registries send us, what goes there, and what is told of it. */
#include "config.h"

#include "oci/registry_fixture.h"

TestSuite(oci_registry_redirect, .init = setup, .fini = teardown, .timeout = 60);

Test(oci_registry_redirect, a_redirect_to_another_host_gets_no_credential)
{
	cleanup_free char *config = auth_for(r1.host), *to = xasprintf("https://%s/x?y=z", r2.host);
	struct got g;

	challenge(&r1, "https", &r1);
	serve(&r1, img.index.manifest_line, &img.index);
	serve(&r1, img.manifest.manifest_line, &img.manifest);
	redirect(&r1, img.config.blob_line, to);
	reg_rule(&r1, "GET /token?", "200 OK", "{\"token\":\"good\"}", 16);
	serve(&r2, "GET /x?y=z ", &img.config);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r2.seen->reqs, 1);
	cr_assert_eq(reg_saw(&r2, "Authorization"), 0);
}

Test(oci_registry_redirect, a_redirect_on_the_same_host_keeps_the_credential)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	reg_rule(&r1, "GET /x ", "200 OK", img.manifest.text, img.manifest.len)->with =
		"Authorization: Basic dTpwdw==";
	reg_rule(&r1, "GET", "401 No\r\nWWW-Authenticate: Basic realm=r", "", 0)->without =
		"Authorization: Basic dTpwdw==";
	serve(&r1, img.index.manifest_line, &img.index);
	redirect(&r1, img.manifest.manifest_line, "/x");
	serve(&r1, img.config.blob_line, &img.config);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
}

Test(oci_registry_redirect, once_away_no_credential_comes_back)
{
	cleanup_free char *config = auth_for(r1.host), *to = xasprintf("https://%s/x", r2.host);
	cleanup_free char *back = xasprintf("https://%s/back", r1.host);
	struct got g;

	reg_rule(&r1, "GET /v2", "401 No\r\nWWW-Authenticate: Basic realm=r", "", 0)->without =
		"Authorization: Basic";
	redirect(&r1, img.index.manifest_line, to);
	redirect(&r2, "GET /x ", back);
	reg_rule(&r1, "GET /back ", "401 No\r\nWWW-Authenticate: Basic realm=r", "", 0);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_DENIED, "redirect target requires credentials");
	cr_assert_eq(reg_saw(&r1, "GET /back "), 1);
	cr_assert_eq(reg_saw(&r1, "Authorization"), 1);
}

Test(oci_registry_redirect, redirects_that_are_refused)
{
	cleanup_free char *plain = xasprintf("http://%s/x", r3.host);
	const struct {
		const char *to;
		enum err_kind kind;
		const char *said;
		int reqs;
	} t[] = {
		{"/v2/a/b/manifests/loop", ERR_INVALID, "more than 3 redirects", 4},
		{plain, ERR_DENIED, "used over https", 1},
		{"file:///etc/passwd", ERR_DENIED, "neither https nor http", 1},
		{"ftp://127.0.0.1/x", ERR_DENIED, "neither https nor http", 1},
		{"https://169.254.169.254/x", ERR_DENIED, "redirects to a link-local address", 1},
		{"https://10.255.255.1/x", ERR_DENIED, "redirects to a private address", 1},
		{"https://[fd00::1]/x", ERR_DENIED, "redirects to a private address", 1},
		{"https://[::ffff:169.254.169.254]/x", ERR_DENIED,
			"redirects to a link-local address", 1},
		{"https://u:p@127.0.0.1:1/x", ERR_INVALID, "user information", 1},
	};

	strbuf_adds(&insecure, r3.host); /* must not matter */
	reg_start(&r3);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		redirect(&r1, "GET", t[i].to);
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		expect(&g, t[i].kind, t[i].said);
		cr_assert_eq(r1.seen->reqs, t[i].reqs, "%s", t[i].to);
	}
	cr_assert_eq(r3.seen->reqs, 0);
}

Test(oci_registry_redirect, an_insecure_registry_redirects_to_no_other_plain_host)
{
	cleanup_free char *to = xasprintf("http://%s/x", r3.host);
	struct reg plain;
	struct got g;

	reg_open(&plain, NULL);
	redirect(&plain, "GET", to);
	reg_rule(&r3, "GET /x ", "200 OK", "what nobody else may see", 24);
	reg_start(&plain);
	reg_start(&r3);
	strbuf_adds(&insecure, plain.host);
	g = ask(plain.host, img.index.digest, NULL);
	expect(&g, ERR_DENIED, "not listed as insecure");
	cr_assert_eq(plain.seen->reqs, 1);
	cr_assert_eq(r3.seen->reqs, 0);
	reg_stop(&plain);
}

Test(oci_registry_redirect, a_token_server_out_of_reach_is_not_asked)
{
	static const char head[] =
		"401 No\r\nWWW-Authenticate: Bearer realm=\"https://169.254.169.254/token\"";
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	reg_rule(&r1, "GET", head, "no", 2);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_DENIED, "token server: the registry redirects to a link-local address");
	cr_assert_eq(r1.seen->reqs, 1);
}

Test(oci_registry_redirect, an_insecure_registry_may_redirect_to_itself)
{
	struct got g;

	redirect(&r3, img.index.manifest_line, "/x");
	serve(&r3, "GET /x ", &img.index);
	serve_image(&r3, &img);
	reg_start(&r3);
	strbuf_adds(&insecure, r3.host);
	g = ask(r3.host, img.index.digest, NULL);
	expect(&g, ERR_NONE, "the value");
}

Test(oci_registry_redirect, a_name_that_leads_to_this_host_is_not_asked)
{
	cleanup_free char *host = xasprintf("registry.localhost:%d", r3.port); /* RFC 6761 */
	struct got g;

	serve_image(&r3, &img);
	reg_start(&r3);
	strbuf_adds(&insecure, host);
	g = ask(host, img.index.digest, NULL);
	expect(&g, ERR_DENIED, "the host name resolves to a loopback address");
	cr_assert_eq(r3.seen->reqs, 0);
}

Test(oci_registry_redirect, a_refusal_tells_nothing_of_a_body)
{
	static const char body[] = "ami-id 0123456789abcdef of somebody else";
	static const char *const heads[] = {"200 OK", "500 No", "404 No", "302 No"};

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		char hex[SHA256_HEX_LEN + 1];
		uint8_t sum[SHA256_LEN];
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		reg_rule(&r1, "GET", heads[i], body, strlen(body));
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		cr_assert_neq(g.err.kind, ERR_NONE);
		bytes_sha256(body, strlen(body), sum);
		bytes_to_hex(sum, sizeof(sum), hex);
		hex[6] = '\0';
		cr_assert_null(strstr(g.err.text, hex), "%s", g.err.text);
		cr_assert_null(strstr(g.err.text, "ami-"), "%s", g.err.text);
	}
}
