/* SPDX-License-Identifier: MIT */
/*
 * GET -> refuse early (mode, address, certificates, version, limits) -> create the Machine ->
 * answer from the cluster as it is then. With registration.machine AtKey nothing is created, and
 * the answer follows at once. HEAD has no route, so it can never create a Machine. Answers for
 * one cluster differ only in the id: the last one is kept, and the next id is patched into it.
 */
#include "config.h"

#include "tec/srv/regignition.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/uuid.h"
#include "tec/k8s/call.h"
#include "tec/model/machine.h"
#include "tec/render/ignition.h"

/* The last answer, and the inputs that it was rendered from. */
struct page {
	const struct kobj *cluster; /* owned reference; NULL: no answer yet */
	uint64_t ca;                /* hash of the CA certificates in it */
	int minor;
	char uuid[UUID_TEXT_LEN + 1];
	struct strbuf text;
};

struct job {
	struct srv_job base;
	char uuid[UUID_TEXT_LEN + 1];
	int minor;
};

/* Errors on port 8000 have the Rust operator's format, not that of port 8001. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_addf(out, "{\"code\":%d,\"message\":", status);
	json_quote(out, message, strlen(message));
	strbuf_addc(out, '}');
	return "application/json";
}

/* Collect the CA for each address. A named Secret without a usable ca.crt refuses the request: a
 * node would trust no server, or any server. */
static int collect_ca(
	const struct srv_env *env, const struct model_cluster *c, struct render_ignition_ca *ca)
{
	memset(ca, 0, sizeof(*ca));
	if (c->trustee_secret && !(ca->trustee = srv_certs_ca(env->certs, c->trustee_secret)))
		return -1;
	if (c->public_ak_addr && c->ak_secret && !(ca->ak = srv_certs_ca(env->certs, c->ak_secret)))
		return -1;
	for (unsigned i = 0; i < c->n_servers; i++)
		if (c->server_ca[i] && !(ca->server[i] = srv_certs_ca(env->certs, c->server_ca[i])))
			return -1;
	return 0;
}

/* Whether this answer would send a node to a plain-text address that the cluster refuses. */
static bool plain_refused(const struct model_cluster *c)
{
	if (c->plaintext != MODEL_PLAINTEXT_REFUSE)
		return false;
	for (unsigned i = 0; i < c->n_servers; i++)
		if (!c->server_ca[i])
			return true;
	return !c->trustee_secret || (c->public_ak_addr && !c->ak_secret);
}

/* Check everything that an answer needs. NULL: the request has been refused. */
static const struct model_cluster *usable_cluster(
	const struct srv_env *env, struct httpd_req *r, struct render_ignition_ca *ca)
{
	const struct model_cluster *c = srv_served_cluster(env, r);

	if (!c)
		return NULL;
	if (!c->public_trustee_addr)
		httpd_reply_error(r, 503, 30, "spec.publicTrusteeAddr of the cluster is not set");
	else if (c->reg_mode == MODEL_REG_MANUAL)
		httpd_reply_error(r, 403, 0,
			"Only administrators create Machines (registration.mode Manual)");
	else if (c->reg_machine == MODEL_REG_AT_KEY && !c->public_ak_addr)
		httpd_reply_error(r, 503, 60,
			"registration.machine AtKey requires publicAttestationKeyRegisterAddr");
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

static void page_fini(void *page)
{
	struct page *p = page;

	kobj_unref(p->cluster);
	strbuf_fini(&p->text);
}

/* The same cached cluster object means the same spec: objects in the cache are never modified. */
static void reply_ignition(struct srv_listener *s, struct httpd_req *r,
	const struct model_cluster *c, const struct render_ignition_ca *ca, const char *uuid,
	int minor)
{
	const char *pem[2 + MODEL_CLUSTER_SERVERS_MAX] = {ca->trustee, ca->ak};
	struct page *p = srv_listener_state(s);
	uint64_t hash = 0;
	char type[96];

	/* Nobody gains by a collision, so the hash need not be cryptographic. */
	memcpy(pem + 2, ca->server, c->n_servers * sizeof(pem[0]));
	for (unsigned i = 0; i < 2 + c->n_servers; i++)
		hash = hash * 31 + (pem[i] ? str_hash(pem[i], strlen(pem[i])) : 0);
	if (p->cluster == &c->obj && p->ca == hash && p->minor == minor) {
		char *at = p->text.data, *end = at + p->text.len;

		/* Replace the id. Ids are random and of equal length, so nothing else in the text
		 * equals the last one. */
		for (; (at = memmem(at, (size_t)(end - at), p->uuid, UUID_TEXT_LEN));
			at += UUID_TEXT_LEN)
			memcpy(at, uuid, UUID_TEXT_LEN);
	} else {
		kobj_unref(p->cluster);
		p->cluster = kobj_ref(&c->obj);
		p->ca = hash;
		p->minor = minor;
		strbuf_fini(&p->text);
		render_ignition(c, uuid, minor, ca, &p->text);
	}
	memcpy(p->uuid, uuid, sizeof(p->uuid));
	snprintf(type, sizeof(type), "application/vnd.coreos.ignition+json; version=3.%d.0", minor);
	/* A proxy that replayed an answer would give two nodes one Machine. */
	httpd_reply_header(r, "Cache-Control", "no-store");
	httpd_reply(r, 200, type, p->text.data, p->text.len);
}

/* The cluster may have changed meanwhile, so all checks are repeated; the Machine then stays
 * unused and is deleted after pendingTTL. */
static void on_created(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	cleanup_free char *name = model_machine_name(j->uuid);
	struct log_ctx lc = {.kind = "Machine", .ns = j->base.env->ns, .name = name};
	struct render_ignition_ca ca;
	const struct model_cluster *c;
	struct httpd_req *r;

	srv_job_settle(&j->base.machine, err, result);
	if (err_is_set(err)) {
		srv_job_fail(&j->base, err);
		return;
	}
	r = srv_job_reply(&j->base);
	log_info(&lc, "machine registered", "peer=%s", log_esc(httpd_req_peer(r)));
	c = usable_cluster(j->base.env, r, &ca);
	if (c)
		reply_ignition(j->base.listener, r, c, &ca, j->uuid, j->minor);
	srv_job_end(&j->base);
}

/* Hand out an id. The Machine is created when a client registers a key with this id. */
static void answer_at_key(struct srv_listener *s, struct httpd_req *r,
	const struct model_cluster *c, const struct render_ignition_ca *ca, int minor)
{
	const struct srv_env *env = srv_listener_env(s);
	enum srv_limit limit = srv_pending_machine_limit(env->pending, c, httpd_req_peer(r));
	char uuid[UUID_TEXT_LEN + 1];

	/* Refuse a node now, before it encrypts its disk, if it could not register later. */
	if (limit != SRV_LIMIT_NONE)
		srv_reply_limit(env, r, limit);
	else if (srv_regkey_make(env->regkey, c, uuid))
		reply_ignition(s, r, c, ca, uuid, minor);
	else
		httpd_reply_error(r, 503, 5, "The registration key is not ready yet");
}

/* Take a place, then create the Machine; on_created() answers. */
static void create_machine(
	struct srv_listener *s, struct httpd_req *r, const struct model_cluster *c, int minor)
{
	const struct srv_env *env = srv_listener_env(s);
	cleanup_json struct json_object *machine = NULL;
	cleanup_free char *name = NULL;
	char uuid[UUID_TEXT_LEN + 1];
	struct srv_place *place;
	enum srv_limit why;
	struct job *j;

	uuid_new_v4(uuid);
	name = model_machine_name(uuid);
	place = srv_pending_take_machine(env->pending, c, httpd_req_peer(r), name, &why);
	if (!place) {
		srv_reply_limit(env, r, why);
		return;
	}
	j = srv_job_start(sizeof(*j), s, r);
	j->base.machine = place;
	j->minor = minor;
	memcpy(j->uuid, uuid, sizeof(uuid));
	machine = model_machine_new_json(uuid, c->obj.name, c->obj.uid, false);
	k8s_call_create_only(env->api, &j->base.ops, &kobj_machine, env->ns, machine, srv_api_ms(r),
		on_created, j);
}

static void get_ignition(struct httpd_req *r, void *arg)
{
	static const char *const conditions[] = {"If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since", "If-Range"};
	struct srv_listener *s = arg;
	const struct srv_env *env = srv_listener_env(s);
	struct render_ignition_ca ca;
	const struct model_cluster *c = usable_cluster(env, r, &ca);
	int minor;

	if (!c)
		return;
	/* Every answer creates a new Machine, so a condition has nothing to refer to (RFC 9110
	 * section 13). */
	for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
		if (httpd_req_header(r, conditions[i])) {
			httpd_reply_error(r, 412, 0, "Conditional requests are not supported");
			return;
		}
	minor = render_ignition_version(httpd_req_header(r, "Accept"));
	if (minor < 0) {
		httpd_reply_error(r, 406, 0,
			"Only Ignition 3.2.0 or later is served; the Accept header does not include it");
		return;
	}
	if (c->reg_machine == MODEL_REG_AT_KEY)
		answer_at_key(s, r, c, &ca, minor);
	else
		create_machine(s, r, c, minor);
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
		/* Ignition retries 5xx, but fails the installation at every other error, even 429. */
		.rate_status = 503,
		.tls_secret = tls_secret,
		.state_size = sizeof(struct page),
		.state_fini = page_fini,
	};

	return srv_listener_new(env, &conf);
}
