/* SPDX-License-Identifier: MIT */
/* The chain against scripted registries: what is asked, with which credential, and which lies are
 * refused. */
#include "config.h"

#include "oci/registry_fixture.h"

TestSuite(oci_registry, .init = setup, .fini = teardown, .timeout = 60);

/* ---- the chain ---- */

Test(oci_registry, index_manifest_and_config_lead_to_the_label)
{
	struct got g;

	serve_image(&r1, &img);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, NULL);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r1.seen->reqs, 3);
	cr_assert_eq(reg_saw(&r1, "application/vnd.oci.image.index.v1+json"), 2);
	cr_assert_eq(reg_saw(&r1, "application/vnd.docker.distribution.manifest.list.v2+json"), 2);
	cr_assert_eq(reg_saw(&r1, "Authorization"), 0);
	g = ask(r1.host, img.manifest.digest, NULL);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r1.seen->reqs, 5);
}

Test(oci_registry, a_label_may_be_absent_and_must_be_a_string)
{
	static const struct {
		const char *config;
		enum err_kind kind;
		const char *said;
	} t[] = {
		{"{\"config\":{\"Labels\":{\"m\":\"x\"}}}", ERR_NONE, "none"},
		{"{\"config\":{\"Labels\":null}}", ERR_NONE, "none"},
		{"{\"config\":{\"Labels\":{\"l\":[]}}}", ERR_INVALID, "not a string"},
		{"garbage", ERR_INVALID, "configuration"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct image other = image_of(t[i].config);
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		serve_image(&r1, &other);
		reg_start(&r1);
		g = ask(r1.host, other.index.digest, NULL);
		expect(&g, t[i].kind, t[i].said);
		image_fini(&other);
	}
}

static struct got ask_document(char *take_text)
{
	struct doc d = doc_of(take_text);
	struct got g;

	reg_stop(&r1);
	reg_open(&r1, &leaf);
	serve(&r1, d.manifest_line, &d);
	reg_start(&r1);
	g = ask(r1.host, d.digest, NULL);
	cr_assert_eq(r1.seen->reqs, 1);
	doc_fini(&d);
	return g;
}

Test(oci_registry, documents_that_are_no_image_are_invalid)
{
	char *huge = xmalloc(5u << 20);
	struct got g;

	g = ask_document(xstrdup("garbage"));
	expect(&g, ERR_INVALID, "JSON");
	g = ask_document(xstrdup("{\"schemaVersion\":2,\"manifests\":[]}"));
	expect(&g, ERR_INVALID, "not list an image for linux/amd64");
	memset(huge, ' ', 5u << 20);
	huge[(5u << 20) - 1] = '\0';
	g = ask_document(huge);
	expect(&g, ERR_INVALID, "larger than 4194304");
}

Test(oci_registry, an_index_in_an_index_is_refused)
{
	struct doc outer = doc_of(xasprintf(
		"{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":%zu,\"platform\":{"
		"\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
		img.index.digest, img.index.len));
	struct got g;

	serve(&r1, outer.manifest_line, &outer);
	serve_image(&r1, &img);
	reg_start(&r1);
	g = ask(r1.host, outer.digest, NULL);
	expect(&g, ERR_INVALID, "another index");
	doc_fini(&outer);
}

/* ---- lies ---- */

Test(oci_registry, a_body_of_another_digest_is_refused_at_each_step)
{
	const char *lines[] = {
		img.index.manifest_line, img.manifest.manifest_line, img.config.blob_line};
	const struct doc *docs[] = {&img.index, &img.manifest, &img.config};

	for (size_t i = 0; i < 3; i++) {
		struct got g;
		cleanup_free char *text = xstrdup(docs[i]->text);

		text[docs[i]->len - 1] = ' '; /* of the same length */
		reg_stop(&r1);
		reg_open(&r1, &leaf);
		reg_rule(&r1, lines[i], "200 OK", text, docs[i]->len);
		serve_image(&r1, &img);
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		expect(&g, ERR_INVALID, "the content does not match the digest");
		cr_assert_eq(r1.seen->reqs, (int)i + 1);
	}
}

Test(oci_registry, the_size_is_the_descriptors)
{
	struct got g;

	reg_rule(
		&r1, img.manifest.manifest_line, "200 OK", img.manifest.text, img.manifest.len - 1);
	serve_image(&r1, &img);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, NULL);
	expect(&g, ERR_INVALID, "does not have the expected");
}

Test(oci_registry, endless_bodies_end_at_the_bound)
{
	const char *lines[] = {img.index.manifest_line, img.config.blob_line};

	for (size_t i = 0; i < 2; i++) {
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		reg_rule(&r1, lines[i], "200 OK", NULL, 0)->endless = true;
		serve_image(&r1, &img);
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		expect(&g, ERR_INVALID, i ? "larger than 65536" : "larger than 4194304");
	}
}

Test(oci_registry, statuses_say_what_to_do)
{
	static const struct {
		const char *head;
		enum err_kind kind;
		uint32_t retry_ms;
	} t[] = {
		{"404 No", ERR_NOT_FOUND, 0},
		{"403 No", ERR_DENIED, 0},
		{"401 No", ERR_DENIED, 0},
		{"429 No\r\nRetry-After: 7", ERR_TRANSIENT, 7000},
		{"503 No\r\nRetry-After: 9", ERR_TRANSIENT, 9000},
		{"500 No", ERR_TRANSIENT, 0},
		{"204 Empty", ERR_INVALID, 0},
		{"300 Many", ERR_INVALID, 0},
		{"302 Nowhere", ERR_INVALID, 0},
		{"418 Teapot", ERR_INVALID, 0},
		{"401 No\r\nWWW-Authenticate: Negotiate", ERR_DENIED, 0},
		{"401 No\r\nWWW-Authenticate: Basic realm=x", ERR_DENIED, 0},
		{"401 No\r\nWWW-Authenticate: Bearer realm", ERR_INVALID, 0},
		{"401 No\r\nWWW-Authenticate: Bearer realm=\"ftp://x/\"", ERR_DENIED, 0},
		{"401 No\r\nWWW-Authenticate: Bearer realm=\"https://u:p@127.0.0.1/\"", ERR_INVALID,
			0},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		reg_rule(&r1, "GET", t[i].head, str_starts(t[i].head, "204") ? NULL : "x", 1);
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		expect(&g, t[i].kind, r1.host);
		cr_assert_eq(g.err.retry_after_ms, t[i].retry_ms, "%s", t[i].head);
		cr_assert_eq(r1.seen->reqs, 1, "%s", t[i].head);
	}
}

/* ---- credentials ---- */

Test(oci_registry, a_token_is_fetched_once_with_the_password_of_the_host)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	challenge(&r1, "https", &r2);
	serve_image(&r1, &img);
	reg_rule(&r2, "GET /token?service=svc&scope=repository%3Aa%2Fb%3Apull ", "200 OK",
		"{\"token\":\"good\"}", 16)
		->with = "Authorization: Basic dTpwdw==\r\n";
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r2.seen->reqs, 1);
	cr_assert_eq(r1.seen->reqs, 4);
	cr_assert_eq(reg_saw(&r1, "Authorization: Bearer good\r\n"), 3);
	cr_assert_eq(reg_saw(&r1, "Basic"), 0);
	cr_assert_eq(reg_saw(&r2, "Accept: application/vnd"), 0);
}

Test(oci_registry, without_a_password_the_token_is_asked_for_anonymously)
{
	cleanup_free char *config = auth_for("elsewhere.test");
	struct got g;

	challenge(&r1, "https", &r1);
	serve_image(&r1, &img);
	reg_rule(&r1, "GET /token?", "200 OK", "{\"access_token\":\"good\"}", 23);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(reg_saw(&r1, "Basic"), 0);
}

Test(oci_registry, an_identity_token_is_posted_as_a_form)
{
	cleanup_free char *config =
		xasprintf("{\"auths\":{\"%s\":{\"identitytoken\":\"id+1\"}}}", r1.host);
	struct got g;

	challenge(&r1, "https", &r2);
	serve_image(&r1, &img);
	reg_rule(&r2, "POST /token ", "200 OK", "{\"access_token\":\"good\"}", 23)->with =
		"grant_type=refresh_token&client_id=tec-operator&service=svc&"
		"scope=repository%3Aa%2Fb%3Apull&refresh_token=%69%64%2B%31";
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(reg_saw(&r2, "Authorization"), 0);
}

Test(oci_registry, a_password_is_sent_where_it_is_asked_for)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	reg_rule(&r1, "GET", "401 No\r\nWWW-Authenticate: Basic realm=\"r\"", "", 0)->without =
		"Authorization: Basic dTpwdw==\r\n";
	serve_image(&r1, &img);
	reg_start(&r1);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r1.seen->reqs, 4); /* asked once, then sent at once */
}

Test(oci_registry, refused_credentials_are_not_tried_again)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	challenge(&r1, "https", &r2); /* whatever is sent */
	r1.rules[0].without = NULL;
	reg_rule(&r2, "GET /token", "200 OK", "{\"token\":\"good\"}", 16);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_DENIED, "rejected the credentials");
	cr_assert_eq(r1.seen->reqs, 2);
	cr_assert_eq(r2.seen->reqs, 1);
}

Test(oci_registry, token_servers_that_fail)
{
	static const struct {
		const char *head, *body;
		enum err_kind kind;
	} t[] = {
		{"401 No", "", ERR_DENIED},
		{"403 No", "", ERR_DENIED},
		{"400 No", "", ERR_DENIED},
		{"503 No\r\nRetry-After: 5", "", ERR_TRANSIENT},
		{"307 There\r\nLocation: https://127.0.0.1/", "", ERR_INVALID},
		{"200 OK", "{}", ERR_INVALID},
		{"200 OK", "garbage", ERR_INVALID},
		{"200 OK", "{\"token\":\"a\\r\\nX: y\"}", ERR_INVALID},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct got g;

		reg_stop(&r1);
		reg_open(&r1, &leaf);
		challenge(&r1, "https", &r1);
		r1.rules[0].line = "GET /v2/";
		reg_rule(&r1, "GET /token", t[i].head, t[i].body, strlen(t[i].body));
		reg_start(&r1);
		g = ask(r1.host, img.index.digest, NULL);
		expect(&g, t[i].kind, "token server");
		cr_assert_eq(r1.seen->reqs, 2, "%s", t[i].head);
	}
}

Test(oci_registry, a_token_server_in_plain_http_gets_nothing)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	challenge(&r1, "http", &r3);
	reg_start(&r1);
	reg_start(&r3);
	strbuf_adds(&insecure, r3.host); /* does not help: the registry is a secure one */
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_DENIED, "plain http");
	cr_assert_eq(r3.seen->reqs, 0);
}

Test(oci_registry, an_insecure_registry_may_be_its_own_token_server)
{
	cleanup_free char *config = auth_for(r3.host);
	struct got g;

	challenge(&r3, "http", &r3);
	serve_image(&r3, &img);
	reg_rule(&r3, "GET /token?", "200 OK", "{\"token\":\"good\"}", 16)->with = "Basic dTpwdw==";
	reg_start(&r3);
	g = ask(r3.host, img.index.digest, config);
	cr_assert_neq(g.err.kind, ERR_NONE); /* not listed: TLS it is */
	cr_assert_eq(r3.seen->reqs, 0);
	strbuf_adds(&insecure, r3.host);
	g = ask(r3.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
}

Test(oci_registry, an_insecure_registry_cannot_name_another_plain_token_server)
{
	cleanup_free char *config = auth_for(r3.host);
	struct reg tokens;
	struct got g;

	reg_open(&tokens, NULL);
	challenge(&r3, "http", &tokens);
	reg_start(&r3);
	reg_start(&tokens);
	strbuf_adds(&insecure, r3.host);
	g = ask(r3.host, img.index.digest, config);
	expect(&g, ERR_DENIED, "plain http");
	cr_assert_eq(tokens.seen->reqs, 0);
	reg_stop(&tokens);
}

Test(oci_registry, what_cannot_be_asked_is_told_later)
{
	struct got g = ask(r1.host, img.index.digest, "{");

	expect(&g, ERR_INVALID, "registry credentials");
	g = ask(r1.host, "latest", NULL);
	expect(&g, ERR_INVALID, "image reference");
	strbuf_adds(&mirror, "nonsense");
	n_mirrors = 1;
	g = ask(r1.host, img.index.digest, NULL);
	expect(&g, ERR_INVALID, "registry mirror");
}

/* ---- mirrors ---- */

Test(oci_registry, a_mirror_comes_first_and_its_failure_falls_through)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	/* The mirror has the manifest, under its prefix, and lies about the configuration. */
	n_mirrors = 1;
	strbuf_addf(&mirror, "%s=%s/pre/fix", r1.host, r2.host);
	cleanup_free char *index = xasprintf("GET /v2/pre/fix%s", img.index.manifest_line + 7);
	cleanup_free char *man = xasprintf("GET /v2/pre/fix%s", img.manifest.manifest_line + 7);
	serve(&r2, index, &img.index);
	serve(&r2, man, &img.manifest);
	reg_rule(&r2, "GET", "200 OK", "lie", 3);
	serve_image(&r1, &img);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r2.seen->reqs, 3);
	cr_assert_eq(r1.seen->reqs, 1); /* what was verified is not asked again */
}

Test(oci_registry, a_mirror_gets_its_own_credential_only)
{
	cleanup_free char *config = auth_for(r1.host);
	struct got g;

	n_mirrors = 1;
	strbuf_addf(&mirror, "%s=%s", r1.host, r2.host);
	reg_rule(&r2, "GET", "401 No\r\nWWW-Authenticate: Basic realm=r", "", 0);
	reg_rule(&r1, "GET", "404 No", "", 0);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, config);
	expect(&g, ERR_NOT_FOUND, "tried ");
	cr_assert(strstr(g.err.text, r1.host) && strstr(g.err.text, r2.host), "%s", g.err.text);
	cr_assert_eq(reg_saw(&r2, "Authorization"), 0);
	cr_assert_eq(r2.seen->reqs, 1);
}

Test(oci_registry, a_mirror_of_another_registry_is_not_asked)
{
	struct got g;

	n_mirrors = 1;
	strbuf_addf(&mirror, "quay.io=%s", r2.host);
	serve_image(&r1, &img);
	reg_start(&r1);
	reg_start(&r2);
	g = ask(r1.host, img.index.digest, NULL);
	expect(&g, ERR_NONE, "the value");
	cr_assert_eq(r2.seen->reqs, 0);
}

Test(oci_registry, mirrors_are_checked)
{
	static const char *const bad[] = {"", "a", "a=", "=b", "a=b/", "a=b//c", "a=b/C", "a=b:x",
		"a=https://b", "a b=c", "a=b c"};
	struct err err = ERR_INIT;
	struct oci_mirror m;

	cr_assert_eq(oci_mirror_parse("docker.io=[::1]:5000/x/y", &m, &err), 0, "%s", err.text);
	cr_assert_str_eq(m.registry, "docker.io");
	cr_assert_str_eq(m.host, "[::1]:5000");
	cr_assert_str_eq(m.prefix, "x/y");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		err_clear(&err);
		cr_assert_eq(oci_mirror_parse(bad[i], &m, &err), -1, "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

/* ---- time, and ends ---- */

/* Silent at the n-th document: a request is in flight whenever the op is cancelled. */
static void silent_at(size_t n)
{
	const struct doc *docs[] = {&img.index, &img.manifest, &img.config};
	const char *lines[] = {
		img.index.manifest_line, img.manifest.manifest_line, img.config.blob_line};

	reg_stop(&r1);
	reg_open(&r1, &leaf);
	challenge(&r1, "https", &r1);
	for (size_t i = 0; i < 3; i++) {
		if (i == n)
			reg_rule(&r1, lines[i], "200 OK", NULL, 0)->silent = true;
		serve(&r1, lines[i], docs[i]);
	}
	if (n == 3)
		reg_rule(&r1, "GET /token", "200 OK", NULL, 0)->silent = true;
	reg_rule(&r1, "GET /token", "200 OK", "{\"token\":\"good\"}", 16);
	reg_start(&r1);
}

static void wait_requests(int n)
{
	uint64_t end = clock_boot_ms() + 10000;

	while (r1.seen->reqs < n && clock_boot_ms() < end)
		loop_turn(l, 20);
	cr_assert_eq(r1.seen->reqs, n);
}

Test(oci_registry, a_cancel_at_any_point_leaks_nothing)
{
	static const int reqs[] = {3, 4, 5, 2}; /* 401, token, index, manifest, config */
	cleanup_free char *config = NULL;
	struct got g;

	start_ask(&g, r1.host, img.index.digest, NULL);
	op_cancel(&g.op); /* before anything */
	start_ask(&g, r1.host, img.index.digest, "{");
	op_cancel(&g.op); /* with a failure on its way */
	for (size_t n = 0; n < 4; n++) {
		silent_at(n);
		free(config);
		config = auth_for(r1.host);
		start_ask(&g, r1.host, img.index.digest, config);
		wait_requests(reqs[n]);
		op_cancel(&g.op);
		cr_assert_not(g.done);
		cr_assert(op_scope_is_empty(&ops));
	}
}

Test(oci_registry, a_silent_registry_ends_with_the_requests_deadline)
{
	struct got g;

	clock_fake_start(1000, 1000);
	silent_at(0);
	start_ask(&g, r1.host, img.index.digest, NULL);
	for (int i = 0; i < 3000 && r1.seen->reqs < 3; i++)
		loop_turn(l, 10);
	cr_assert_eq(r1.seen->reqs, 3);
	loop_advance(l, 29000);
	cr_assert_not(g.done);
	loop_advance(l, 1100);
	cr_assert(g.done);
	expect(&g, ERR_TRANSIENT, "no answer within 30000 ms");
	clock_fake_stop();
}

Test(oci_registry, a_question_has_a_deadline_of_its_own)
{
	struct got g;

	clock_fake_start(1000, 1000);
	n_mirrors = 5; /* none accepts: 30 s each */
	strbuf_addf(&mirror, "%s=%s", r1.host, r2.host);
	start_ask(&g, r1.host, img.index.digest, NULL);
	loop_advance(l, 119000);
	cr_assert_not(g.done);
	loop_advance(l, 1100);
	cr_assert(g.done);
	expect(&g, ERR_TRANSIENT, "longer than 120 s");
	clock_fake_stop();
}
