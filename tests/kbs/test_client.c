/* SPDX-License-Identifier: MIT */
/* The HTTPS maker against a real server (net/httpc_testing.h): its token, where it connects to, and
 * answers that are none. */
#include "config.h"

#include "net/httpc_testing.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/jose/jws.h"
#include "tec/kbs/client.h"
#include "tec/kbs/admin.h"

static struct pair ca, leaf;
static struct httpc_tls *trust;
static struct pki_key *admin;
static struct secret *admin_pem;
static struct kbs_transport *t;

static const char refused[] =
	"{\"type\":\"https://github.com/confidential-containers/kbs/errors/AdminAuthAccess\","
	"\"detail\":\"%s\"}";

static bool as_trustee(struct io *io, const char *path, const char *body)
{
	cleanup_free char *answer = xasprintf(refused, body);

	if (strcmp(path, "/refused") == 0)
		reply(io, "401 Unauthorized", answer);
	else if (strcmp(path, "/kbs/v0/resource/html") == 0)
		reply(io, "200 OK\r\nContent-Type: text/html", "\n<!doctype html><p>log in");
	else if (strcmp(path, "/kbs/v0/resource/redirect") == 0)
		reply(io, "307 Temporary Redirect\r\nLocation: /ok", "");
	else
		return false;
	return true;
}

static struct kbs_transport *client_to(const char *url, const char *connect_to)
{
	struct kbs_client_conf conf = {
		.url = url, .connect_to = connect_to, .tls = trust, .admin = admin_pem};
	struct err err = ERR_INIT;
	struct kbs_transport *made = kbs_client_new(l, c, &conf, &err);

	cr_assert(made, "%s", err.text);
	return made;
}

static void setup(void)
{
	struct err err = ERR_INIT;

	srv = (struct server){0};
	ca = make_pair("test ca", NULL, NULL, 86400);
	leaf = make_pair("server", &ca, "IP:127.0.0.1,DNS:kbs.test", 86400);
	trust = httpc_tls_new(ca.cert_pem, strlen(ca.cert_pem), NULL, 0, NULL, 0, NULL, &err);
	cr_assert(trust, "%s", err.text);
	answer_first = as_trustee;
	setup_client();
	server_start(&srv, &leaf, NULL);
	admin = pki_key_new_ed25519();
	admin_pem = pki_key_private_pem(admin);
	t = client_to(url_of(""), NULL);
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	kbs_transport_free(t);
	secret_free(admin_pem);
	pki_key_free(admin);
	httpc_tls_unref(trust);
	teardown_client();
	server_stop(&srv);
	pair_free(&ca);
	pair_free(&leaf);
}

TestSuite(kbs_client, .init = setup, .fini = teardown, .timeout = 60);

/* ---- asking */

static struct got {
	bool done;
	struct err err;
	int status;
	char type[KBS_TYPE_MAX], body[256];
	size_t body_len;
} got;

static void on_got(void *arg, const struct err *err, const struct kbs_answer *a)
{
	(void)arg;
	cr_assert_not(got.done);
	got.done = true;
	got.err = *err;
	got.status = a->status;
	got.body_len = a->body_len;
	snprintf(got.type, sizeof(got.type), "%s", a->type);
	snprintf(got.body, sizeof(got.body), "%s", a->body);
}

static void ask(const char *path, uint32_t deadline_ms)
{
	struct kbs_request req = {.method = "GET", .path = path, .deadline_ms = deadline_ms};

	memset(&got, 0, sizeof(got));
	(void)kbs_transport_start(t, &ops, &req, on_got, NULL);
	cr_assert_not(got.done);
	wait_for(&got.done);
}

/* The token of the last request. */
static char *token_sent(void)
{
	static const char name[] = "Authorization: Bearer ";
	const char *from = strstr(srv.sh->head, name);

	cr_assert(from, "%s", srv.sh->head);
	from += strlen(name);
	return xstrndup(from, strcspn(from, "\r"));
}

static void assert_same_token(const char *as, bool same, const char *when)
{
	cleanup_free char *now = NULL;

	ask("/ok", 0);
	now = token_sent();
	cr_assert_eq(str_eq(as, now), same, "%s", when);
}

/* ---- the token */

static struct json_object *claims_of(const char *token, const struct pki_key *key, struct err *err)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_free char *payload = NULL;
	cleanup_jws_public struct jws_public *k = NULL;
	size_t len;

	pki_key_public_pem(key, &pem);
	k = jws_public_from_pem(pem.data, pem.len, err);
	if (!k || jws_verify_eddsa(k, token, strlen(token), &payload, &len, err) < 0)
		return NULL;
	return json_parse(payload, len, &json_limits_public, err);
}

Test(kbs_client, its_token_is_what_trustee_demands)
{
	struct pki_key *other = pki_key_new_ed25519();
	cleanup_json struct json_object *claims = NULL, *none = NULL;
	cleanup_free char *token = NULL;
	cleanup_free uint8_t *header = NULL;
	struct err err = ERR_INIT, denied = ERR_INIT;
	int64_t now = clock_wall_s(), iat, exp;
	size_t len;

	ask("/ok", 0);
	token = token_sent();
	claims = claims_of(token, admin, &err);
	cr_assert(claims, "%s", err.text);
	cr_assert_str_eq(json_get_str(claims, "iss"), "tec-operator");
	cr_assert_str_eq(json_get_str(claims, "aud"), "kbs");
	cr_assert_str_eq(json_get_str(claims, "role"), "admin");
	iat = json_object_get_int64(json_object_object_get(claims, "iat"));
	exp = json_object_get_int64(json_object_object_get(claims, "exp"));
	cr_assert(iat >= now && iat <= now + 10);
	cr_assert_eq(exp, iat + KBS_TOKEN_LIFE_S);
	cr_assert_eq(bytes_from_b64url(token, strcspn(token, "."), &header, &len), 0);
	cr_assert(len == 27 && memcmp(header, "{\"typ\":\"JWT\",\"alg\":\"EdDSA\"}", len) == 0,
		"%.*s", (int)len, (const char *)header);
	none = claims_of(token, other, &denied);
	cr_assert(!none && denied.kind == ERR_DENIED);
	pki_key_free(other);
}

Test(kbs_client, one_token_serves_a_batch_and_is_made_anew_at_half_its_life)
{
	cleanup_free char *first = NULL, *second = NULL;

	clock_fake_start(5000, 1700000000);
	ask("/ok", 0);
	first = token_sent();
	for (int i = 0; i < 5; i++)
		assert_same_token(first, true, "a batch");
	clock_fake_advance(29999);
	clock_fake_set_wall(1900000000); /* the wall clock jumps: it is not older by that */
	assert_same_token(first, true, "just before half its life");
	clock_fake_advance(1);
	assert_same_token(first, false, "at half its life");
	second = token_sent();
	clock_fake_set_wall(1500000000);
	assert_same_token(second, true, "the wall clock went back");
	clock_fake_stop();
}

Test(kbs_client, a_refused_token_is_made_anew_once)
{
	cleanup_free char *first = NULL, *second = NULL;
	int before;

	clock_fake_start(5000, 1700000000);
	ask("/ok", 0);
	first = token_sent();
	clock_fake_set_wall(1700000100);
	before = srv.sh->reqs;
	ask("/refused", 0);
	cr_assert_eq(srv.sh->reqs, before + 2);
	cr_assert_eq(got.status, 401);
	cr_assert_str_eq(got.type, "AdminAuthAccess");
	second = token_sent();
	cr_assert_str_neq(first, second);
	clock_fake_stop();
}

Test(kbs_client, what_is_sent_once_more_has_its_body)
{
	struct kbs_request req = {.method = "POST",
		.path = "/refused",
		.content_type = "application/octet-stream",
		.body = body_of_text(xstrdup("the body"))};
	int before = srv.sh->reqs;

	memset(&got, 0, sizeof(got));
	(void)kbs_transport_start(t, &ops, &req, on_got, NULL);
	wait_for(&got.done);
	cr_assert_eq(srv.sh->reqs, before + 2);
	cr_assert_eq(got.err.kind, ERR_DENIED);
	cr_assert(strstr(got.body, "\"detail\":\"the body\""), "%s", got.body);
}

Test(kbs_client, refuses_a_key_that_is_no_ed25519)
{
	struct pki_key *p256 = pki_key_new_p256();
	struct secret *pems[] = {pki_key_private_pem(p256), secret_new_copy("no key", 6)};

	for (size_t i = 0; i < ARRAY_LEN(pems); i++) {
		struct kbs_client_conf conf = {.url = "https://x", .tls = trust, .admin = pems[i]};
		struct err err = ERR_INIT;

		cr_assert_null(kbs_client_new(l, c, &conf, &err));
		cr_assert_eq(err.kind, ERR_INVALID, "%s", err.text);
		secret_free(pems[i]);
	}
	pki_key_free(p256);
}

/* ---- where it connects to */

Test(kbs_client, connects_where_it_is_told_under_the_name_of_the_url)
{
	cleanup_free char *to = xasprintf("127.0.0.1:%d", srv.port);

	kbs_transport_free(t);
	t = client_to("https://kbs.test:9", to);
	ask("/ok", 0);
	cr_assert_eq(got.status, 200, "%s", got.err.text);
	cr_assert(strstr(srv.sh->head, "Host: kbs.test:9\r\n"), "%s", srv.sh->head);
	kbs_transport_free(t);
	t = client_to("https://other.test:9", to); /* no name of the certificate */
	ask("/ok", 0);
	cr_assert_eq(got.err.kind, ERR_DENIED, "%s", got.err.text);
	cr_assert_eq(got.status, 0);
}

/* ---- requests and answers */

Test(kbs_client, sends_method_type_and_bytes_as_they_are)
{
	static const char body[] = "{\"a\":\"\303\244\"}";
	struct kbs_request req = {.method = "POST",
		.path = "/echo",
		.content_type = "application/octet-stream",
		.body = body_of_text(xstrdup(body))};

	memset(&got, 0, sizeof(got));
	(void)kbs_transport_start(t, &ops, &req, on_got, NULL);
	wait_for(&got.done);
	cr_assert_eq(got.status, 201);
	cr_assert_str_eq(got.body, body);
	cr_assert(strstr(srv.sh->head, "POST /echo HTTP/1.1\r\n"));
	cr_assert(strstr(srv.sh->head, "Content-Type: application/octet-stream\r\n"));
	ask("/ok", 0);
	cr_assert_null(strstr(srv.sh->head, "Content-Type:"));
}

static void put(const char *path)
{
	memset(&got, 0, sizeof(got));
	(void)kbs_admin_put_resource(t, &ops, path, secret_new_copy("x", 1), on_got, NULL);
	wait_for(&got.done);
}

Test(kbs_client, a_page_and_a_redirect_are_no_success)
{
	put("ok");
	cr_assert_eq(got.err.kind, ERR_NONE, "%s", got.err.text);
	put("html");
	cr_assert_eq(got.err.kind, ERR_TRANSIENT);
	srv.sh->reqs = 0;
	put("redirect");
	cr_assert_eq(got.err.kind, ERR_TRANSIENT);
	cr_assert_eq(srv.sh->reqs, 1); /* it was not followed: the token stays here */
}

Test(kbs_client, an_answer_that_is_cut_or_no_http_is_an_error)
{
	static const char *const paths[] = {"/half", "/cut-chunk", "/close", "/junk",
		"/junk-status", "/junk-chunk", "/big-header",
		"/big"}; /* the last: more than an answer may have */

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct err err = ERR_INIT;

		ask(paths[i], 5000);
		cr_assert(err_is_set(&got.err), "%s", paths[i]);
		cr_assert_eq(kbs_answer_check(&got.err, NULL, true, &err), -1);
		cr_assert_eq(err.kind, ERR_TRANSIENT, "%s: %s", paths[i], err.text);
	}
	ask("/retry/7", 5000);
	cr_assert_eq(got.status, 503);
}

/* What answers next may be another process with an empty store: a key must not go there by itself.
 */
Test(kbs_client, a_write_is_not_sent_again_on_another_connection)
{
	struct kbs_request req = {.method = "POST",
		.path = "/close",
		.content_type = "application/octet-stream",
		.body = body_of_text(xstrdup("x"))};
	int before;

	ask("/ok", 0); /* a connection that is kept */
	before = srv.sh->reqs;
	memset(&got, 0, sizeof(got));
	(void)kbs_transport_start(t, &ops, &req, on_got, NULL);
	wait_for(&got.done);
	cr_assert_eq(got.err.kind, ERR_TRANSIENT);
	cr_assert_eq(srv.sh->reqs, before + 1);
	ask("/ok", 0);
	cr_assert_eq(got.status, 200);
}

Test(kbs_client, a_deadline_ends_it)
{
	static const char *const paths[] = {"/hang", "/head-hang", "/body-hang"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		ask(paths[i], 100);
		cr_assert_eq(got.err.kind, ERR_TRANSIENT, "%s", paths[i]);
	}
}

Test(kbs_client, cancelled_it_never_answers)
{
	struct kbs_request req = {.method = "GET", .path = "/hang"};
	struct op *op = NULL;

	memset(&got, 0, sizeof(got));
	for (int i = 0; i < 3; i++) {
		op_hold(&op, kbs_transport_start(t, &ops, &req, on_got, NULL));
		if (i)
			loop_turn(l, 5);
		op_cancel(&op);
	}
	ask("/ok", 0);
	cr_assert_eq(got.status, 200);
}
