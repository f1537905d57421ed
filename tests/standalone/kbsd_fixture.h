/* SPDX-License-Identifier: MIT */
/* For tests of standalone/: admin tokens, and a broker on a real socket in the test's own thread.
 */
#ifndef TESTS_STANDALONE_KBSD_FIXTURE_H
#define TESTS_STANDALONE_KBSD_FIXTURE_H

#include <criterion/criterion.h>

#include "net/net_testing.h"

#include "tec/base/metric.h"
#include "tec/jose/jws.h"
#include "tec/standalone/kbsd.h"

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
	struct loop *loop;
	struct kbsstore *store;
	struct kbsd *kbsd;
	struct pki_key *key;
	struct jws_public *admin;
	char *bearer;       /* good for ever */
	struct strbuf seen; /* "verb status type;" of every request */
};

static inline void fixture_note(void *arg, const struct kbsd_event *e)
{
	struct broker *b = arg;

	strbuf_addf(&b->seen, "%s %d %s;", e->verb, e->status, e->type);
}

/* max_body, quirks, issuer and audience of conf are taken, the rest is made. */
static inline void broker_start(struct broker *b, const struct kbsd_conf *wanted)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct kbsd_conf conf = *wanted;
	struct err err = ERR_INIT;

	*b = (struct broker){.loop = loop_new(), .store = kbsstore_memory_new()};
	b->key = pki_key_new_ed25519();
	b->bearer = fixture_bearer(b->key, FIXTURE_FOREVER);
	pki_key_public_pem(b->key, &pem);
	conf.name = "kbs";
	b->admin = jws_public_from_pem(pem.data, pem.len, &err);
	cr_assert(b->admin);
	conf.admin_key = b->admin;
	conf.store = b->store;
	conf.on_request = fixture_note;
	conf.arg = b;
	cr_assert_eq(kbsd_seed(b->store, &err), 0, "%s", err.text);
	b->kbsd = kbsd_new(b->loop, &conf);
	cr_assert_eq(httpd_listen(kbsd_httpd(b->kbsd), "127.0.0.1:0", &err), 0, "%s", err.text);
}

static inline void broker_stop(struct broker *b)
{
	kbsd_free(b->kbsd);
	kbsstore_free(b->store);
	loop_free(b->loop);
	jws_public_free(b->admin);
	pki_key_free(b->key);
	free(b->bearer);
	strbuf_fini(&b->seen);
	metric_reset_all();
}

/* One request on a connection of its own; bearer NULL: without. The caller ends the reply. */
static inline struct cli_reply broker_ask(struct broker *b, const char *method, const char *target,
	const char *bearer, const void *body, size_t len)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	struct cli c = cli_open(b->loop, httpd_port(kbsd_httpd(b->kbsd)));
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

/* The same as text: "STATUS TYPE" of a refusal, "STATUS BODY" of anything else; checks how a
 * refusal looks. Borrowed until the next call. */
static inline const char *broker_says(struct broker *b, const char *method, const char *target,
	const char *bearer, const char *body, bool quirks)
{
	static const char url[] =
		"{\"type\":\"https://github.com/confidential-containers/kbs/errors/";
	static char said[512];
	struct cli_reply r = broker_ask(b, method, target, bearer, body, body ? strlen(body) : 0);
	const char *type = cli_header(&r, "Content-Type");

	if (str_starts(r.body, url)) {
		char *variant = r.body + sizeof(url) - 1;

		cr_expect_not_null(strstr(r.body, "\",\"detail\":\""), "%s", r.body);
		cr_expect(quirks ? type == NULL : str_eq(type, "application/json"), "%s: %s",
			target, type ? type : "-");
		snprintf(said, sizeof(said), "%d %.*s", r.status, (int)strcspn(variant, "\""),
			variant);
	} else {
		snprintf(said, sizeof(said), "%d %s", r.status, r.body);
	}
	cli_reply_fini(&r);
	return said;
}

#endif
