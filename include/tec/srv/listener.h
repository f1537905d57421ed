/* SPDX-License-Identifier: MIT */
/* What both registration listeners share: access to the cluster, certificates and API, and the
 * conditions under which they may serve. */
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
#include "tec/caches/cluster.h"

/* Borrowed from cmd/operator.c; outlives the listeners. */
struct srv_env {
	struct loop *loop;
	struct k8s_transport *api; /* not bound to leadership: every replica registers nodes */
	const char *ns;
	const struct caches *caches;
	struct srv_certs *certs;
	struct srv_pending *pending;
	struct srv_regkey *regkey;
	struct k8s_events *events;
	struct ratelimit *rate;
	unsigned max_connections;
};

/*
 * The cluster that both listeners may serve, or NULL: r has then been answered with 503 (caches
 * not filled, no cluster, registration.mode Token, a spec that lost fields which its annotation
 * still has, spec.authority Following or Frozen) or 410 (Retired).
 */
const struct model_cluster *srv_served_cluster(const struct srv_env *env, struct httpd_req *r);
/* Milliseconds for an API call on behalf of r: less than the request has left, never 0. */
uint32_t srv_api_ms(const struct httpd_req *r);
/* Answers r with 503 because this limit is reached and counts it; reports it at most once a
 * minute with a log line and an Event of the cluster. */
void srv_reply_limit(const struct srv_env *env, struct httpd_req *r, enum srv_limit limit);
/* One registration listener: a route table over httpd, with the certificate from the Secret that
 * the served cluster names. */
struct srv_listener_conf {
	const char *name;                 /* label in logs and metrics */
	const struct httpd_route *routes; /* static; handlers get the struct srv_listener as arg */
	size_t n_routes;
	const char *(*error_body)(struct strbuf *out, int status, const char *message);
	int rate_status; /* tells a source that it is over its rate */
	const char *(*tls_secret)(const struct model_cluster *c); /* returns NULL: plain HTTP */
	/* State that the handlers keep between requests: its size (zeroed at start) and how to
	 * release it. */
	size_t state_size;
	void (*state_fini)(void *state); /* NULL: nothing to release */
};
struct srv_listener;
struct srv_listener *srv_listener_new(
	const struct srv_env *env, const struct srv_listener_conf *conf);
void srv_listener_free(struct srv_listener *s);           /* NULL is fine */
struct httpd *srv_listener_httpd(struct srv_listener *s); /* to listen, drain, query the port */
const struct srv_env *srv_listener_env(const struct srv_listener *s);
void *srv_listener_state(const struct srv_listener *s);
/* To be called when the cluster or a certificate has changed: switches to the right certificate,
 * to plain text, or to refusing. */
void srv_listener_refresh(struct srv_listener *s);

/* The same for another listener of this process; secret NULL: plain HTTP. *tls says whether h has
 * a certificate; the caller keeps it between calls. */
void srv_listener_follow(const struct srv_env *env, struct httpd *h, const char *secret, bool *tls);

/*
 * A request that waits for the API; embedded as FIRST member of the handler's own job. It ends
 * with srv_job_reply() and srv_job_end(), with srv_job_fail(), with the client's disconnect, or with a 503 when the
 * API takes longer than srv_api_ms(); its calls are then cancelled. The places it took keep
 * counting, unless srv_place_give_back() was called and the member set to NULL.
 */
struct srv_job {
	struct op op; /* the job in the request's scope; a disconnect cancels it */
	struct srv_listener *listener;
	const struct srv_env *env;       /* the listener's */
	struct httpd_req *req;           /* valid until srv_job_reply */
	struct op_scope ops;             /* for the job's calls */
	struct timer late;               /* ends the job with a 503 */
	struct srv_place *machine, *key; /* owned; NULL: none */
};
void *srv_job_start(size_t size, struct srv_listener *s,
	struct httpd_req *req);                     /* members after the first are zeroed */
struct httpd_req *srv_job_reply(struct srv_job *j); /* the request, which the caller answers now */
/* Answers after a failed API call with 503 and Retry-After, or with 500, logs the error, and ends
 * the job. */
void srv_job_fail(struct srv_job *j, const struct err *err);
/* Ends the place (may be NULL) after the API answered the create_only that it was taken for. */
void srv_job_settle(
	struct srv_place **take, const struct err *err, const struct k8s_result *result);
void srv_job_end(struct srv_job *j); /* frees it */

#endif
