/* SPDX-License-Identifier: MIT */
/*
 * One attestation with one server: the RCAR handshake as the attester (auth, evidence, attest),
 * then a resource in the same session. There are no retries: attest/fetch.h does that.
 *
 * struct attest_token: a token, and the key that resources fetched with it are encrypted to. The
 * flow that obtained it owns it until `done` takes it.
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
	struct secret *text; /* owned; the JWT and a NUL; secret_len counts the NUL */
	struct jwe_own *key; /* owned */
	int64_t exp_s;       /* wall clock; 0: not stated */
};
void attest_token_free(struct attest_token *t); /* NULL is fine */

/* Check for three segments, REPOSITORY/TYPE/TAG, of 1 to 255 characters each. */
bool attest_path_valid(const char *path);

struct attest_flow_request {
	const char *url;       /* "https://host:port"; all strings are copied */
	struct httpc_tls *tls; /* NULL: plain http; a reference is taken */
	const char *path;      /* of a resource; NULL: only the token */
	const char *init_data; /* TOML; NULL: none */
	const struct attest_token
		*token;      /* borrowed until done; replaces the handshake. NULL: none */
	uint32_t connect_ms; /* also for the answer to the first request; 0: 5,000 */
};

struct attest_flow_answer {
	enum attest_fault fault;
	struct err err;             /* unless fault is ATTEST_OK */
	bool stale;                 /* the server no longer accepts the given token */
	struct attest_token *token; /* from this handshake; set NULL to take it */
	struct body resource;       /* take it with body_move(); otherwise it is wiped */
};
typedef void (*attest_flow_fn)(void *arg, struct attest_flow_answer *answer);

struct op *attest_flow_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_flow_request *r, attest_flow_fn done,
	void *arg);

/* Read the nonce from the answer to auth, and the token from the answer to attest. Public for the
 * fuzzers. The caller frees the result. */
char *attest_flow_read_nonce(const char *body, size_t len, struct err *err) MUST_CHECK;
struct attest_token *attest_flow_read_token(
	const char *body, size_t len, struct err *err) MUST_CHECK;
/* The claims of a JWT, which the caller puts; NULL: unreadable. */
struct json_object *attest_flow_claims(const char *jwt);
/* Classify an error answer of a server, and set err to its text. */
enum attest_fault attest_flow_judge(
	int status, const char *body, size_t len, const char *step, struct err *err);

#endif
