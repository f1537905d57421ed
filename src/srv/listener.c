/* SPDX-License-Identifier: MIT */
/*
 * The served cluster is the oldest in the cache. A listener refuses rather than serve in plain
 * text: it closes connections without an answer while a certificate is named and none was ever
 * usable, and it answers 503, over the last certificate if there is one, when the Secret is gone
 * or the cluster refuses plain text.
 *
 * A connection's protocol is fixed when it is accepted, so each request compares it with what the
 * cluster says now.
 */
#include "config.h"

#include "tec/srv/listener.h"

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/caches/adoption_cutoff.h"

#define API_MS_MAX 10000 /* a client waits no longer than this for the API */
/* Reasons for closing connections on accept; they appear in metrics. */
#define WAITS_FOR_LISTS "starting"
#define WAITS_FOR_TLS   "no_certificate"

struct srv_listener {
	struct srv_env env;
	struct srv_listener_conf conf;
	struct httpd *httpd;
	bool tls;    /* the httpd has a certificate */
	void *state; /* owned; for the handlers */
};

static const char plain_refused_text[] =
	"The cluster refuses plain HTTP and names no TLS Secret for this listener";
static struct metric refused = METRIC_COUNTER_INIT("tec_registration_refused_total",
	"Registrations refused because a limit is reached, by limit.", "limit", NULL);

/* Why r may not be answered on its connection; NULL: it may. */
static const char *plain_refused(const struct model_cluster *c, const struct httpd_req *r)
{
	const struct srv_listener *s = httpd_req_arg(r);

	if (httpd_req_is_tls(r))
		return NULL;
	if (s->conf.tls_secret(c))
		return "This listener requires TLS; reconnect with https";
	if (c->plaintext == MODEL_PLAINTEXT_REFUSE)
		return plain_refused_text;
	return NULL;
}

/* Refuse because this operator does not decide. Self is refused, too, while a peer may have taken
 * over. 503 asks the node to retry, 410 tells it that retrying is useless. */
static void refuse_by_authority(const struct model_cluster *c, struct httpd_req *r)
{
	switch (c->authority) {
	case MODEL_AUTHORITY_FOLLOWING:
		httpd_reply_error(r, 503, 30,
			"spec.authority is Following: nodes register with the operator that decides%s%s",
			c->authority_peer ? ": " : "", c->authority_peer ? c->authority_peer : "");
		break;
	case MODEL_AUTHORITY_RETIRED:
		httpd_reply_error(r, 410, 0,
			"spec.authority is Retired: nodes can no longer register here; use the operator that took over");
		break;
	case MODEL_AUTHORITY_SELF:
		httpd_reply_error(r, 503, 30,
			"It is unknown whether another operator decides: nodes cannot register until this is known");
		break;
	case MODEL_AUTHORITY_FROZEN:
		httpd_reply_error(
			r, 503, 30, "spec.authority is Frozen: nodes cannot register now");
	}
}

const struct model_cluster *srv_served_cluster(const struct srv_env *env, struct httpd_req *r)
{
	const struct model_cluster *c = caches_cluster_oldest(env->caches);
	const char *why;

	/* Without Machines and keys in the caches, the limits would count from zero. A Machine
	 * created before the marker is known would look older than this operator, and its key would
	 * not be trusted. */
	if (!caches_filled(env->caches, CACHES_FOR_LISTENERS) ||
		!caches_adoption_cutoff_known(env->caches))
		httpd_reply_error(r, 503, 5, "The operator is starting");
	else if (!c)
		httpd_reply_error(r, 503, 30, "No TrustedExecutionCluster is installed");
	else if ((why = plain_refused(c, r)))
		httpd_reply_error(r, 503, 5, "%s", why);
	else if (c->extended_lost)
		/* Another operator's CRD pruned the spec. Served as it is, registration.mode Manual or
		 * Token would have become Open. */
		httpd_reply_error(r, 503, 60,
			"The cluster lost settings; an administrator must confirm them");
	else if (!caches_cluster_decides(env->caches))
		refuse_by_authority(c, r);
	else if (c->reg_mode == MODEL_REG_TOKEN)
		httpd_reply_error(r, 503, 60,
			"registration.mode Token has no effect in this version and is not served");
	else
		return c;
	return NULL;
}

/* A second is left for the answer; with little time left, half of it. */
uint32_t srv_api_ms(const struct httpd_req *r)
{
	uint32_t left = httpd_req_ms_left(r);
	uint32_t ms = left > 2000 ? left - 1000 : left / 2;

	if (ms > API_MS_MAX)
		return API_MS_MAX;
	return ms ? ms : 1; /* 0 would mean the default */
}

void srv_reply_limit(const struct srv_env *env, struct httpd_req *r, enum srv_limit limit)
{
	const struct model_cluster *c = caches_cluster_oldest(env->caches);
	unsigned left_out;

	metric_add(&refused, srv_limits[limit].name, NULL, 1);
	if (c && srv_pending_may_tell(env->pending, limit, &left_out)) {
		struct log_ctx lc = {.kind = "TrustedExecutionCluster",
			.ns = env->ns,
			.name = c->obj.name,
			.uid = c->obj.uid};

		log_warn(&lc, "registration refused, a limit is reached",
			"limit=%s peer=%s count=%u", srv_limits[limit].name,
			log_esc(httpd_req_peer(r)), left_out + 1);
		if (env->events)
			k8s_events_post(env->events, &kobj_cluster, &c->obj, K8S_EVENT_WARNING,
				"RegistrationRefused", "Register",
				"Nodes are refused: %s. The condition RegistrationOpen shows the counts; "
				"see tec-operator(8) for how to remove waiting registrations.",
				srv_limits[limit].text);
	}
	httpd_reply_error(r, 503, 60, "%s", srv_limits[limit].text);
}

/* The listener starts closed: httpd_set_waiting() stays in force until the first refresh. */
struct srv_listener *srv_listener_new(
	const struct srv_env *env, const struct srv_listener_conf *conf)
{
	struct srv_listener *s = xcalloc(1, sizeof(*s));
	struct httpd_conf h = httpd_conf_default;

	s->env = *env;
	s->conf = *conf;
	s->state = xcalloc(1, conf->state_size);
	h.name = conf->name;
	h.max_connections = env->max_connections;
	h.rate = env->rate;
	h.rate_status = conf->rate_status;
	h.routes = conf->routes;
	h.n_routes = conf->n_routes;
	h.arg = s;
	h.error_body = conf->error_body;
	s->httpd = httpd_new(env->loop, &h);
	httpd_set_waiting(s->httpd, WAITS_FOR_LISTS);
	return s;
}

void srv_listener_free(struct srv_listener *s)
{
	if (!s)
		return;
	httpd_free(s->httpd);
	if (s->conf.state_fini)
		s->conf.state_fini(s->state);
	free(s->state);
	free(s);
}

struct httpd *srv_listener_httpd(struct srv_listener *s)
{
	return s->httpd;
}

const struct srv_env *srv_listener_env(const struct srv_listener *s)
{
	return &s->env;
}

/* Called on each change of the cluster or a Secret; calling it without a change is harmless. */
void srv_listener_follow(const struct srv_env *env, struct httpd *h, const char *secret, bool *tls)
{
	const struct model_cluster *c = caches_cluster_oldest(env->caches);
	struct tls_ctx *ctx = secret ? srv_certs_tls(env->certs, secret) : NULL;

	/* Where nodes expect TLS, send nothing in plain text, not even a refusal. */
	httpd_set_waiting(h, !k8s_cache_filled(env->caches->clusters) ? WAITS_FOR_LISTS
			     : secret && !ctx && !*tls                ? WAITS_FOR_TLS
								      : NULL);
	if (secret && !ctx) {
		httpd_set_closed(h, "The listener's TLS Secret is missing or unusable");
		return;
	}
	httpd_set_tls(h, ctx);
	*tls = ctx;
	if (!secret && c && c->plaintext == MODEL_PLAINTEXT_REFUSE)
		httpd_set_closed(h, plain_refused_text);
	else
		httpd_set_closed(h, NULL);
}

void *srv_listener_state(const struct srv_listener *s)
{
	return s->state;
}

void srv_listener_refresh(struct srv_listener *s)
{
	const struct model_cluster *c = caches_cluster_oldest(s->env.caches);

	srv_listener_follow(&s->env, s->httpd, c ? s->conf.tls_secret(c) : NULL, &s->tls);
}

/* ---- jobs */

/* The client has gone: end the job. Its API calls are cancelled, their effects are not. */
static void job_abort(struct op *op)
{
	/* The API may still create the object. It is listener-made and unmatched, so it is deleted
	 * after pendingTTL. */
	srv_job_end((struct srv_job *)op);
}

/* The API did not answer in time. */
static void on_late(void *arg)
{
	struct srv_job *j = arg;
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT, "the API took too long");
	srv_job_fail(j, &err);
}

/* The job belongs to the request's scope: it is cancelled with the request, at the latest. */
void *srv_job_start(size_t size, struct srv_listener *s, struct httpd_req *req)
{
	struct srv_job *j = xcalloc(1, size);

	j->listener = s;
	j->env = &s->env;
	j->req = req;
	op_begin(&j->op, httpd_req_ops(req), job_abort);
	timer_init(&j->late, s->env.loop, on_late, j);
	timer_set(&j->late, srv_api_ms(req));
	return j;
}

/* Detach the job from the request first, so that the reply cannot cancel it. */
struct httpd_req *srv_job_reply(struct srv_job *j)
{
	op_finish(&j->op);
	return j->req;
}

/* ERR_INVALID and ERR_BUG will not change by a retry, so they are no 503. The reason is logged
 * only: the client is unknown. */
void srv_job_fail(struct srv_job *j, const struct err *err)
{
	uint32_t wait_s = err->retry_after_ms ? (err->retry_after_ms + 999) / 1000 : 5;
	struct httpd_req *r = srv_job_reply(j);

	log_err(LOG_WARN, NULL, "registration failed at the API", err);
	if (err->kind == ERR_INVALID || err->kind == ERR_BUG)
		httpd_reply_error(r, 500, 0, "Internal error");
	else
		httpd_reply_error(
			r, 503, wait_s, "The cluster API is unavailable; try again later");
	srv_job_end(j);
}

void srv_job_settle(struct srv_place **take, const struct err *err, const struct k8s_result *result)
{
	struct srv_place *place = steal_ptr(take);

	if (!place)
		return;
	/* No answer, or a 5xx: the object may have been created, so the place keeps counting. */
	if (err_is_set(err) && err->http != 0 && err->http < 500)
		srv_place_give_back(place);
	else
		srv_place_keep(place, err_is_set(err) ? NULL : result->uid);
}

/* Places that are still held count on: a create may be in flight, and its answer will not be
 * seen. */
void srv_job_end(struct srv_job *j)
{
	op_scope_cancel(&j->ops);
	timer_fini(&j->late);
	if (j->machine)
		srv_place_keep(j->machine, NULL);
	if (j->key)
		srv_place_keep(j->key, NULL);
	free(j);
}
