/* SPDX-License-Identifier: MIT */
/*
 * struct broker_attest: the node's side of a key broker, Trustee's RCAR handshake: a challenge, an
 * attestation against it, and the resource that the token then grants, encrypted to the attested
 * key. Functions of a request: an answer out, no socket.
 *
 * Stricter than Trustee where that is lax (tpm/quote.h), and it reveals less: the reason for a
 * refusal goes to on_judged, for the log and the Machine's Event, together with the nearest
 * approved boot (broker/reason.h). Policies are evaluated natively (rats/policy.h): an attestation
 * is refused if the text of the stored policy is not one of `policies`.
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

/* An attestation that was judged, or a resource that an attested node was refused. The node may
 * have made up all of it unless key_proved. */
struct broker_judged {
	const char *peer;                     /* address of the node */
	enum rats_flaw flaw;                  /* NONE: well-formed, bound and signed */
	const char *why;                      /* the reason, for people; NULL: affirming */
	int pcr;                              /* the PCR that why is about; -1: none */
	const struct rats_evidence *evidence; /* NULL if its key is unreadable */
	bool key_proved;                      /* signed by the evidence's key */
	const char *machine;                  /* id of the key's Machine; NULL: unknown */
	const char *path;                     /* the resource; NULL: an attestation */
};

struct broker_attest_conf {
	struct broker_store *store;
	const struct pki_key *signer; /* signs the tokens; P-256 */
	const struct broker_policy *policies;
	size_t n_policies;
	bool sample; /* accept sample evidence: it affirms nothing; logged as a warning */
	uint32_t token_s, session_ms;
	unsigned sessions, sessions_per_source;
	void (*on_judged)(void *arg, const struct broker_judged *j); /* NULL: none */
	void *arg;
};

struct broker_attest;
struct broker_attest *broker_attest_new(const struct broker_attest_conf *conf);
void broker_attest_free(struct broker_attest *b); /* NULL is fine */

/* A request of a node, with the current times. */
struct broker_node {
	uint8_t source[ADDR_SOURCE_LEN];
	const char *peer;                   /* for the log */
	const char *cookie, *authorization; /* headers; NULL: absent */
	const void *body;
	size_t len;
	int64_t now_s;
	uint64_t now_ms;
};

size_t broker_attest_sessions(const struct broker_attest *b); /* in progress */
/* End the handshakes that have expired. Otherwise they end when the next one starts. */
void broker_attest_sweep(struct broker_attest *b, uint64_t now_ms);

/* Both initialise out. */
void broker_attest_auth(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
void broker_attest_attest(
	struct broker_attest *b, const struct broker_node *n, struct broker_answer *out);
/* path: what follows ".../resource/", as sent. Initialises out. */
void broker_attest_resource(struct broker_attest *b, const struct broker_node *n, const char *path,
	struct broker_answer *out);

#endif
