/* SPDX-License-Identifier: MIT */
/*
 * struct broker_attest: the node's side of a key broker, Trustee's RCAR handshake: a challenge, an
 * attestation against it, and the resource that the token then allows, encrypted to the key that
 * was attested. Functions of a request: an answer out, no socket.
 *
 * Stricter than Trustee where that is lax (tpm/quote.h), and silent about more than Trustee would
 * tell: what a node is refused for is given to on_judged, for the log and the Machine's Event, with
 * the nearest of what is approved (broker/reason.h). Policies are evaluated natively (rats/policy.h): an attestation under a policy whose text is not
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

/*
 * One attestation that was judged, or a resource that an attested node was refused. What is in it may
 * be the node's invention unless key_proved.
 */
struct broker_judged {
	const char *peer;                     /* address of the node */
	enum rats_flaw flaw;                  /* NONE: well-formed, bound and signed */
	const char *why;                      /* sentences for a person; NULL: affirming */
	int pcr;                              /* the register that why is about; -1: none */
	const struct rats_evidence *evidence; /* NULL, unless its key could be read */
	bool key_proved;                      /* the evidence's key signed all of this */
	const char *machine;                  /* the id that the key is registered for; or NULL */
	const char *path;                     /* of the resource; NULL: an attestation */
};

struct broker_attest_conf {
	struct broker_store *store;
	const struct pki_key *signer; /* P-256: of tokens */
	const struct broker_policy *policies;
	size_t n_policies;
	bool sample; /* sample evidence may attest: it affirms nothing, and a warning says so */
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
	const char *peer;                   /* for the log */
	const char *cookie, *authorization; /* headers; NULL: absent */
	const void *body;
	size_t len;
	int64_t now_s;
	uint64_t now_ms;
};

size_t broker_attest_sessions(const struct broker_attest *b); /* begun and not ended */
/* Ends the handshakes that are too old: without it they go when the next one is begun. */
void broker_attest_sweep(struct broker_attest *b, uint64_t now_ms);

/* out is initialised. */
void broker_attest_auth(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
void broker_attest_attest(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
/* path: behind ".../resource/", as sent. */
void broker_attest_resource(struct broker_attest *b, const struct broker_node *n, const char *path,
	struct broker_answer *out);

#endif
