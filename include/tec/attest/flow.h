/* SPDX-License-Identifier: MIT */
/*
 * One attestation with one server: the RCAR handshake as the attester (auth, evidence, attest), then a
 * resource with the session that it made. No retries: attest/fetch.h does that.
 *
 * struct attest_token: a token and the key that what is fetched with it is encrypted to. The flow that
 * got it owns it until `done` takes it.
 */
#ifndef TEC_ATTEST_FLOW_H
#define TEC_ATTEST_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/attest/source.h"
#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/jose/jwe.h"
#include "tec/net/httpc.h"

#define ATTEST_RESOURCE_MAX (4u << 20)

struct attest_token {
	struct secret *text; /* owned; the JWT, a NUL behind it that secret_len counts */
	struct jwe_own *key; /* owned */
	int64_t exp_s;       /* wall clock; 0: it does not say */
};
void attest_token_free(struct attest_token *t); /* NULL is fine */

/* Two segments of any length separated by '/', and a third: repository, type, tag. */
bool attest_path_valid(const char *path);

struct attest_flow_request {
	const char *url;       /* "https://host:port", copied as all here */
	struct httpc_tls *tls; /* NULL: plain http; a reference is taken */
	const char *path;      /* of a resource; NULL: only the token */
	const char *init_data; /* TOML; NULL: none */
	const struct attest_token
		*token;      /* borrowed until done: use it instead of a handshake; NULL */
	uint32_t connect_ms; /* 0: 5,000, also for the answer to the first request */
};

struct attest_flow_answer {
	enum attest_fault fault;
	struct err err;             /* unless fault is ATTEST_OK */
	bool stale;                 /* the given token is not accepted any more */
	struct attest_token *token; /* of this handshake; take it by setting NULL */
	struct body resource;       /* body_move() it; else it is wiped */
};
typedef void (*attest_flow_fn)(void *arg, struct attest_flow_answer *answer);

struct op *attest_flow_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_flow_request *r, attest_flow_fn done,
	void *arg);

/* The nonce in a server's answer to auth, the token in its answer to attest: for fuzzers too. The
 * caller frees. */
char *attest_flow_read_nonce(const char *body, size_t len, struct err *err) MUST_CHECK;
struct attest_token *attest_flow_read_token(
	const char *body, size_t len, struct err *err) MUST_CHECK;
/* What a refusal means and says: its text goes into err. */
enum attest_fault attest_flow_judge(
	int status, const char *body, size_t len, const char *step, struct err *err);

#endif
