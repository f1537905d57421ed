/* SPDX-License-Identifier: MIT */
/* The three servers that nodes need, with the addresses and certificates that a TrustedExecutionCluster
 * gives them, and a script that asks them from elsewhere. */
#ifndef TEC_SHOW_ENDPOINTS_H
#define TEC_SHOW_ENDPOINTS_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/model/cluster.h"

enum show_endpoint_is { SHOW_REGISTRATION, SHOW_KEY_REGISTRATION, SHOW_KBS, SHOW_N_ENDPOINTS };

struct show_endpoint {
	const char *name;     /* "registration"; static */
	const char *method;   /* makes nothing there; static */
	int expected;         /* the status with which the right server refuses that */
	const char *secret;   /* of its certificate; borrowed from the cluster; NULL: plain HTTP */
	char *url, *host;     /* owned; NULL: no address; host without brackets */
	struct strbuf ca_pem; /* what nodes trust there, certificates alone; from the caller */
};

/* Where new nodes ask: at `given` (--address, may be NULL), publicRegisterAddr, or else what is known of
 * the other listener. ERR_NOT_FOUND: nothing is. The caller frees. */
char *show_register_url(
	const struct model_cluster *c, const char *given, struct err *err) MUST_CHECK;
/* All three; show_endpoints_fini(). */
void show_endpoints(const struct model_cluster *c, struct show_endpoint out[SHOW_N_ENDPOINTS]);
void show_endpoints_fini(struct show_endpoint e[SHOW_N_ENDPOINTS]);
/* Whether the answer is of the right server; one that limits its clients is that too. */
bool show_endpoint_answers(const struct show_endpoint *e, int status);

/* Appends a POSIX shell script that asks those that have an address, with curl. ERR_INVALID: an address
 * that is not to be put into a script. */
int show_endpoints_script(const struct show_endpoint e[SHOW_N_ENDPOINTS], struct strbuf *out,
	struct err *err) MUST_CHECK;

/* Whether only a cluster's own Pods know this name: NAME, NAME.NS.svc, or below cluster.local. */
bool show_inside_only(const char *address);

#endif
