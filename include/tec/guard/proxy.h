/* SPDX-License-Identifier: MIT */
/*
 * struct guard: a reverse proxy between nodes and a stock Trustee. Its node listener passes the
 * three requests of the RCAR handshake and nothing else, and an attestation only after its evidence
 * was read here: what is forwarded is written again from what was checked (rats/rcar.h). Its admin
 * listener passes the admin API. A request is forwarded once and never repeated.
 *
 * Owns both listeners; the caller binds them and sets their TLS. Every refusal has Trustee's error
 * shape. Fails in no other way than by an answer.
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
	bool sample;                    /* sample evidence passes too: it proves nothing */
	bool additional;   /* additional_evidence may be given, and is not looked into */
	size_t attest_max; /* bytes of an attestation */
	unsigned sessions, sessions_per_source;
	uint32_t session_ms; /* Trustee's: after so long it forgets one */
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

/* Is this an upstream that may be spoken to: http to a loopback address, or https? ERR_INVALID. */
int guard_upstream_check(const char *url, struct err *err) MUST_CHECK;

#endif
