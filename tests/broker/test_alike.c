/* SPDX-License-Identifier: MIT */
/*
 * The same requests to the broker and to a guard in front of another broker: both answer with the
 * status and the type of error in the table, and what reached the broker behind the guard is spelled
 * in one way. Everything over real sockets, in one loop.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "attest_world.h"
#include "net/net_testing.h"

#include "tec/broker/kbsd.h"
#include "tec/guard/proxy.h"
#include "tec/loop/signal.h"

#define BODY_MAX 65536
#define V0       "/kbs/v0/"
#define RES      V0 "resource/"
#define COOKIE   "Cookie: kbs-session-id=@\r\n"

/* What answers nodes. cookie and nonce: of the last handshake. */
struct side {
	const char *name;
	struct world w;
	struct broker_kbsd *kbsd;
	unsigned port;
	char cookie[64], nonce[64];
};

struct both {
	struct loop *loop;
	struct httpc *http;
	struct guard *guard;
	struct side side[2];
	char *passed; /* the last target behind the guard */
	char *body;
	char *n, *e; /* of an RSA key */
};

/* ---- setting up */

static void on_passed(void *arg, const struct broker_request *r, struct broker_answer *a)
{
	struct both *b = arg;

	free(b->passed);
	free(b->body);
	b->passed = xstrdup(r->target);
	b->body = xstrndup(r->body, r->len);
}

static void side_start(struct both *b, struct side *s, const char *name, bool behind)
{
	struct broker_kbsd_conf conf = {.name = "kbs", .max_body = BODY_MAX, .arg = b};
	struct err err = ERR_INIT;

	s->name = name;
	world_start_for(&s->w, 100);
	approve(&s->w);
	conf.attest = s->w.b;
	conf.on_answer = behind ? on_passed : NULL;
	s->kbsd = broker_kbsd_new(b->loop, &conf);
	cr_assert_eq(httpd_listen(broker_kbsd_httpd(s->kbsd), "127.0.0.1:0", &err), 0);
	s->port = httpd_port(broker_kbsd_httpd(s->kbsd));
}

static char *number_of(EVP_PKEY *key, const char *name)
{
	struct strbuf out = STRBUF_INIT;
	uint8_t bytes[512];
	BIGNUM *n = NULL;

	cr_assert_eq(EVP_PKEY_get_bn_param(key, name, &n), 1);
	bytes_to_b64url(&out, bytes, (size_t)BN_bn2bin(n, bytes));
	BN_free(n);
	return strbuf_steal(&out);
}

static void both_start(struct both *b)
{
	EVP_PKEY *key = EVP_RSA_gen(2048);
	struct guard_conf conf = {.attest_max = BODY_MAX,
		.sessions = 1000,
		.sessions_per_source = 1000,
		.session_ms = 300000,
		.max_connections = 100,
		.look_ms = 60000};
	char upstream[64];
	struct err err = ERR_INIT;

	memset(b, 0, sizeof(*b));
	loop_ignore_sigpipe();
	b->n = number_of(key, OSSL_PKEY_PARAM_RSA_N);
	b->e = number_of(key, OSSL_PKEY_PARAM_RSA_E);
	EVP_PKEY_free(key);
	b->loop = loop_new();
	b->http = httpc_new(b->loop);
	side_start(b, &b->side[0], "broker", false);
	side_start(b, &b->side[1], "guard", true);
	snprintf(upstream, sizeof(upstream), "http://127.0.0.1:%u", b->side[1].port);
	conf.upstream = upstream;
	b->guard = guard_new(b->loop, b->http, &conf);
	cr_assert_eq(httpd_listen(guard_node_httpd(b->guard), "127.0.0.1:0", &err), 0);
	b->side[1].port = httpd_port(guard_node_httpd(b->guard));
}

static void both_stop(struct both *b)
{
	guard_free(b->guard);
	for (unsigned i = 0; i < 2; i++)
		broker_kbsd_free(b->side[i].kbsd);
	httpc_free(b->http);
	loop_free(b->loop);
	for (unsigned i = 0; i < 2; i++)
		world_stop(&b->side[i].w);
	free(b->passed);
	free(b->body);
	free(b->n);
	free(b->e);
}

/* ---- one request */

/* text with the first `from` replaced; the caller frees. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	cr_assert(at, "%s", from);
	return xasprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* A cookie that stands for '@'; the caller frees. */
static char *with_cookie(const struct side *s, const char *fields)
{
	return strchr(fields, '@') ? replaced(fields, "@", s->cookie) : xstrdup(fields);
}

enum framing { LENGTH, CHUNKED, TWO };

/* Send it on a connection of its own; the caller ends the reply. */
static struct cli_reply ask(struct both *b, struct side *s, const char *line, const char *fields,
	const char *body, enum framing framing)
{
	cleanup_free char *more = with_cookie(s, fields);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct cli c = cli_open(b->loop, s->port);
	struct cli_reply r;
	size_t len = body ? strlen(body) : 0, half = len / 2;

	strbuf_addf(&text, "%s HTTP/1.1\r\nHost: a\r\n%s", line, more);
	if (body && framing != CHUNKED)
		strbuf_addf(&text, "Content-Length: %zu\r\n", len);
	if (body && framing != LENGTH)
		strbuf_adds(&text, "Transfer-Encoding: chunked\r\n");
	strbuf_adds(&text, "\r\n");
	if (body && framing != LENGTH)
		strbuf_addf(&text, "%zX\r\n%.*s\r\n%zx\r\n%s\r\n0\r\n\r\n", half, (int)half, body,
			len - half, body + half);
	else if (body)
		strbuf_adds(&text, body);
	cli_send(&c, strbuf_str(&text));
	cr_assert(cli_reply(&c, &r, str_starts(line, "HEAD ")), "%s: %s", s->name, line);
	cli_close(&c);
	return r;
}

/* The last word of an error's type; "text/plain"; "" for any other body. */
static void type_of(struct cli_reply *r, char out[64])
{
	static const char url[] =
		"{\"type\":\"https://github.com/confidential-containers/kbs/errors/";
	const char *type = cli_header(r, "Content-Type");

	out[0] = '\0';
	if (str_starts(r->body, url))
		snprintf(out, 64, "%.*s", (int)strcspn(r->body + sizeof(url) - 1, "\""),
			r->body + sizeof(url) - 1);
	else if (str_eq(type, "text/plain"))
		snprintf(out, 64, "text/plain");
}

/* A new handshake. */
static void begin(struct both *b, struct side *s)
{
	struct cli_reply r = ask(b, s, "POST " V0 "auth", "", AUTH, LENGTH);
	cleanup_json struct json_object *o = NULL;
	const char *cookie = cli_header(&r, "Set-Cookie");
	struct err err = ERR_INIT;

	cr_assert_eq(r.status, 200, "%s: %s", s->name, r.body);
	cookie += strlen("kbs-session-id=");
	snprintf(s->cookie, sizeof(s->cookie), "%.*s", (int)strcspn(cookie, ";"), cookie);
	o = json_parse(r.body, strlen(r.body), &json_limits_public, &err);
	snprintf(s->nonce, sizeof(s->nonce), "%s", json_get_str(o, "nonce"));
	cli_reply_fini(&r);
}

/* An attestation for this handshake, whose TEE key is an RSA key; the caller puts it. */
static struct json_object *attest_rsa(const struct both *b, const char *nonce, const char *alg)
{
	const struct pki_jwk jwk = {.kty = "RSA", .alg = alg, .n = b->n, .e = b->e};
	struct json_object *o = fixture_attest_for(nonce), *key = json_obj();
	uint8_t binding[RATS_BINDING_LEN];
	struct fixture_quote q;

	json_add_str(json_add_str(key, "kty", "RSA"), "alg", alg);
	json_add_str(json_add_str(key, "n", b->n), "e", b->e);
	json_add(json_get(o, "runtime-data"), "tee-pubkey", key);
	rats_binding(&jwk, nonce, "", binding);
	fixture_quote(binding, &q);
	json_add(json_get(o, "tee-evidence"), "primary_evidence", fixture_evidence(&q));
	return o;
}

/* ---- the table */

#define GENUINE "a genuine attestation"

struct row {
	const char *line, *fields, *body;
	enum framing framing;
	const char *from, *to; /* of an attestation: this text is replaced */
	const char *rsa;       /* of an attestation: an RSA key with this algorithm */
	int status;
	const char *type;
};

/* The request that is sent to one side; NULL: without a body. */
static char *body_of(struct both *b, struct side *s, const struct row *t)
{
	cleanup_json struct json_object *o = NULL;
	cleanup_free char *text = NULL;

	if (!str_eq(t->body, GENUINE))
		return t->body ? xstrdup(t->body) : NULL;
	begin(b, s);
	o = t->rsa ? attest_rsa(b, s->nonce, t->rsa) : fixture_attest_for(s->nonce);
	text = json_text(o);
	return t->from ? replaced(text, t->from, t->to) : xstrdup(text);
}

/* What a Trustee would see: one spelling of the target, no member that was not understood. */
static void check_passed(struct both *b)
{
	if (!b->passed || str_eq(b->passed, "/healthz")) /* nothing, or the guard's own probe */
		return;
	cr_expect(str_eq(b->passed, V0 "auth") || str_eq(b->passed, V0 "attest") ||
			  str_eq(b->passed, RES OWN_PATH) || str_eq(b->passed, RES OTHER_PATH),
		"%s", b->passed);
	cr_expect_null(strstr(b->body, "\"more\""), "%s", b->body);
	cr_expect_null(strstr(b->body, "\"0A0a"), "%s", b->body);
}

static void check(struct both *b, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (unsigned k = 0; k < 2; k++) {
			const struct row *t = &rows[i];
			struct side *s = &b->side[k];
			cleanup_free char *body = body_of(b, s, t);
			struct cli_reply r;
			char type[64];

			free(steal_ptr(&b->passed));
			r = ask(b, s, t->line, t->fields ? t->fields : "", body, t->framing);
			type_of(&r, type);
			cr_expect(r.status == t->status && str_eq(type, t->type),
				"row %zu, %s: %s %.80s: %d %s, not %d %s", i, s->name, t->line,
				t->from ? t->to : "", r.status, type, t->status, t->type);
			cli_reply_fini(&r);
			check_passed(b);
		}
}

#define AUTH_OF(members) "{\"version\":\"0.4.0\",\"tee\":\"tpm\"," members "}"
#define REFUSED          401, "AttestationError"
#define NOT_A_PATH       404, "InvalidRequestPath"

Test(broker_alike, requests_for_a_handshake)
{
	static const struct row rows[] = {
		{"POST " V0 "auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth", NULL, AUTH, CHUNKED, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth?x=1", NULL, AUTH, LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth/", NULL, AUTH, LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth/?", NULL, AUTH, LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST http://a" V0 "auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth", "Content-Type: application/json; charset=utf-8\r\n", AUTH,
			LENGTH, NULL, NULL, NULL, 200, ""},
		/* unknown members */
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{},\"more\":{\"a\":[1.5]}"),
			LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{\"a\":[7,-7]}"), LENGTH, NULL,
			NULL, NULL, 200, ""},
		/* two readers could understand these differently */
		{"POST " V0 "auth", NULL, AUTH, TWO, NULL, NULL, NULL, 400, "HttpError"},
		{"POST " V0 "auth", "Transfer-Encoding: gzip, chunked\r\n", NULL, LENGTH, NULL,
			NULL, NULL, 501, "HttpError"},
		{"POST " V0 "auth", "Transfer-Encoding: identity\r\n", NULL, LENGTH, NULL, NULL,
			NULL, 501, "HttpError"},
		{"POST " V0 "auth", "Transfer-Encoding: chunked\r\n", AUTH, CHUNKED, NULL, NULL,
			NULL, 400, "HttpError"},
		{"POST " V0 "auth", "Content-Encoding: gzip\r\n", AUTH, LENGTH, NULL, NULL, NULL,
			415, "HttpError"},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{},\"tee\":\"tpm\""), LENGTH,
			NULL, NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{},\"m\":1,\"m\":1"), LENGTH,
			NULL, NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{\"a\":1.5}"), LENGTH, NULL,
			NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{\"a\":9007199254740993}"),
			LENGTH, NULL, NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, AUTH_OF("\"extra-params\":{},\"m\":[[[[[[[[[]]]]]]]]]"),
			LENGTH, NULL, NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, AUTH_OF("\"m\":{}"), LENGTH, NULL, NULL, NULL, REFUSED},
		{"POST " V0 "auth", NULL, NULL, LENGTH, NULL, NULL, NULL, REFUSED},
		/* not the nodes' requests */
		{"GET " V0 "auth", NULL, NULL, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"PUT " V0 "auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"GET " V0 "attest", NULL, NULL, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"OPTIONS " V0 "auth", NULL, NULL, LENGTH, NULL, NULL, NULL, 405, "HttpError"},
		{"POST " V0 "auth//", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST " V0 "auth/x", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST " V0 "%61uth", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST " V0 "x/../auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST //kbs/v0/auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST http://b" V0 "auth", NULL, AUTH, LENGTH, NULL, NULL, NULL, 400, "HttpError"},
		{"POST " V0 "resource-policy", NULL, "{}", LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"POST " RES OWN_PATH, NULL, "x", LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"DELETE " RES OWN_PATH, NULL, NULL, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{"GET /metrics", NULL, NULL, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
	};
	struct both b;

	both_start(&b);
	check(&b, rows, ARRAY_LEN(rows));
	both_stop(&b);
}

#define ATTEST(target) "POST " V0 "attest" target, COOKIE, GENUINE

Test(broker_alike, attestations)
{
	static const struct row rows[] = {
		{ATTEST(""), LENGTH, NULL, NULL, NULL, 200, ""},
		{ATTEST(""), CHUNKED, NULL, NULL, NULL, 200, ""},
		{ATTEST("/?x=1"), LENGTH, NULL, NULL, NULL, 200, ""},
		{"POST " V0 "attest", "Cookie: a=b; kbs-session-id=\"@\"; c=d\r\n", GENUINE, LENGTH,
			NULL, NULL, NULL, 200, ""},
		/* unknown members of each object */
		{ATTEST(""), LENGTH, "{", "{\"more\":1.5,", NULL, 200, ""},
		{ATTEST(""), LENGTH, "\"nonce\":", "\"more\":[{}],\"nonce\":", NULL, 200, ""},
		{ATTEST(""), LENGTH, "\"kty\":", "\"more\":null,\"kty\":", NULL, 200, ""},
		{ATTEST(""), LENGTH,
			"\"primary_evidence\":", "\"more\":0,\"primary_evidence\":", NULL, 200, ""},
		{ATTEST(""), LENGTH, "\"ak_public\":", "\"more\":\"\",\"ak_public\":", NULL, 200,
			""},
		{ATTEST(""), LENGTH, "\"pcrs\":", "\"more\":false,\"pcrs\":", NULL, 200, ""},
		{ATTEST(""), LENGTH, "\"0a0a0a0a", "\"0A0a0A0a", NULL, 200, ""},
		/* a resource for each kind of TEE key */
		{ATTEST(""), LENGTH, NULL, NULL, "RSA-OAEP-256", 200, ""},
		{"GET " RES OWN_PATH, COOKIE, NULL, LENGTH, NULL, NULL, NULL, 200, ""},
		{ATTEST(""), LENGTH, NULL, NULL, "RSA1_5", 200, ""},
		{"GET " RES OWN_PATH, COOKIE, NULL, LENGTH, NULL, NULL, NULL, 200, ""},
		{ATTEST(""), LENGTH, NULL, NULL, "RSA-OAEP", REFUSED},
		/* known members twice, or missing */
		{ATTEST(""), LENGTH, "\"nonce\":", "\"nonce\":\"x\",\"nonce\":", NULL, REFUSED},
		{ATTEST(""), LENGTH, "\"pcrs\":", "\"pcrs\":[],\"pcrs\":", NULL, REFUSED},
		{ATTEST(""), LENGTH, "\"pcrs\":", "\"Pcrs\":", NULL, REFUSED},
		{ATTEST(""), LENGTH, "\"ak_public\":", "\"more\":", NULL, REFUSED},
		{ATTEST(""), LENGTH, "\"additional_evidence\":\"\"",
			"\"additional_evidence\":\"{}\"", NULL, REFUSED},
		{ATTEST(""), TWO, NULL, NULL, NULL, 400, "HttpError"},
		{"POST " V0 "attest", NULL, GENUINE, LENGTH, NULL, NULL, NULL, REFUSED},
	};
	struct both b;

	both_start(&b);
	check(&b, rows, ARRAY_LEN(rows));
	both_stop(&b);
}

Test(broker_alike, bodies_above_the_limit)
{
	struct row rows[] = {
		{ATTEST(""), LENGTH, "{", NULL, NULL, 413, "text/plain"},
		{ATTEST(""), CHUNKED, "{", NULL, NULL, 413, "text/plain"},
	};
	cleanup_free char *blanks = xcalloc(1, BODY_MAX + 1);
	struct both b;

	memset(blanks, ' ', BODY_MAX);
	blanks[0] = '{';
	rows[0].to = rows[1].to = blanks;
	both_start(&b);
	check(&b, rows, ARRAY_LEN(rows));
	both_stop(&b);
}

#define GET(path) "GET " RES path, COOKIE, NULL, LENGTH, NULL, NULL, NULL

Test(broker_alike, paths_of_resources)
{
	static const struct row rows[] = {
		{ATTEST(""), LENGTH, NULL, NULL, NULL, 200, ""},
		{GET(OWN_PATH), 200, ""},
		{GET("/" OWN_PATH), 200, ""},
		{GET(OWN_PATH "/"), 200, ""},
		{GET(OWN_PATH "?"), 200, ""},
		{GET(OWN_PATH "?x=%2F..&y=/"), 200, ""},
		{GET(OWN_PATH "/?x"), 200, ""},
		{GET("%64efault/11111111%2d2222%2D4333-8444-555555555555/roo%74"), 200, ""},
		{"GET http://a" RES OWN_PATH, COOKIE, NULL, LENGTH, NULL, NULL, NULL, 200, ""},
		{"GET " RES OWN_PATH, "Cookie: kbs-session-id=\"@\"\r\n", NULL, LENGTH, NULL, NULL,
			NULL, 200, ""},
		{"GET " RES OWN_PATH, "Cookie: kbs-session-id=\"@\r\n", NULL, LENGTH, NULL, NULL,
			NULL, 401, "TokenNotFound"},
		{"GET " RES OWN_PATH, NULL, NULL, LENGTH, NULL, NULL, NULL, 401, "TokenNotFound"},
		{GET(OTHER_PATH), 401, "PolicyDeny"},
		{GET(OTHER_PATH "/?" OWN_PATH), 401, "PolicyDeny"},
		/* without a token as with one */
		{"GET " RES "a/b", NULL, NULL, LENGTH, NULL, NULL, NULL, NOT_A_PATH},
		{GET(""), NOT_A_PATH},
		{GET("/"), NOT_A_PATH},
		{GET("//" OWN_PATH), NOT_A_PATH},
		{GET(OWN_PATH "//"), NOT_A_PATH},
		{GET(OWN_PATH "/x"), NOT_A_PATH},
		{GET("default//" UUID "/root"), NOT_A_PATH},
		{GET("default%2F" UUID "/root"), NOT_A_PATH},
		{GET("default%2f" UUID "%2froot"), NOT_A_PATH},
		{GET(OWN_PATH "%2F"), NOT_A_PATH},
		{GET("default/" OTHER "/../" UUID "/root"), NOT_A_PATH},
		{GET("default/" OTHER "/%2e%2E/root"), NOT_A_PATH},
		{GET("./" OWN_PATH), NOT_A_PATH},
		{GET("%252e/" UUID "/root"), NOT_A_PATH},
		{GET("default/" UUID "/root%00"), NOT_A_PATH},
		{GET("default/" UUID "/root%3F"), NOT_A_PATH},
		{GET("default/" UUID "/root%3fx"), NOT_A_PATH},
		{GET("default/" UUID "/roo%7"), NOT_A_PATH},
		{GET("default/" UUID "/roo%"), NOT_A_PATH},
		{GET("default/" UUID "/ro%zzot"), NOT_A_PATH},
		{GET("default/" UUID "/root;x"), NOT_A_PATH},
		{GET("default\\" UUID "\\root"), NOT_A_PATH},
		{"HEAD " RES OWN_PATH, COOKIE, NULL, LENGTH, NULL, NULL, NULL, 404, ""},
	};
	struct both b;

	both_start(&b);
	check(&b, rows, ARRAY_LEN(rows));
	both_stop(&b);
}
