/* SPDX-License-Identifier: MIT */
/* What both registration listeners share: where they find the cluster, the certificates and the
 * API, and when they may serve at all. */
#ifndef TEC_SRV_LISTENER_H
#define TEC_SRV_LISTENER_H

#include "tec/k8s/call.h"
#include "tec/k8s/event.h"
#include "tec/k8s/transport.h"
#include "tec/loop/timer.h"
#include "tec/net/httpd.h"
#include "tec/srv/cert.h"
#include "tec/srv/pending.h"
#include "tec/srv/regkey.h"
#include "tec/state/cluster.h"

/* Borrowed from cmd/operator.c; outlives the listeners. */
struct srv_env {
	struct loop *loop;
	struct k8s_transport *api; /* not bound to leadership: every replica registers nodes */
	const char *ns;
	const struct state *state;
	struct srv_certs *certs;
	struct srv_pending *pending;
	struct srv_regkey *regkey;
	struct k8s_events *events;
	struct ratelimit *rate;
	unsigned max_connections;
};

/*
 * The cluster both listeners may serve at all, or NULL: r has been refused with 503 (caches not
 * filled, no cluster, registration.mode Token, a spec that lost fields its annotation still has,
 * spec.authority Following or Frozen) or with 410 (Retired).
 */
const struct model_cluster *srv_served_cluster(const struct srv_env *env, struct httpd_req *r);
/* Deadline for an API call on behalf of r: below the request's own, never 0. */
uint32_t srv_api_ms(const struct httpd_req *r);
/* Answers r for a failed API call: 503 with Retry-After, or 500. Logs it. */
void srv_reply_api_error(struct httpd_req *r, const struct err *err);
/* Answers r with 503 as this limit is reached, counts it, and reports it once a minute in a log line
 * and an Event of the cluster. */
void srv_reply_limit(const struct srv_env *env, struct httpd_req *r, enum srv_limit limit);
/* One registration listener: a route table over httpd, with the certificate that the served cluster
 * names. */
struct srv_listener_conf {
	const char *name;                 /* label in logs and metrics */
	const struct httpd_route *routes; /* static; handlers get the struct srv_listener as arg */
	size_t n_routes;
	const char *(*error_body)(struct strbuf *out, int status, const char *message);
	const char *(*tls_secret)(const struct model_cluster *c); /* NULL: plain HTTP */
	/* What the handlers keep between requests: its size, zeroed at first, and what it owns. */
	size_t state_size;
	void (*state_fini)(void *state); /* NULL: it owns nothing */
};
struct srv_listener;
struct srv_listener *srv_listener_new(
	const struct srv_env *env, const struct srv_listener_conf *conf);
void srv_listener_free(struct srv_listener *s);           /* NULL is fine */
struct httpd *srv_listener_httpd(struct srv_listener *s); /* to listen, drain, ask the port */
const struct srv_env *srv_listener_env(const struct srv_listener *s);
void *srv_listener_state(const struct srv_listener *s);
/* The cluster or a certificate changed: serve with the right certificate, in plain text, or not at
 * all. */
void srv_listener_refresh(struct srv_listener *s);

/* The same for another listener of this process: secret NULL is plain HTTP. *tls: it has a certificate;
 * the caller keeps it between the calls. */
void srv_listener_follow(const struct srv_env *env, struct httpd *h, const char *secret, bool *tls);

/*
 * A request that waits for the API; embedded as FIRST member of the handler's own job. It ends by
 * srv_job_reply() and srv_job_end(), or with the client, or by itself with a 503 when the API takes
 * longer than srv_api_ms(); its calls are cancelled then. The places it has taken count on, unless
 * srv_place_give_back() was called and the member set to NULL.
 */
struct srv_job {
	struct op op; /* represents the job in the request's scope */
	struct srv_listener *listener;
	struct httpd_req *req; /* valid until srv_job_reply */
	struct op_scope ops;   /* for the job's calls */
	struct timer late;
	struct srv_place *machine, *key; /* owned; NULL: none */
};
void *srv_job_start(size_t size, struct srv_listener *s,
	struct httpd_req *req);                     /* zeroed beyond the first member */
struct httpd_req *srv_job_reply(struct srv_job *j); /* the request, to be answered now */
/* The API answered the create_only that this place (NULL is fine) was taken for. */
void srv_job_settle(
	struct srv_place **take, const struct err *err, const struct k8s_result *result);
void srv_job_end(struct srv_job *j); /* frees it */

#endif
