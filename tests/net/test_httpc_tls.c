/* SPDX-License-Identifier: MIT */
/* httpc over TLS: who is trusted, who we are, and that two identities never share a connection. */
#include "config.h"

#include "net/httpc_testing.h"

static struct pair ca, other_ca, leaf, client;
static struct httpc_tls *trust;

static struct httpc_tls *tls_of(
	const struct pair *authority, const struct pair *me, const char *name)
{
	struct err err = ERR_INIT;
	struct httpc_tls *t = httpc_tls_new(authority ? authority->cert_pem : NULL,
		authority ? strlen(authority->cert_pem) : 0, me ? me->cert_pem : NULL,
		me ? strlen(me->cert_pem) : 0, me ? me->key_pem : NULL,
		me ? strlen(me->key_pem) : 0, name, &err);

	cr_assert(t, "%s", err.text);
	return t;
}

static void setup_pairs(void)
{
	srv = (struct server){0};
	ca = make_pair("test ca", NULL, NULL, 86400);
	other_ca = make_pair("test ca", NULL, NULL, 86400); /* the same name, another key */
	leaf = make_pair("server", &ca, "IP:127.0.0.1,DNS:api.test", 86400);
	client = make_pair("client", &ca, NULL, 86400);
	trust = tls_of(&ca, NULL, NULL);
	setup_client();
}

static void setup_tls(void)
{
	setup_pairs();
	server_start(&srv, &leaf, NULL);
}

static void teardown_tls(void)
{
	httpc_tls_unref(trust);
	teardown_client();
	if (srv.pid)
		server_stop(&srv);
	pair_free(&ca);
	pair_free(&other_ca);
	pair_free(&leaf);
	pair_free(&client);
}

TestSuite(httpc_tls, .init = setup_tls, .fini = teardown_tls, .timeout = 60);

static void expect_denied(const char *path, struct httpc_tls *take_tls)
{
	struct res r;

	fetch(path, take_tls, &r);
	cr_assert_eq(r.err.kind, ERR_DENIED, "%s: %s", path, r.err.text);
	cr_assert_eq(r.status, 0);
	httpc_tls_unref(take_tls);
}

Test(httpc_tls, the_right_authority_is_accepted_and_the_connection_kept)
{
	struct res r;

	for (int i = 0; i < 5; i++) {
		fetch("/ok", trust, &r);
		cr_assert_eq(r.status, 200, "%s", r.err.text);
	}
	cr_assert_eq(srv.sh->conns, 1);
}

Test(httpc_tls, a_wrong_authority_is_refused)
{
	expect_denied("/ok", tls_of(&other_ca, NULL, NULL));
	expect_denied("/ok", tls_of(NULL, NULL, NULL)); /* public ones only */
	cr_assert_eq(srv.sh->reqs, 0);
}

Test(httpc_tls, a_wrong_name_is_refused)
{
	struct pair wrong = make_pair("server", &ca, "IP:127.0.0.2,DNS:127.0.0.1", 86400);

	expect_denied("/ok", tls_of(&ca, NULL, "other.test"));
	server_stop(&srv);
	server_start(&srv, &wrong, NULL);
	expect_denied("/ok", httpc_tls_ref(trust));
	pair_free(&wrong);
}

Test(httpc_tls, an_expired_certificate_is_refused)
{
	struct pair old = make_pair("server", &ca, "IP:127.0.0.1", -3600);

	server_stop(&srv);
	server_start(&srv, &old, NULL);
	expect_denied("/ok", httpc_tls_ref(trust));
	pair_free(&old);
}

Test(httpc_tls, insecure_accepts_what_would_be_refused)
{
	struct err err = ERR_INIT;
	struct httpc_tls *t = httpc_tls_new(NULL, 0, NULL, 0, NULL, 0, NULL, &err);
	struct res r;

	httpc_tls_skip_verify(t);
	fetch("/ok", t, &r);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	httpc_tls_unref(t);
	expect_denied("/ok",
		tls_of(&other_ca, NULL, NULL)); /* and shares no connection with those who check */
}

Test(httpc_tls, the_server_name_is_verified_and_the_host_header_stays)
{
	struct httpc_tls *t = tls_of(&ca, NULL, "api.test");
	char host[64];
	struct res r;

	for (int i = 0; i < 2; i++) {
		fetch("/ok", t, &r);
		cr_assert_eq(r.status, 200, "%s", r.err.text);
	}
	snprintf(host, sizeof(host), "Host: 127.0.0.1:%d\r\n", srv.port);
	cr_assert(strstr(srv.sh->head, host), "%s", srv.sh->head);
	cr_assert_eq(srv.sh->conns, 1);
	httpc_tls_unref(t);
}

Test(httpc_tls, connect_to_verifies_the_name_of_the_url)
{
	char to[32];
	struct res r = {0}, r2 = {0};
	struct httpc_request req = {.url = "https://api.test:8443/ok",
		.connect_to = to,
		.tls = trust,
		.deadline_ms = 5000};

	snprintf(to, sizeof(to), "127.0.0.1:%d", srv.port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	req.url = "https://wrong.test:8443/ok";
	(void)start_req(&req, false, &r2);
	wait_for(&r2.done);
	cr_assert_eq(r2.err.kind, ERR_DENIED);
}

Test(httpc_tls, two_contexts_never_share_a_connection)
{
	struct httpc_tls *same = tls_of(&ca, NULL, NULL), *me = tls_of(&ca, &client, NULL),
			 *me2 = tls_of(&ca, &client, NULL);
	struct httpc_tls *all[] = {trust, same, me, me2};
	struct res r;

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_LEN(all); i++) {
			fetch("/ok", all[i], &r);
			cr_assert_eq(r.status, 200, "%s", r.err.text);
		}
	cr_assert_eq(srv.sh->conns, 4);
	httpc_tls_unref(same);
	httpc_tls_unref(me);
	httpc_tls_unref(me2);
}

Test(httpc_tls, a_client_certificate_is_sent_when_asked_for)
{
	struct httpc_tls *me = tls_of(&ca, &client, NULL);
	struct res r;

	server_stop(&srv);
	server_start(&srv, &leaf, &ca);
	fetch("/ok", me, &r);
	cr_assert_eq(r.status, 200, "%s", r.err.text);
	cr_assert_eq(srv.sh->certs, 1);
	httpc_tls_unref(me);
	/* Without one TLS 1.3 refuses at the first read. */
	expect_denied("/ok", httpc_tls_ref(trust));
}

Test(httpc_tls, streams_end_and_cut_off_as_over_plain_http)
{
	struct res r = {0}, cut = {0}, kill_ = {0};

	start("/chunks", trust, true, 0, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_NONE);
	cr_assert_eq(r.data_len, 600);
	start("/cut-chunk", trust, true, 0, &cut);
	wait_for(&cut.done);
	cr_assert_eq(cut.err.kind, ERR_TRANSIENT, "%s", cut.err.text);
	kill_.kill = &kill_.op;
	start("/endless-200", trust, true, 0, &kill_);
	while (!kill_.data_len)
		loop_turn(l, 100);
	cr_assert_not(kill_.done);
}

Test(httpc_tls, a_server_silent_in_the_handshake_is_transient)
{
	int port, fd = listen_any(&port, 8);
	char url[64];
	struct res r = {0}, r2 = {0};
	struct httpc_request req = {
		.url = url, .tls = trust, .deadline_ms = 5000, .connect_ms = 80};

	snprintf(url, sizeof(url), "https://127.0.0.1:%d/", port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_eq(r.err.kind, ERR_TRANSIENT, "%s", r.err.text);
	(void)start_req(&req, false, &r2);
	for (int i = 0; i < 5; i++)
		loop_turn(l, 2);
	op_cancel(&r2.op);
	close(fd);
}

Test(httpc_tls, plain_http_on_a_tls_port_and_the_reverse_fail)
{
	struct res r = {0}, r2 = {0};
	char url[64];
	struct httpc_request req = {.url = url, .deadline_ms = 5000};
	struct server plain = {0};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", srv.port);
	(void)start_req(&req, false, &r);
	wait_for(&r.done);
	cr_assert_neq(r.err.kind, ERR_NONE);
	server_start(&plain, NULL, NULL);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/", plain.port);
	req.tls = trust;
	req.deadline_ms = 150; /* the plain server waits for the end of a head */
	(void)start_req(&req, false, &r2);
	wait_for(&r2.done);
	cr_assert_neq(r2.err.kind, ERR_NONE);
	server_stop(&plain);
}

Test(httpc_tls_new, bad_pem_is_named)
{
	struct pair a, b;
	struct err err = ERR_INIT;
	char *broken;

	ca = make_pair("ca", NULL, NULL, 100);
	a = make_pair("a", &ca, NULL, 100);
	b = make_pair("b", &ca, NULL, 100);
	broken = xstrdup(ca.cert_pem);
	broken[60] = '!';
#define NEW(ca_, cert_, key_)                                                                      \
	(err_clear(&err),                                                                          \
		httpc_tls_new(ca_, (ca_) ? strlen(ca_) : 0, cert_, (cert_) ? strlen(cert_) : 0,    \
			key_, (key_) ? strlen(key_) : 0, NULL, &err))
	char *none = NULL, *junk = xstrdup("junk"), *empty = xstrdup("");

	cr_assert_null(NEW(junk, none, none));
	cr_assert(strstr(err.text, "authority"));
	cr_assert_null(NEW(empty, none, none));
	cr_assert_null(NEW(broken, none, none));
	cr_assert_null(NEW(a.key_pem, none, none));
	cr_assert_null(NEW(ca.cert_pem, a.cert_pem, none));
	cr_assert_null(NEW(ca.cert_pem, none, a.key_pem));
	cr_assert_null(NEW(ca.cert_pem, a.cert_pem, b.key_pem));
	cr_assert(strstr(err.text, "does not belong"), "%s", err.text);
	cr_assert_null(NEW(ca.cert_pem, junk, a.key_pem));
	cr_assert_null(NEW(ca.cert_pem, a.cert_pem, junk));
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_eq(secret_count(), 0);
	/* An encrypted key is refused, not asked for at the terminal. */
	BIO *bio = BIO_new(BIO_s_mem());

	PEM_write_bio_PrivateKey(
		bio, a.key, EVP_aes_128_cbc(), (const unsigned char *)"pw", 2, NULL, NULL);
	char *enc = bio_text(bio);

	cr_assert_null(NEW(ca.cert_pem, a.cert_pem, enc));
	cr_assert(strstr(err.text, "unencrypted"), "%s", err.text);
	/* A key that OpenSSL finds too weak is refused here, not when h2c makes a connection. */
	EVP_PKEY *weak = EVP_RSA_gen(512);

	X509_set_pubkey(a.cert, weak);
	X509_sign(a.cert, ca.key, EVP_sha256());
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, a.cert);
	char *weak_cert = bio_text(bio);

	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, weak, NULL, NULL, 0, NULL, NULL);
	char *weak_key = bio_text(bio);

	cr_assert_null(NEW(ca.cert_pem, weak_cert, weak_key));
	cr_assert(strstr(err.text, "does not accept"), "%s", err.text);
	EVP_PKEY_free(weak);
	free(weak_cert);
	free(weak_key);
	free(enc);
	free(junk);
	free(empty);
	free(broken);
	pair_free(&a);
	pair_free(&b);
	pair_free(&ca);
}
