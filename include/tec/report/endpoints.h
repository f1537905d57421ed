/* SPDX-License-Identifier: MIT */
/* The three servers that nodes need, with the addresses and certificates configured in a
 * TrustedExecutionCluster, and a shell script that checks them from another host. */
#ifndef TEC_REPORT_ENDPOINTS_H
#define TEC_REPORT_ENDPOINTS_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/model/cluster.h"

enum report_endpoint_is {
	REPORT_REGISTRATION,
	REPORT_KEY_REGISTRATION,
	REPORT_KBS,
	REPORT_N_ENDPOINTS
};

struct report_endpoint {
	const char *name;     /* "registration"; static */
	const char *method;   /* creates nothing on the server; static */
	int expected;         /* HTTP status with which the right server refuses method */
	const char *secret;   /* Secret with its certificate; borrowed; NULL: plain HTTP */
	char *url, *host;     /* owned; NULL: no address; host without brackets */
	struct strbuf ca_pem; /* CA certificates that nodes trust there; the caller fills it */
};

/* The URL that new nodes register at: from `given` (--address, may be NULL), from
 * publicRegisterAddr, or from the host of publicAttestationKeyRegisterAddr. ERR_NOT_FOUND: none
 * is configured. The caller frees. */
char *report_register_url(
	const struct model_cluster *c, const char *given, struct err *err) MUST_CHECK;
/* Fills all three; release them with report_endpoints_fini(). */
void report_endpoints(
	const struct model_cluster *c, struct report_endpoint out[REPORT_N_ENDPOINTS]);
void report_endpoints_fini(struct report_endpoint e[REPORT_N_ENDPOINTS]);
/* Whether the status comes from the right server; 429 (rate limited) counts as an answer, too. */
bool report_endpoint_answers(const struct report_endpoint *e, int status);

/* Appends a POSIX shell script that checks, with curl, each endpoint that has an address.
 * ERR_INVALID: an address has characters that are unsafe in a script. */
int report_endpoints_script(const struct report_endpoint e[REPORT_N_ENDPOINTS], struct strbuf *out,
	struct err *err) MUST_CHECK;

/* Whether the name resolves only inside a Kubernetes cluster: NAME, NAME.NS.svc, or below
 * cluster.local. */
bool report_inside_only(const char *address);

#endif
