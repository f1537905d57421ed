/* SPDX-License-Identifier: MIT */
/*
 * GET -> refuse early (mode, address, certificates, version, limits) -> create the Machine ->
 * answer from the cluster as it is then. HEAD is not routed, so it can never create.
 */
#include "config.h"

#include "tec/srv/regignition.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/uuid.h"
#include "tec/k8s/call.h"
#include "tec/model/machine.h"
#include "tec/render/ignition.h"

struct job {
	struct srv_job base;
	char uuid[UUID_TEXT_LEN + 1];
	int minor;
};

static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_addf(out, "{\"code\":%d,\"message\":", status);
	json_quote(out, message, strlen(message));
	strbuf_addc(out, '}');
	return "application/json";
}

/* Which CA each address needs; a named Secret without a usable ca.crt refuses (a node would trust
 * nobody, or everybody). */
static int collect_ca(
	const struct srv_env *env, const struct model_cluster *c, struct render_ignition_ca *ca)
{
	unsigned i;

	memset(ca, 0, sizeof(*ca));
	if (c->trustee_secret && !(ca->trustee = srv_certs_ca(env->certs, c->trustee_secret)))
		return -1;
	if (c->public_ak_addr && c->ak_secret && !(ca->ak = srv_certs_ca(env->certs, c->ak_secret)))
		return -1;
	for (i = 0; i < c->n_servers; i++)
		if (c->server_ca[i] && !(ca->server[i] = srv_certs_ca(env->certs, c->server_ca[i])))
			return -1;
	return 0;
}

/* Would this answer send a node to a plain-text address that the cluster refuses? */
static bool plain_refused(const struct model_cluster *c)
{
	unsigned i;

	if (c->plaintext != MODEL_PLAINTEXT_REFUSE)
		return false;
	for (i = 0; i < c->n_servers; i++)
		if (!c->server_ca[i])
			return true;
	return !c->trustee_secret || (c->public_ak_addr && !c->ak_secret);
}

/* The cluster as it must be to answer at all; NULL: the request has been refused. */
static const struct model_cluster *usable_cluster(
	const struct srv_env *env, struct httpd_req *r, struct render_ignition_ca *ca)
{
	const struct model_cluster *c = srv_served_cluster(env, r);

	if (!c)
		return NULL;
	if (!c->public_trustee_addr)
		httpd_reply_error(r, 503, 30, "The cluster has no publicTrusteeAddr");
	else if (c->reg_mode == MODEL_REG_MANUAL)
		httpd_reply_error(r, 403, 0,
			"Machines are made by administrators only (registration.mode Manual)");
	else if (plain_refused(c))
		httpd_reply_error(r, 503, 60,
			"The cluster refuses plain text and names no TLS Secret for an address");
	else if (collect_ca(env, c, ca) < 0)
		httpd_reply_error(
			r, 503, 10, "A TLS Secret of the cluster is missing or has no ca.crt");
	else
		return c;
	return NULL;
}

static void reply_ignition(
	const struct srv_env *env, struct httpd_req *r, const char *uuid, int minor)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct render_ignition_ca ca;
	char type[96];
	const struct model_cluster *c = usable_cluster(env, r, &ca);

	if (!c)
		return;
	render_ignition(c, uuid, minor, &ca, &body);
	snprintf(type, sizeof(type), "application/vnd.coreos.ignition+json; version=3.%d.0", minor);
	httpd_reply_header(r, "Cache-Control", "no-store");
	httpd_reply(r, 200, type, body.data, body.len);
}

static void on_created(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	const struct srv_env *env = srv_listener_env(j->base.listener);
	struct httpd_req *r = srv_job_reply(&j->base);

	if (err_is_set(err)) {
		srv_reply_api_error(r, err);
	} else {
		cleanup_free char *name = xasprintf("machine-%s", j->uuid);
		struct log_ctx lc = {.kind = "Machine", .ns = env->ns, .name = name};

		log_info(&lc, "machine registered", "peer=%s", log_esc(httpd_req_peer(r)));
		reply_ignition(env, r, j->uuid, j->minor);
	}
	srv_job_end(&j->base);
}

/* Every answer is a new Machine, so there is nothing a condition could hold for (RFC 9110 section
 * 13). */
static bool is_conditional(const struct httpd_req *r)
{
	static const char *const names[] = {"If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since", "If-Range"};
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++)
		if (httpd_req_header(r, names[i]))
			return true;
	return false;
}

static void get_ignition(struct httpd_req *r, void *arg)
{
	struct srv_listener *s = arg;
	const struct srv_env *env = srv_listener_env(s);
	struct render_ignition_ca ca;
	const struct model_cluster *c = usable_cluster(env, r, &ca);
	cleanup_json struct json_object *machine = NULL;
	const char *why;
	struct job *j;
	int minor;

	if (!c)
		return;
	if (is_conditional(r)) {
		httpd_reply_error(r, 412, 0, "Conditional requests are not answered here");
		return;
	}
	minor = render_ignition_version(httpd_req_header(r, "Accept"));
	if (minor < 0) {
		httpd_reply_error(r, 406, 0,
			"Ignition 3.2.0 or later is served; the Accept header names none of it");
		return;
	}
	if (!srv_pending_machine_allowed(env->pending, c, &why)) {
		httpd_reply_error(r, 503, 60, "%s", why);
		return;
	}
	j = srv_job_start(sizeof(*j), s, r);
	j->minor = minor;
	uuid_new_v4(j->uuid);
	machine = model_machine_new_json(j->uuid, c->obj.name, c->obj.uid);
	k8s_call_create_only(env->api, &j->base.ops, &kobj_machine, env->ns, machine, srv_api_ms(r),
		on_created, j);
}

static const struct httpd_route routes[] = {
	{.path = "/ignition-clevis-pin-trustee", .methods = HTTPD_GET, .fn = get_ignition},
	{.path = "/ignition", .methods = HTTPD_GET, .fn = get_ignition},
};

static const char *tls_secret(const struct model_cluster *c)
{
	return c->register_secret;
}

struct srv_listener *srv_regignition_new(const struct srv_env *env)
{
	static const struct srv_listener_conf conf = {
		.name = "register",
		.routes = routes,
		.n_routes = ARRAY_LEN(routes),
		.error_body = error_body,
		.tls_secret = tls_secret,
	};

	return srv_listener_new(env, &conf);
}
