/* SPDX-License-Identifier: MIT */
/* For tests of broker/: admin tokens, a broker without a listener, and one on a real socket in the
 * test's own thread. */
#ifndef TESTS_BROKER_FIXTURE_H
#define TESTS_BROKER_FIXTURE_H

#include <criterion/criterion.h>

#include "fake/broker.h"
#include "net/net_testing.h"
#include "tools/kbs-quirks.h"

#include "tec/base/clock.h"
#include "tec/base/metric.h"
#include "tec/broker/kbsd.h"
#include "tec/jose/jws.h"

#define FIXTURE_FOREVER "{\"role\":\"admin\",\"exp\":2147483647}"

/* "Bearer <token>"; the caller frees. */
static inline char *fixture_bearer(const struct pki_key *key, const char *claims)
{
	struct err err = ERR_INIT;
	cleanup_secret struct secret *token = jws_sign_eddsa(key, claims, strlen(claims), &err);

	cr_assert_not_null(token, "%s", err.text);
	return xasprintf("Bearer %s", (const char *)secret_peek(token));
}

struct broker {
	struct broker_store *store;
	struct broker_auth auth;
	struct broker_admin admin;
	struct pki_key *key;
	struct jws_public *public;
	char *bearer; /* good for ever */
	bool quirks;
	struct strbuf seen; /* "verb status type;" of every answer */
	struct loop *loop;  /* with broker_listen() */
	struct broker_kbsd *kbsd;
};

static inline void broker_start(
	struct broker *b, bool quirks, const char *issuer, const char *audience)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;

	*b = (struct broker){.store = broker_store_memory_new(), .quirks = quirks};
	b->key = pki_key_new_ed25519();
	b->bearer = fixture_bearer(b->key, FIXTURE_FOREVER);
	pki_key_public_pem(b->key, &pem);
	b->public = jws_public_from_pem(pem.data, pem.len, &err);
	cr_assert(b->public);
	cr_assert_eq(broker_admin_seed(b->store, &err), 0, "%s", err.text);
	b->auth = (struct broker_auth){.key = b->public, .issuer = issuer, .audience = audience};
	b->auth.acls = broker_admin_acls(&b->auth.n_acls);
	b->admin = (struct broker_admin){
		.store = b->store, .check = broker_auth_check, .arg = &b->auth};
}

static inline void fixture_note(void *arg, const struct broker_request *r, struct broker_answer *a)
{
	struct broker *b = arg;

	if (b->quirks)
		quirks_answer(r, a);
	strbuf_addf(&b->seen, "%s %d %s;", a->verb, a->status, a->type);
}

/* On a socket too. max_body 0: the default. */
static inline void broker_listen(struct broker *b, size_t max_body)
{
	struct broker_kbsd_conf conf = {.name = "kbs",
		.admin = &b->admin,
		.max_body = max_body ? max_body : (size_t)8 << 20,
		.on_answer = fixture_note,
		.arg = b,
		.error_body = b->quirks ? quirks_error_body : NULL};
	struct err err = ERR_INIT;

	b->loop = loop_new();
	b->kbsd = broker_kbsd_new(b->loop, &conf);
	cr_assert_eq(
		httpd_listen(broker_kbsd_httpd(b->kbsd), "127.0.0.1:0", &err), 0, "%s", err.text);
}

static inline void broker_stop(struct broker *b)
{
	broker_kbsd_free(b->kbsd);
	if (b->loop)
		loop_free(b->loop);
	broker_store_free(b->store);
	jws_public_free(b->public);
	pki_key_free(b->key);
	free(b->bearer);
	strbuf_fini(&b->seen);
	metric_reset_all();
}

/* What the admin API answers, without a listener: "STATUS TYPE" of a refusal, "STATUS BODY" of
 * anything else; checks how a refusal looks. Borrowed until the next call. */
static inline const char *broker_says(struct broker *b, const char *method, const char *target,
	const char *bearer, const char *body)
{
	static const char url[] =
		"{\"type\":\"https://github.com/confidential-containers/kbs/errors/";
	static char said[512];
	struct broker_request r = {method, target, bearer, body, body ? strlen(body) : 0};
	cleanup_broker_answer struct broker_answer a;

	broker_admin(&b->admin, &r, clock_wall_s(), &a);
	fixture_note(b, &r, &a);
	if (a.type[0]) {
		const char *text = strbuf_str(&a.body);

		cr_expect(str_starts(text, url) && str_starts(text + sizeof(url) - 1, a.type) &&
				  strstr(text, "\",\"detail\":\""),
			"%s", text);
		cr_expect(b->quirks ? a.content_type == NULL
				    : str_eq(a.content_type, "application/json"));
		cr_expect_eq(a.challenge != NULL, a.status == 401 && !b->quirks);
		cr_expect_eq(a.allow[0] != '\0', a.status == 405 && !b->quirks);
	}
	snprintf(said, sizeof(said), "%d %s", a.status, a.type[0] ? a.type : strbuf_str(&a.body));
	return said;
}

/* One request on a connection of its own; bearer NULL: without. The caller ends the reply. */
static inline struct cli_reply broker_ask(struct broker *b, const char *method, const char *target,
	const char *bearer, const void *body, size_t len)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	struct cli c = cli_open(b->loop, httpd_port(broker_kbsd_httpd(b->kbsd)));
	struct cli_reply r;

	strbuf_addf(&head, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", method, target);
	if (bearer)
		strbuf_addf(&head, "Authorization: %s\r\n", bearer);
	if (body)
		strbuf_addf(&head, "Content-Length: %zu\r\n", len);
	strbuf_adds(&head, "\r\n");
	cli_send(&c, head.data);
	if (len > 0)
		cli_send_some(&c, body, len, 2000);
	cr_assert(cli_reply(&c, &r, str_eq(method, "HEAD")), "%s %s", method, target);
	cli_close(&c);
	return r;
}

#endif
