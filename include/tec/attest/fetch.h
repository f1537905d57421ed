/* SPDX-License-Identifier: MIT */
/*
 * Fetch a resource or a token from the first of several servers that provides it. All servers are
 * asked in order, and again after a wait, until one provides it or the retries or the time are used
 * up. A policy refusal is retried as well, because the machine may be approved later. Each server's
 * error is printed once, and repeated every 10 s while it persists.
 *
 * If a registration is configured, the attestation key is created if necessary and registered
 * before the first attestation. A failed registration is retried in each round.
 */
#ifndef TEC_ATTEST_FETCH_H
#define TEC_ATTEST_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/attest/flow.h"
#include "tec/attest/pin.h"
#include "tec/base/body.h"
#include "tec/pki/spki.h"

struct attest_fetch_request {
	const struct attest_config *config; /* borrowed until done */
	bool token_only;                    /* config->path is ignored */
	uint32_t budget_ms;                 /* for the whole fetch; 0: no limit */
	/* Decide whether the resource is usable (NULL: always). It returns -1 if it is not; the
	 * next server is asked then. It may take the resource with body_move(). */
	int (*accept)(void *arg, struct body *resource, struct err *err);
	void (*say)(void *arg, const char *text); /* progress for a person; NULL: none */
	size_t first;                             /* index of the server to ask first */
	/* A token from that server, borrowed until done, used until the server rejects
	 * it; or NULL. */
	const struct attest_token *token;
	const char *ak_file; /* where to write the registered key as PEM; NULL: nowhere */
};

struct attest_fetch_answer {
	enum attest_fault fault;
	struct err err;
	bool said;                  /* the error was passed to say() already */
	struct attest_token *token; /* take it by setting NULL */
	struct body resource;       /* unless accept() took it */
	size_t server;              /* index of the server that provided it */
};
typedef void (*attest_fetch_fn)(void *arg, struct attest_fetch_answer *answer);

/* NULL with ERR_INVALID: a certificate in the configuration is unusable. */
struct op *attest_fetch_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_fetch_request *r, attest_fetch_fn done,
	void *arg, struct err *err) MUST_CHECK;

/*
 * Register the attestation key with the operator's listener: PUT {"public_key", "uuid",
 * "platform"}. Newly registered (201) and already registered (409) are both success.
 */

/* note: a message from the server that a person should see although registration succeeded, or
 * NULL. */
typedef void (*attest_register_fn)(
	void *arg, enum attest_fault fault, const struct err *err, const char *note);

/* tls NULL: plain http. */
struct op *attest_register_start(struct httpc *client, struct op_scope *scope, const char *url,
	struct httpc_tls *tls, const char *uuid, const struct pki_spki *ak, attest_register_fn done,
	void *arg);

/* Make the TLS context for one server: it trusts the certificate in the configuration, or else the
 * system's CAs. *out NULL: plain http. */
int attest_server_tls(
	const struct attest_server *s, struct httpc_tls **out, struct err *err) MUST_CHECK;

#endif
