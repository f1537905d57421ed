/* SPDX-License-Identifier: MIT */
/*
 * A resource or a token from the first of several servers that gives it: all servers in order, then all
 * again after a wait, until one gives it or the retries or the time are used up. What a server refuses
 * by policy may be approved later, so it is asked again as well; each server's reason is said once, and
 * every 10 s that it goes on.
 *
 * With a registration the attestation key is made if there is none, and registered, before the first
 * attestation; that is tried again with each round.
 */
#ifndef TEC_ATTEST_FETCH_H
#define TEC_ATTEST_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/attest/flow.h"
#include "tec/attest/pin.h"
#include "tec/base/body.h"

struct attest_fetch_request {
	const struct attest_config *config; /* borrowed until done */
	bool token_only;                    /* config->path is not used */
	uint32_t budget_ms;                 /* for all of it; 0: none */
	/* Whether the resource is what is needed (NULL: always); -1: the server gave another one. It
	 * may take it with body_move(). */
	int (*accept)(void *arg, struct body *resource, struct err *err);
	void (*say)(void *arg, const char *text); /* for a person; NULL: nobody */
	size_t first;                             /* the server to ask first */
	/* A token of that server, borrowed until done: used as long as it accepts it. NULL: none. */
	const struct attest_token *token;
	const char *ak_file; /* where the registered key is written, in PEM; NULL: nowhere */
};

struct attest_fetch_answer {
	enum attest_fault fault;
	struct err err;
	bool said;                  /* the error was said already */
	struct attest_token *token; /* take it by setting NULL */
	struct body resource;       /* unless accept() took it */
	size_t server;              /* which one gave it */
};
typedef void (*attest_fetch_fn)(void *arg, struct attest_fetch_answer *answer);

/* NULL: ERR_INVALID, a certificate in the configuration. */
struct op *attest_fetch_start(struct httpc *client, const struct attest_source *source,
	struct op_scope *scope, const struct attest_fetch_request *r, attest_fetch_fn done,
	void *arg, struct err *err) MUST_CHECK;

#endif
