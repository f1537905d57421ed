/* SPDX-License-Identifier: MIT */
/*
 * struct guard: a reverse proxy between nodes and a stock Trustee. Its node listener forwards the
 * three requests of the RCAR handshake and nothing else, and an attestation only after its evidence
 * was checked here: the forwarded body is written again from the checked values (rats/rcar.h). Its
 * admin listener forwards the admin API. A request is forwarded once and never repeated.
 *
 * Owns both listeners; the caller binds them and sets their TLS. Every refusal is a response in the
 * shape of Trustee's errors; there is no other way to fail.
 */
#ifndef TEC_GUARD_PROXY_H
#define TEC_GUARD_PROXY_H

#include <stdbool.h>

#include "tec/loop/loop.h"
#include "tec/net/httpc.h"
#include "tec/net/httpd.h"

struct guard_conf {
	const char *upstream;           /* "http://127.0.0.1:8081" */
	struct httpc_tls *upstream_tls; /* a reference is taken; NULL: plain */
	bool sample;                    /* accept sample evidence, which proves nothing */
	bool additional;                /* accept additional_evidence, unchecked */
	size_t attest_max;              /* bytes of an attestation request */
	unsigned sessions, sessions_per_source;
	uint32_t session_ms; /* lifetime of a session in Trustee */
	unsigned max_connections;
	struct ratelimit *rate; /* of the node listener; borrowed; NULL: off */
	uint32_t look_ms;       /* guard/look.h */
};

struct guard;
struct guard *guard_new(struct loop *l, struct httpc *http, const struct guard_conf *conf);
void guard_free(struct guard *g); /* NULL is fine; closes its connections */
struct httpd *guard_node_httpd(struct guard *g);
struct httpd *guard_admin_httpd(struct guard *g);
bool guard_upstream_answers(const struct guard *g);

/* Whether the upstream may be used: https, or http to a loopback address. ERR_INVALID. */
int guard_upstream_check(const char *url, struct err *err) MUST_CHECK;

#endif
