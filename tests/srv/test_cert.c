/* SPDX-License-Identifier: MIT */
/* TLS Secrets: which are watched, what becomes of good, bad and missing ones, and what a listener
 * then serves. */
#include "config.h"

#include "srv/srv_testing.h"
#include "tec/pki/cert.h"

TestSuite(srv_cert, .timeout = SUITE_LIMIT);

struct certs {
	struct rig rig; /* of which only API, transport and loop are used */
	struct srv_certs *c;
	unsigned changes;
	struct testing_pem pem[2];
};

static void on_change(void *arg)
{
	((struct certs *)arg)->changes++;
}

static void certs_open(struct certs *t)
{
	rig_open(&t->rig, NULL);
	t->c = srv_certs_new(t->rig.loop, fake_transport_seam(t->rig.ft), NS, on_change, t);
	t->changes = 0;
	for (int i = 0; i < 2; i++)
		t->pem[i] = testing_make_pem(i + 1, 3600);
}

static void certs_close(struct certs *t)
{
	srv_certs_free(t->c);
	for (int i = 0; i < 2; i++)
		testing_pem_fini(&t->pem[i]);
	rig_close(&t->rig);
}

static void want_listed(struct certs *t, const char *a, const char *b, const char *ca_sha256)
{
	const char *const names[] = {a, b, NULL};

	srv_certs_want(t->c, names, 3, ca_sha256);
}

static void want(struct certs *t, const char *a, const char *b)
{
	want_listed(t, a, b, NULL);
}

static void put(struct certs *t, const char *name, int i)
{
	rig_secret(&t->rig, name, t->pem[i].cert, t->pem[i].key, t->pem[i].cert);
}

Test(srv_cert, watches_each_named_secret_alone_and_once)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	want(&t, "a", "a");
	want(&t, "a", "b");
	loop_drain(t.rig.loop);
	cr_assert_eq(fake_transport_count(t.rig.ft, "list", "secrets"), 2);
	cr_assert_eq(fake_transport_count(t.rig.ft, "watch", "secrets"), 2);
	for (size_t i = 0; i < fake_transport_requests(t.rig.ft); i++)
		cr_assert(strstr(fake_transport_request(t.rig.ft, i)->path,
				  "fieldSelector=metadata.name%3D"),
			"%s", fake_transport_request(t.rig.ft, i)->path);
	certs_close(&t);
}

Test(srv_cert, is_filled_when_every_wanted_secret_was_listed_present_or_not)
{
	struct certs t = {.changes = 0};
	struct fake_expect *e;

	certs_open(&t);
	cr_assert(srv_certs_filled(t.c), "nothing is wanted");
	put(&t, "a", 0);
	e = fake_transport_expect(t.rig.ft, "GET", "/api/v1/namespaces/" NS "/secrets*b&*");
	fake_expect_times(e, 0);
	e = fake_transport_expect(t.rig.ft, "GET",
		"/api/v1/namespaces/" NS "/secrets?fieldSelector=metadata.name%3Db&*");
	want(&t, "a", "b");
	loop_drain(t.rig.loop);
	cr_assert_not(srv_certs_filled(t.c));
	cr_assert_not_null(srv_certs_tls(t.c, "a"));
	fake_expect_answer(e, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
	loop_drain(t.rig.loop);
	cr_assert(srv_certs_filled(t.c));
	cr_assert_null(srv_certs_tls(t.c, "b"));
	cr_assert_null(srv_certs_ca(t.c, "b"));
	certs_close(&t);
}

Test(srv_cert, a_new_content_is_a_new_identity_and_ca)
{
	struct certs t = {.changes = 0};
	struct tls_ctx *first;
	unsigned changes;

	certs_open(&t);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	first = tls_ctx_ref(srv_certs_tls(t.c, "a"));
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	changes = t.changes;
	cr_assert_gt(changes, 0);
	put(&t, "a", 1);
	cr_assert_gt(t.changes, changes);
	cr_assert_neq(srv_certs_tls(t.c, "a"), first);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[1].cert);
	tls_ctx_unref(first);
	certs_close(&t);
}

/* What is not a certificate, or not a pair, never replaces one that is. */
Test(srv_cert, garbage_leaves_the_last_good_identity)
{
	struct certs t = {.changes = 0};
	struct tls_ctx *good;

	certs_open(&t);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	good = srv_certs_tls(t.c, "a");
	rig_secret(&t.rig, "a", "garbage", "garbage", t.pem[0].cert);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	cr_assert(strstr(strbuf_str(&t.rig.log), "keeping the last good one"));
	rig_secret(&t.rig, "a", t.pem[0].cert, t.pem[1].key, t.pem[0].cert);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	rig_secret(&t.rig, "a", "", "", t.pem[0].cert);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	rig_secret(&t.rig, "a", NULL, NULL, NULL);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	fake_api_merge(t.rig.api, &kobj_secret, NS, "a",
		"{\"data\":{\"tls.crt\":\"%%%\",\"tls.key\":5,\"ca.crt\":[]}}");
	loop_drain(t.rig.loop);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	fake_api_merge(t.rig.api, &kobj_secret, NS, "a", "{\"data\":null}");
	loop_drain(t.rig.loop);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good);
	put(&t, "a", 1);
	cr_assert_neq(srv_certs_tls(t.c, "a"), good);
	cr_assert(!strstr(strbuf_str(&t.rig.log), "BEGIN"));
	certs_close(&t);
}

/* What a NUL byte hides from one reader, another one sees. */
Test(srv_cert, a_ca_with_a_nul_byte_is_refused_whole)
{
	struct certs t = {.changes = 0};
	cleanup_strbuf struct strbuf ca = STRBUF_INIT, b64 = STRBUF_INIT;
	cleanup_free char *patch = NULL;

	certs_open(&t);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	strbuf_adds(&ca, t.pem[1].cert);
	strbuf_add(&ca, "\0more", 5);
	bytes_to_b64(&b64, ca.data, ca.len);
	patch = xasprintf("{\"data\":{\"ca.crt\":\"%s\"}}", strbuf_str(&b64));
	fake_api_merge(t.rig.api, &kobj_secret, NS, "a", patch);
	loop_drain(t.rig.loop);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	cr_assert(strstr(strbuf_str(&t.rig.log), "ca.crt is unusable"));
	certs_close(&t);
}

Test(srv_cert, a_deleted_secret_is_no_identity)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	fake_api_delete(t.rig.api, &kobj_secret, NS, "a");
	loop_drain(t.rig.loop);
	cr_assert_null(srv_certs_tls(t.c, "a"));
	cr_assert_null(srv_certs_ca(t.c, "a"));
	put(&t, "a", 1);
	cr_assert_not_null(srv_certs_tls(t.c, "a"));
	certs_close(&t);
}

/* Watches that end, and lists again, tell nothing about the Secret. */
Test(srv_cert, a_relist_keeps_the_identity)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	for (int i = 0; i < 3; i++) {
		fake_api_forget_history(t.rig.api);
		fake_api_drop_watches(t.rig.api);
		loop_advance(t.rig.loop, 60000);
		cr_assert_not_null(srv_certs_tls(t.c, "a"));
		cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	}
	certs_close(&t);
}

Test(srv_cert, a_ca_that_is_no_bundle_is_none_and_replaces_none)
{
	struct certs t = {.changes = 0};
	cleanup_strbuf struct strbuf many = STRBUF_INIT;

	certs_open(&t);
	want(&t, "a", NULL);
	rig_secret(&t.rig, "a", t.pem[0].cert, t.pem[0].key, "garbage");
	cr_assert_null(srv_certs_ca(t.c, "a"));
	cr_assert_not_null(srv_certs_tls(t.c, "a"), "its own identity is fine");
	rig_secret(&t.rig, "a", t.pem[0].cert, t.pem[0].key, t.pem[0].key);
	cr_assert_null(srv_certs_ca(t.c, "a"), "a private key would travel to nodes");
	rig_secret(&t.rig, "a", NULL, NULL, t.pem[0].cert);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	while (many.len < 140000)
		strbuf_adds(&many, t.pem[0].cert);
	rig_secret(&t.rig, "a", NULL, NULL, strbuf_str(&many));
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert, "more than 128 KiB");
	rig_secret(&t.rig, "a", NULL, NULL, t.pem[1].key);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	rig_secret(&t.rig, "a", NULL, NULL, NULL);
	cr_assert_null(srv_certs_ca(t.c, "a"), "taken out on purpose");
	cr_assert(strstr(strbuf_str(&t.rig.log), "longer than 128 KiB"), "%s",
		strbuf_str(&t.rig.log));
	certs_close(&t);
}

/* Hashes of the certificates in PEM, to be freed by the caller. */
static char *hashes_of(const char *pem)
{
	struct strbuf hashes = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_read_bundle(pem, strlen(pem), NULL, &hashes, &err), 0);
	return strbuf_steal(&hashes);
}

Test(srv_cert, a_ca_that_is_not_listed_is_like_garbage)
{
	struct certs t = {.changes = 0};
	cleanup_free char *first = NULL, *both = NULL;
	struct tls_ctx *good;

	certs_open(&t);
	first = hashes_of(t.pem[0].cert);
	both = xasprintf("%s%s", t.pem[0].cert, t.pem[1].cert);
	put(&t, "a", 1);
	want_listed(&t, "a", "b", first);
	loop_drain(t.rig.loop);
	cr_assert_null(srv_certs_tls(t.c, "a"));
	cr_assert_null(srv_certs_ca(t.c, "a"));
	cr_assert(strstr(strbuf_str(&t.rig.log), "TLS Secret refused"));
	rig_secret(&t.rig, "a", t.pem[1].cert, t.pem[1].key, both);
	cr_assert_null(srv_certs_tls(t.c, "a"), "one of the two is not listed");
	rig_secret(&t.rig, "a", t.pem[1].cert, t.pem[1].key, "garbage");
	cr_assert_null(srv_certs_tls(t.c, "a"), "nobody knows what it is");
	put(&t, "a", 0);
	good = srv_certs_tls(t.c, "a");
	cr_assert_not_null(good);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	put(&t, "a", 1);
	cr_assert_eq(srv_certs_tls(t.c, "a"), good, "the last good one stays");
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	certs_close(&t);
}

Test(srv_cert, a_changed_list_is_applied_at_once)
{
	struct certs t = {.changes = 0};
	cleanup_free char *first = NULL, *second = NULL, *both = NULL;

	certs_open(&t);
	first = hashes_of(t.pem[0].cert);
	second = hashes_of(t.pem[1].cert);
	both = xasprintf("%s %s", second, first);
	put(&t, "a", 0);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	want_listed(&t, "a", NULL, second);
	cr_assert_null(srv_certs_tls(t.c, "a"));
	cr_assert_null(srv_certs_ca(t.c, "a"));
	want_listed(&t, "a", NULL, both);
	cr_assert_not_null(srv_certs_tls(t.c, "a"));
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[0].cert);
	want_listed(&t, "a", NULL, second);
	put(&t, "a", 1);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[1].cert);
	want_listed(&t, "a", NULL, NULL);
	cr_assert_str_eq(srv_certs_ca(t.c, "a"), t.pem[1].cert);
	certs_close(&t);
}

/* A listener's own identity needs no CA here; nodes have it from elsewhere. */
Test(srv_cert, without_ca_there_is_nothing_to_list)
{
	struct certs t = {.changes = 0};
	cleanup_free char *second = NULL;

	certs_open(&t);
	second = hashes_of(t.pem[1].cert);
	rig_secret(&t.rig, "a", t.pem[0].cert, t.pem[0].key, NULL);
	want_listed(&t, "a", NULL, second);
	loop_drain(t.rig.loop);
	cr_assert_not_null(srv_certs_tls(t.c, "a"));
	cr_assert_null(srv_certs_ca(t.c, "a"));
	certs_close(&t);
}

Test(srv_cert, names_that_are_no_names_are_never_asked_for)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	want(&t, "../secrets/x", "a,metadata.namespace=b");
	loop_drain(t.rig.loop);
	cr_assert_eq(fake_transport_requests(t.rig.ft), 0);
	cr_assert_null(srv_certs_tls(t.c, "../secrets/x"));
	cr_assert_null(srv_certs_tls(t.c, NULL));
	certs_close(&t);
}

Test(srv_cert, names_not_wanted_any_more_are_dropped)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	put(&t, "a", 0);
	put(&t, "b", 1);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	want(&t, "b", NULL);
	cr_assert_null(srv_certs_tls(t.c, "a"));
	loop_drain(t.rig.loop);
	cr_assert_not_null(srv_certs_tls(t.c, "b"));
	for (int i = 0; i < 40; i++) { /* more than there are places */
		cleanup_free char *name = xasprintf("s%d", i);

		want(&t, name, NULL);
		loop_drain(t.rig.loop);
	}
	want(&t, NULL, NULL);
	cr_assert(srv_certs_filled(t.c));
	loop_drain(t.rig.loop);
	cr_assert_eq(fake_transport_in_flight(t.rig.ft), RIG_N, "only the rig's own watches");
	certs_close(&t);
}

Test(srv_cert, an_api_that_fails_is_asked_again)
{
	struct certs t = {.changes = 0};

	certs_open(&t);
	put(&t, "a", 0);
	fake_transport_fault(t.rig.ft, FAKE_FAULT_500, 1);
	want(&t, "a", NULL);
	loop_drain(t.rig.loop);
	cr_assert_not(srv_certs_filled(t.c));
	fake_transport_fault(t.rig.ft, FAKE_FAULT_500, 0);
	loop_advance(t.rig.loop, 60000);
	cr_assert(srv_certs_filled(t.c));
	cr_assert_not_null(srv_certs_tls(t.c, "a"));
	certs_close(&t);
}

/* ---- through a listener */

static long served_serial(struct rig *r, struct cli *c)
{
	X509 *x;
	long serial;

	*c = cli_open(r->loop, r->port);
	cr_assert(
		cli_handshake(c, TLS1_2_VERSION, TLS1_3_VERSION, NULL), "%s", strbuf_str(&r->log));
	x = SSL_get1_peer_certificate(c->ssl);
	serial = ASN1_INTEGER_get(X509_get0_serialNumber(x));
	X509_free(x);
	return serial;
}

static int ask_on(struct cli *c)
{
	cli_send(c, GET_IGNITION);
	return cli_status(c);
}

/* Closed without a byte, so that no node takes plain text for an answer. */
static void says_nothing(struct rig *r, unsigned port)
{
	struct cli c = cli_open(r->loop, port);

	cli_send(&c, GET_IGNITION);
	cr_expect(cli_wait_eof(&c) && c.in.len == 0);
	cli_close(&c);
	cr_expect_eq(rig_posts(r), 0);
}

#define TLS_SPEC(name) "{\"publicTrusteeAddr\":\"t\",\"registerServerSecret\":\"" name "\"}"

Test(srv_cert, a_listener_follows_its_secret_and_kept_connections_go_on)
{
	struct testing_pem one = testing_make_pem(1, 3600), two = testing_make_pem(2, 3600);
	struct cli kept, c;
	struct rig r;

	rig_open(&r, TLS_SPEC("a"));
	says_nothing(&r, r.port);
	rig_secret(&r, "a", one.cert, one.key, NULL);
	cr_assert_eq(served_serial(&r, &kept), 1);
	cr_assert_eq(ask_on(&kept), 200);
	rig_secret(&r, "a", "garbage", "garbage", NULL);
	cr_assert_eq(served_serial(&r, &c), 1);
	cr_assert_eq(ask_on(&c), 200);
	cli_close(&c);
	rig_secret(&r, "a", two.cert, two.key, NULL);
	cr_assert_eq(served_serial(&r, &c), 2);
	cr_assert_eq(ask_on(&c), 200);
	cr_assert_eq(ask_on(&kept), 200);
	cli_close(&c);
	fake_api_delete(r.api, &kobj_secret, NS, "a");
	loop_drain(r.loop);
	cr_assert_eq(ask_on(&kept), 503);
	cli_close(&kept);
	testing_pem_fini(&one);
	testing_pem_fini(&two);
	rig_close(&r);
}

/* As after a restart: the cluster is known before its Secrets are. */
Test(srv_cert, no_listener_says_a_byte_in_plain_text_before_its_secret_is_known)
{
	struct testing_pem pem = testing_make_pem(1, 3600);
	struct rig r;
	struct cli c;

	rig_open(&r, "{\"publicTrusteeAddr\":\"t\",\"registerServerSecret\":\"a\","
		     "\"attestationKeyRegisterSecret\":\"a\"}");
	says_nothing(&r, r.port);
	says_nothing(&r, r.ak_port);
	cr_expect(strstr(strbuf_str(&r.log), "reason=no_certificate"), "%s", strbuf_str(&r.log));
	rig_secret(&r, "a", "garbage", "garbage", NULL);
	says_nothing(&r, r.port);
	rig_secret(&r, "a", pem.cert, pem.key, NULL);
	cr_expect_eq(served_serial(&r, &c), 1);
	cr_expect_eq(ask_on(&c), 200);
	cli_close(&c);
	testing_pem_fini(&pem);
	rig_close(&r);
}

Test(srv_cert, a_listener_follows_the_name)
{
	struct testing_pem one = testing_make_pem(1, 3600), two = testing_make_pem(2, 3600);
	struct cli_reply a;
	struct cli c;
	struct rig r;

	rig_open(&r, NULL);
	rig_secret(&r, "a", one.cert, one.key, NULL);
	rig_secret(&r, "b", two.cert, two.key, NULL);
	rig_cluster(&r, TLS_SPEC("a"));
	cr_assert_eq(served_serial(&r, &c), 1);
	cli_close(&c);
	rig_cluster(&r, TLS_SPEC("b"));
	cr_assert_eq(served_serial(&r, &c), 2);
	cli_close(&c);
	rig_cluster(&r, TLS_SPEC("none"));
	served_serial(&r, &c);
	cli_send(&c, GET_IGNITION);
	cr_assert(cli_reply(&c, &a, false));
	rig_expect(&a, 503, 5,
		"{\"code\":503,\"message\":\"The listener's TLS Secret is missing or unusable\"}",
		"missing");
	cli_close(&c);
	rig_cluster(&r, "{\"publicTrusteeAddr\":\"t\"}");
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200, "no name: plain again");
	testing_pem_fini(&one);
	testing_pem_fini(&two);
	rig_close(&r);
}

Test(srv_cert, hands_out_the_ca_of_each_secret_over_tls)
{
	static const char spec[] =
		"{\"publicTrusteeAddr\":\"t.example.org\","
		"\"publicAttestationKeyRegisterAddr\":\"a\",\"registerServerSecret\":\"s1\","
		"\"trusteeSecret\":\"s2\",\"attestationKeyRegisterSecret\":\"s3\","
		"\"trusteeServers\":[{\"address\":\"b\",\"caSecret\":\"s4\"},{\"address\":\"c\"}]}";
	struct testing_pem pem[4];
	struct rig r;
	struct cli_reply a;
	struct cli c;

	rig_open(&r, NULL);
	for (int i = 0; i < 4; i++) {
		char name[3] = {'s', (char)('1' + i), '\0'};

		pem[i] = testing_make_pem(i + 1, 3600);
		rig_secret(&r, name, pem[i].cert, pem[i].key, pem[i].cert);
	}
	rig_cluster(&r, spec);
	c = cli_open(r.loop, r.port);
	cr_assert(
		cli_handshake(&c, TLS1_2_VERSION, TLS1_3_VERSION, NULL), "%s", strbuf_str(&r.log));
	cli_send(&c, GET_IGNITION);
	cr_assert(cli_reply(&c, &a, false));
	cr_assert_eq(a.status, 200);
	for (int i = 0; i < 4; i++) {
		/* twice escaped: JSON in JSON */
		cleanup_free char *one = rig_replaced(pem[i].cert, "\n", "\\\\n");

		cr_assert_eq(strstr(a.body, one) != NULL, i != 0, "certificate %d", i + 1);
		cr_assert_null(strstr(a.body, "PRIVATE"));
		testing_pem_fini(&pem[i]);
	}
	cr_assert(strstr(a.body, "https://t.example.org") &&
		  strstr(a.body, "https://a/register-ak") && strstr(a.body, "https://b") &&
		  strstr(a.body, "http://c"));
	cli_reply_fini(&a);
	cli_close(&c);
	rig_close(&r);
}

Test(srv_cert, each_listener_needs_what_it_serves_and_hands_out)
{
	char one[] = "one", two[] = "two", ak[] = "ak", trustee[] = "trustee";
	struct model_cluster c = {.ak_secret = ak, .trustee_secret = trustee, .n_servers = 2};
	const char *names[SRV_CERTS_MAX];

	c.server_ca[0] = one;
	c.server_ca[1] = two;
	cr_assert_eq(srv_certs_of(&c, false, names), 1);
	cr_expect_str_eq(names[0], "ak");
	cr_assert_eq(srv_certs_of(&c, true, names), 5);
	cr_expect_null(names[1]);
	cr_expect_str_eq(names[2], "trustee");
	cr_expect_str_eq(names[3], "one");
	cr_expect_str_eq(names[4], "two");
}
