/* SPDX-License-Identifier: MIT */
/*
 * struct broker_attest: the node's side of a key broker, Trustee's RCAR handshake: a challenge, an
 * attestation against it, and the resource that the token then allows, encrypted to the key that
 * was attested. Functions of a request: an answer out, no socket.
 *
 * Stricter than Trustee where that is lax (tpm/quote.h), and silent about more than Trustee would
 * tell: what a node is refused for is given to on_judged, for the log and the Machine's Event.
 * Policies are evaluated natively (rats/policy.h): an attestation under a policy whose text is not
 * one of `policies` is refused.
 *
 * Store, signer and policies are borrowed.
 */
#ifndef TEC_BROKER_ATTEST_H
#define TEC_BROKER_ATTEST_H

#include <stdint.h>

#include "tec/broker/admin.h"
#include "tec/broker/store.h"
#include "tec/net/addr.h"
#include "tec/pki/key.h"
#include "tec/rats/ear.h"
#include "tec/rats/policy.h"

struct broker_policy {
	const char *text; /* as it is stored, NUL-terminated */
	bool resource;    /* a resource policy; else an attestation policy */
	enum rats_policy policy;
	bool require_pcr7; /* of an attestation policy */
};

/* One attestation that was judged. */
struct broker_judged {
	enum rats_flaw flaw;                  /* NONE: well-formed, bound and signed */
	const char *why;                      /* a sentence; NULL: affirming */
	const struct rats_evidence *evidence; /* with flaw NONE, or when its key could be read */
	const struct rats_verdict *verdict;   /* with flaw NONE */
};

struct broker_attest_conf {
	struct broker_store *store;
	const struct pki_key *signer; /* P-256: of tokens */
	const struct broker_policy *policies;
	size_t n_policies;
	bool sample; /* sample evidence may attest: it affirms nothing */
	uint32_t token_s, session_ms;
	unsigned sessions, sessions_per_source;
	void (*on_judged)(void *arg, const struct broker_judged *j); /* NULL: none */
	void *arg;
};

struct broker_attest;
struct broker_attest *broker_attest_new(const struct broker_attest_conf *conf);
void broker_attest_free(struct broker_attest *b); /* NULL is fine */

void broker_attest_set_store(struct broker_attest *b, struct broker_store *store);

/* One request of a node; the time that counts. */
struct broker_node {
	uint8_t source[ADDR_SOURCE_LEN];
	const char *cookie, *authorization; /* headers; NULL: absent */
	const void *body;
	size_t len;
	int64_t now_s;
	uint64_t now_ms;
};

/* out is initialised. */
void broker_attest_auth(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
void broker_attest_attest(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
/* path: behind ".../resource/", as sent. */
void broker_attest_resource(struct broker_attest *b, const struct broker_node *n, const char *path,
	struct broker_answer *out);

#endif
