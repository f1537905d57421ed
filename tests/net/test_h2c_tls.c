/* SPDX-License-Identifier: MIT */
/* h2c over TLS: who is trusted, what protocol is chosen, and which requests share a connection. */
#include "config.h"

#include "net/h2c_testing.h"

static struct pair ca, other_ca, leaf, client;

static struct httpc_tls *tls_of(
	const struct pair *authority, const struct pair *me, const char *name)
{
	struct err err = ERR_INIT;
	struct httpc_tls *t = httpc_tls_new(authority->cert_pem, strlen(authority->cert_pem),
		me ? me->cert_pem : NULL, me ? strlen(me->cert_pem) : 0, me ? me->key_pem : NULL,
		me ? strlen(me->key_pem) : 0, name, &err);

	cr_assert(t, "%s", err.text);
	return t;
}

static struct httpc_tls *trust;

static void setup(void)
{
	h2s_setup();
	ca = make_pair("test ca", NULL, NULL, 86400);
	other_ca = make_pair("test ca", NULL, NULL, 86400); /* the same name, another key */
	leaf = make_pair("server", &ca, "IP:127.0.0.1,DNS:api.test", 86400);
	client = make_pair("client", &ca, NULL, 86400);
	trust = tls_of(&ca, NULL, NULL);
}

static void teardown(void)
{
	httpc_tls_unref(trust);
	h2s_teardown();
	pair_free(&ca);
	pair_free(&other_ca);
	pair_free(&leaf);
	pair_free(&client);
}

TestSuite(h2c_tls, .init = setup, .fini = teardown, .timeout = 60);

static struct res get(const char *path, struct httpc_tls *tls)
{
	struct res r = {0};

	h2_get(path, tls, false, &r);
	h2s_until(&r.done);
	return r;
}

Test(h2c_tls, the_right_authority_is_accepted_and_the_connection_kept)
{
	h2s_listen(&leaf, NULL);
	for (int i = 0; i < 5; i++) {
		struct res r = get("/ok", trust);

		cr_assert_eq(r.status, 200, "%s", r.err.text);
		cr_assert_str_eq(r.body, "ok");
	}
	cr_assert_eq(h2s.n_conns, 1);
}

static void expect_denied(struct httpc_tls *take_tls)
{
	struct res r = get("/ok", take_tls);

	cr_assert_eq(r.err.kind, ERR_DENIED, "%s", r.err.text);
	cr_assert_eq(r.status, 0);
	cr_assert_eq(h2s.n_reqs, 0);
	httpc_tls_unref(take_tls);
}

Test(h2c_tls, a_wrong_authority_is_refused)
{
	h2s_listen(&leaf, NULL);
	expect_denied(tls_of(&other_ca, NULL, NULL));
}

Test(h2c_tls, a_wrong_name_is_refused)
{
	h2s_listen(&leaf, NULL);
	expect_denied(tls_of(&ca, NULL, "other.test"));
}

Test(h2c_tls, http1_is_told_and_not_asked_again_before_its_time)
{
	struct res r;

	h2s_listen(&leaf, NULL);
	h2s.alpn = NULL;
	r = get("/ok", trust);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT);
	cr_assert_eq(r.status, H2C_NO_H2);
	r = get("/ok", trust);
	cr_assert_eq(r.status, H2C_NO_H2);
	cr_assert_eq(h2s.n_conns, 1);
}
