/* SPDX-License-Identifier: MIT */
/*
 * A broker's admin API, as Trustee speaks it, as a function: the values of a request in, an answer
 * out. It covers resources, reference values and policies. Policies are stored and listed, not
 * evaluated: if `policies` lists those that can be evaluated, any other text is refused. Reading a
 * resource requires an attestation token, which broker/attest checks.
 *
 * Every refusal is JSON with `type` and `detail`, and never quotes the client's input. The token is
 * checked first, then the path, then the body, so a client without a token cannot learn which names
 * exist. A write is in the store when the answer is made.
 */
#ifndef TEC_BROKER_ADMIN_H
#define TEC_BROKER_ADMIN_H

#include <stdint.h>

#include "tec/base/str.h"
#include "tec/broker/store.h"
#include "tec/rats/policy.h"

#define BROKER_ADMIN_PREFIX "/kbs/v0/"

/* A policy that can be evaluated here. */
struct broker_policy {
	const char *text; /* as stored, NUL-terminated */
	bool resource;    /* a resource policy; otherwise an attestation policy */
	enum rats_policy policy;
	bool require_pcr7;  /* of an attestation policy */
	bool once_per_boot; /* of a resource policy */
};

struct broker_admin {
	struct broker_store *store;           /* borrowed */
	const struct broker_policy *policies; /* borrowed; NULL: any text is accepted */
	size_t n_policies;
	/* Checks the right to a target; ERR_DENIED with http 401 or 403 and a text for the client.
	 * NULL: the caller is this program, which needs no token. */
	int (*check)(const void *arg, const char *authorization, const char *target, int64_t now_s,
		struct err *err);
	const void *arg;
};

struct broker_request {
	const char *method, *target; /* the target with its query, as sent */
	const char *authorization;   /* value of the header; NULL: absent */
	const void *body;
	size_t len;
};

struct broker_answer {
	int status;
	const char *verb;         /* static: resource-put, refvalue-get, ...; other */
	const char *type;         /* error type, static; "" if not an error */
	const char *content_type; /* static; NULL: none */
	const char *challenge;    /* WWW-Authenticate; static; NULL: none */
	char allow[32];           /* with status 405: the allowed methods; otherwise "" */
	uint32_t retry_after_s;   /* 0: no header */
	struct strbuf cookie;     /* Set-Cookie; empty: none */
	struct strbuf body;
};
void broker_answer_fini(struct broker_answer *a);
#define cleanup_broker_answer __attribute__((cleanup(broker_answer_fini)))

/* Initialises out. */
void broker_admin(const struct broker_admin *a, const struct broker_request *r, int64_t now_s,
	struct broker_answer *out);
/* Turn the answer into a refusal, whatever it was. type: the last segment of the error's URL. */
void broker_admin_refuse(struct broker_answer *a, int status, const char *type, const char *fmt,
	...) PRINTF_LIKE(4, 5);

/* The policy with exactly this text; NULL: none. */
const struct broker_policy *broker_policy_find(const struct broker_policy *policies, size_t n,
	bool resource, const void *text, size_t len);

#endif
