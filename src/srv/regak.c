/* SPDX-License-Identifier: MIT */
/*
 * PUT/POST -> size, UTF-8 and JSON prescan -> key through OpenSSL -> limits -> create. A key that
 * exists already under another name (made by the Rust operator) is found by its SPKI hash in the
 * cache; one under its own name by the API's AlreadyExists.
 */
#include "config.h"

#include "tec/srv/regak.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/uuid.h"
#include "tec/k8s/call.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/pki/spki.h"

struct job {
	struct srv_job base;
	char name[MODEL_AK_NAME_LEN + 1];
	char uuid[UUID_TEXT_LEN + 1]; /* "": none given */
};

static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_adds(out, "{\"status\":\"error\",\"message\":");
	json_quote(out, message, strlen(message));
	strbuf_addc(out, '}');
	return "application/json";
}

static void reply_created(struct httpd_req *r)
{
	static const char body[] = "{\"status\":\"success\"}";

	httpd_reply(r, 201, "application/json", body, sizeof(body) - 1);
}

/* The key is there already: with this uuid (or the request names none, or none was stored) it is
 * done; else somebody has to rebind. */
static void reply_duplicate(
	const struct srv_env *env, struct httpd_req *r, const char *have_uuid, const char *uuid)
{
	const struct kobj *machine;

	if (!*uuid || !have_uuid || str_eq(have_uuid, uuid)) {
		httpd_reply_error(r, 409, 0, "Public key already registered");
		return;
	}
	machine = env->machines ? k8s_cache_first(env->machines, 0, have_uuid) : NULL;
	if (machine && env->events)
		k8s_events_post(env->events, &kobj_machine, machine, K8S_EVENT_WARNING,
			"KeyReregistered", "Register",
			"The attestation key of this Machine was registered again for machine id %s (a reinstalled "
			"node?). It stays with this Machine. To rebind it, delete its AttestationKey and let the node "
			"register again.",
			uuid);
	httpd_reply_error(r, 409, 0,
		"Public key already registered for another machine; an administrator can rebind it by deleting the old "
		"AttestationKey");
}

static void on_existing(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	struct httpd_req *r = srv_job_reply(&j->base);

	if (err_is_set(err))
		srv_reply_api_error(r, err);
	else
		reply_duplicate(srv_listener_env(j->base.listener), r,
			json_get_str(result->object, "spec/uuid"), j->uuid);
	srv_job_end(&j->base);
}

static void on_created(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	const struct srv_env *env = srv_listener_env(j->base.listener);
	struct log_ctx lc = {.kind = "AttestationKey", .ns = env->ns, .name = j->name};
	struct httpd_req *r;

	if (err_is_set(err) && result && result->already_exists) {
		k8s_call_get(env->api, &j->base.ops, &kobj_ak, env->ns, j->name, on_existing, j);
		return;
	}
	r = srv_job_reply(&j->base);
	if (err_is_set(err)) {
		srv_reply_api_error(r, err);
	} else {
		log_info(&lc, "attestation key registered", "machine=%s peer=%s",
			*j->uuid ? j->uuid : "none", log_esc(httpd_req_peer(r)));
		reply_created(r);
	}
	srv_job_end(&j->base);
}

/* -1: the request has been refused. */
static int check_cluster(const struct srv_env *env, struct httpd_req *r)
{
	const struct model_cluster *c = srv_served_cluster(env, r);

	if (!c)
		return -1;
	if (c->endorsement != MODEL_ENDORSEMENT_REQUIRED)
		return 0;
	httpd_reply_error(r, 503, 60,
		"registration.endorsement Required has no effect in this version and is not served");
	return -1;
}

/* Reads body into spki and uuid ("" when absent). ERR_INVALID's text may be shown to the client. */
static int read_request(const char *body, size_t len, struct pki_spki *spki,
	char uuid[UUID_TEXT_LEN + 1], struct err *err)
{
	cleanup_json struct json_object *o = json_parse(body, len, &json_limits_public, err);
	struct json_object *v = NULL, *key = NULL, *other = NULL;
	const char *pem, *id;

	uuid[0] = '\0';
	if (!o)
		return err_wrap(err, "The body is not acceptable JSON");
	if (!json_object_is_type(o, json_type_object))
		return err_set(err, ERR_INVALID, "The body must be a JSON object");
	if (json_object_object_get_ex(o, "public_key", &key) &&
		json_object_object_get_ex(o, "attestation_key", &other))
		return err_set(err, ERR_INVALID,
			"public_key and attestation_key are one member: send one of them");
	pem = json_get_str(o, key ? "public_key" : "attestation_key");
	if (!pem)
		return err_set(
			err, ERR_INVALID, "public_key is missing: a PEM \"PUBLIC KEY\" string");
	if (json_object_object_get_ex(o, "uuid", &v) && v) {
		id = json_get_str(o, "uuid");
		if (!id || !uuid_valid(id, strlen(id)))
			return err_set(err, ERR_INVALID, "uuid must be a lower-case UUID");
		memcpy(uuid, id, UUID_TEXT_LEN + 1);
	}
	return pki_spki_parse_pem(pem, strlen(pem), spki, err);
}

static void start_create(
	struct srv_listener *s, struct httpd_req *r, const struct pki_spki *spki, const char *uuid)
{
	const struct srv_env *env = srv_listener_env(s);
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_json struct json_object *ak = NULL;
	struct job *j = srv_job_start(sizeof(*j), s, r);

	model_ak_name(spki->sha256, MODEL_AK_NAME, j->name);
	memcpy(j->uuid, uuid, sizeof(j->uuid));
	pki_spki_to_pem(spki, &pem);
	ak = model_ak_new_json(j->name, strbuf_str(&pem), *uuid ? uuid : NULL);
	k8s_call_create_only(
		env->api, &j->base.ops, &kobj_ak, env->ns, ak, srv_api_ms(r), on_created, j);
}

static void register_ak(struct httpd_req *r, void *arg)
{
	struct srv_listener *s = arg;
	const struct srv_env *env = srv_listener_env(s);
	char uuid[UUID_TEXT_LEN + 1], hex[SHA256_HEX_LEN + 1];
	const struct kobj *have;
	struct pki_spki spki;
	struct err err = ERR_INIT;
	const char *body, *why;
	size_t len;

	if (check_cluster(env, r) < 0)
		return;
	body = httpd_req_body(r, &len);
	if (read_request(body, len, &spki, uuid, &err) < 0) {
		httpd_reply_error(r, 400, 0, "%s", err.text);
		return;
	}
	bytes_to_hex(spki.sha256, SHA256_LEN, hex);
	have = env->aks ? k8s_cache_first(env->aks, 1, hex) : NULL;
	if (have)
		reply_duplicate(env, r, model_ak(have)->uuid, uuid);
	else if (!srv_pending_key_allowed(
			 env->pending, srv_cluster(env), *uuid ? uuid : NULL, &why))
		httpd_reply_error(r, 503, 60, "%s", why);
	else
		start_create(s, r, &spki, uuid);
}

static const struct httpd_route routes[] = {
	{
		.path = "/register-ak",
		.methods = HTTPD_PUT | HTTPD_POST,
		.needs_body = true,
		.body_type = "application/json",
		.fn = register_ak,
	},
};

static const char *tls_secret(const struct model_cluster *c)
{
	return c->ak_secret;
}

struct srv_listener *srv_regak_new(const struct srv_env *env)
{
	static const struct srv_listener_conf conf = {
		.name = "register-ak",
		.routes = routes,
		.n_routes = ARRAY_LEN(routes),
		.error_body = error_body,
		.tls_secret = tls_secret,
	};

	return srv_listener_new(env, &conf);
}
