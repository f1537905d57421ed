/* SPDX-License-Identifier: MIT */
/*
 * PUT/POST -> size, UTF-8 and JSON prescan -> key through OpenSSL -> a Machine that exists, or an
 * id that was handed out here -> already known? -> limits -> POST the Machine (only with such an
 * id, and if none exists) -> POST the key with a note of which Machine existed.
 *
 * A key that exists under another name (created by the Rust operator) is found by its SPKI hash
 * in the cache; one under its own name by the API's AlreadyExists. A key without uuid never
 * blocks the same key with a uuid: it has a different name, and it can only come from the same
 * node.
 */
#include "config.h"

#include "tec/srv/regak.h"

#include <stdio.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/uuid.h"
#include "tec/k8s/call.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/pki/spki.h"

#define SEEN_LEN 128 /* a uid has 36 characters */

/* What is known about a request, and decided, before anything is created. */
struct registration {
	struct pki_spki spki;
	char uuid[UUID_TEXT_LEN + 1]; /* "": none */
	char name[MODEL_AK_NAME_LEN + 1];
	char machine_uid[SEEN_LEN + 1]; /* of the Machine with this uuid; "": none known */
	bool handed_out;                /* none known, and a listener handed out this uuid */
};

struct job {
	struct srv_job base;
	struct registration a;
};

/* Errors on port 8001 have the Rust operator's format, not that of port 8000. */
static const char *error_body(struct strbuf *out, int status, const char *message)
{
	strbuf_adds(out, "{\"status\":\"error\",\"message\":");
	json_quote(out, message, strlen(message));
	strbuf_addc(out, '}');
	return "application/json";
}

/* The Machine of this id, of several the oldest; NULL: none. */
static const struct kobj *machine_of(const struct srv_env *env, const char *uuid)
{
	return env->caches->machines ? k8s_cache_first(env->caches->machines, 0, uuid) : NULL;
}

/* Both Machines say it: people look at the new one, which waits, and the key belongs to the old one. */
static void tell_reregistered(const struct srv_env *env, const char *have_uuid, const char *uuid)
{
	const struct kobj *old = machine_of(env, have_uuid), *new = machine_of(env, uuid);

	if (!env->events || !old)
		return;
	k8s_events_post(env->events, &kobj_machine, old, K8S_EVENT_WARNING, "KeyReregistered",
		"Register",
		"The attestation key of this Machine was registered again for machine id %s (a reinstalled "
		"node?). It stays bound to this Machine. To release it: tecctl rebind %s. Then boot the node.",
		uuid, old->name);
	if (new)
		k8s_events_post(env->events, &kobj_machine, new, K8S_EVENT_WARNING,
			"KeyOfAnotherMachine", "Register",
			"A node registered for this Machine with the attestation key of Machine %s (the same node, "
			"installed again?). To release the key from that Machine: tecctl rebind %s. Then boot the node.",
			old->name, old->name);
}

/* Answer for a key that exists. With the same uuid (or if the request or the stored key has none)
 * the registration is complete; with another uuid an administrator must rebind the key. */
static void reply_duplicate(
	const struct srv_env *env, struct httpd_req *r, const char *have_uuid, const char *uuid)
{
	if (!*uuid || !have_uuid || str_eq(have_uuid, uuid)) {
		httpd_reply_error(r, 409, 0, "Public key already registered");
		return;
	}
	tell_reregistered(env, have_uuid, uuid);
	httpd_reply_error(r, 409, 0,
		"Public key already registered for another machine; an administrator can rebind it by deleting the old "
		"AttestationKey");
}

static void post_key(struct job *j);

/* The API already had a key of this name, and now shows it: a duplicate, or the same key without
 * a uuid under the old name. */
static void on_existing(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	const char *have = err_is_set(err) ? NULL : json_get_str(result->object, "spec/uuid");
	char spare[MODEL_AK_NAME_LEN + 1];

	model_ak_name(j->a.spki.sha256, MODEL_AK_NAME_SPARE, spare);
	if (!err_is_set(err) && !have && *j->a.uuid && !str_eq(j->a.name, spare)) {
		/* A listener of version 0.1.0 gave this name to a key without uuid. */
		memcpy(j->a.name, spare, sizeof(spare));
		post_key(j);
		return;
	}
	srv_place_give_back(steal_ptr(&j->base.key));
	if (err_is_set(err)) {
		srv_job_fail(&j->base, err);
		return;
	}
	reply_duplicate(j->base.env, srv_job_reply(&j->base), have, j->a.uuid);
	srv_job_end(&j->base);
}

/* AlreadyExists is not the answer yet: the existing key's uuid decides what the client is told. */
static void on_created(void *arg, const struct err *err, const struct k8s_result *result)
{
	static const char done[] = "{\"status\":\"success\"}";
	struct job *j = arg;
	const struct srv_env *env = j->base.env;
	struct log_ctx lc = {.kind = "AttestationKey", .ns = env->ns, .name = j->a.name};
	struct httpd_req *r;

	if (err_is_set(err) && result && result->already_exists) {
		k8s_call_get(env->api, &j->base.ops, &kobj_ak, env->ns, j->a.name, on_existing, j);
		return;
	}
	srv_job_settle(&j->base.key, err, result);
	if (err_is_set(err)) {
		srv_job_fail(&j->base, err);
		return;
	}
	r = srv_job_reply(&j->base);
	log_info(&lc, "attestation key registered", "machine=%s peer=%s",
		*j->a.uuid ? j->a.uuid : "none", log_esc(httpd_req_peer(r)));
	httpd_reply(r, 201, "application/json", done, sizeof(done) - 1);
	srv_job_end(&j->base);
}

/* Create the key. The note of the Machine's uid lets the controller see whether the Machine was
 * replaced in between. */
static void post_key(struct job *j)
{
	const struct srv_env *env = j->base.env;
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_json struct json_object *ak = NULL;

	pki_spki_to_pem(&j->a.spki, &pem);
	ak = model_ak_new_json(j->a.name, strbuf_str(&pem), *j->a.uuid ? j->a.uuid : NULL);
	if (*j->a.uuid)
		model_ak_note_seen(ak, *j->a.machine_uid ? j->a.machine_uid : MODEL_SEEN_NONE);
	k8s_call_create_only(env->api, &j->base.ops, &kobj_ak, env->ns, ak, srv_api_ms(j->base.req),
		on_created, j);
}

static void note_machine(struct registration *a, const char *uid)
{
	snprintf(a->machine_uid, sizeof(a->machine_uid), "%s", uid ? uid : "");
}

/* The API's answer about the Machine of this name. If the id was handed out here, the API has
 * just said that the Machine exists, so that not finding it is an error. */
static void on_machine_read(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;

	if (err_is_set(err) && (err->kind != ERR_NOT_FOUND || j->base.machine)) {
		srv_job_fail(&j->base, err);
		return;
	}
	if (j->base.machine)
		srv_place_give_back(steal_ptr(&j->base.machine));
	if (!err_is_set(err) && str_eq(json_get_str(result->object, "spec/id"), j->a.uuid))
		note_machine(&j->a, json_get_str(result->object, "metadata/uid"));
	post_key(j);
}

/* Ask the API, as the cache may lag behind another process that created the Machine. */
static void read_machine(struct job *j)
{
	const struct srv_env *env = j->base.env;
	cleanup_free char *name = model_machine_name(j->a.uuid);

	k8s_call_get(env->api, &j->base.ops, &kobj_machine, env->ns, name, on_machine_read, j);
}

static void on_machine_created(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct job *j = arg;
	const struct srv_env *env = j->base.env;
	cleanup_free char *name = model_machine_name(j->a.uuid);
	struct log_ctx lc = {.kind = "Machine", .ns = env->ns, .name = name};

	if (err_is_set(err) && result && result->already_exists) {
		read_machine(j); /* an earlier attempt of the same node, or another listener */
		return;
	}
	srv_job_settle(&j->base.machine, err, result);
	if (err_is_set(err)) {
		srv_job_fail(&j->base, err);
		return;
	}
	log_info(&lc, "machine registered", "peer=%s", log_esc(httpd_req_peer(j->base.req)));
	note_machine(&j->a, result->uid);
	post_key(j);
}

/* Parse the body into spki and uuid ("" if absent). The text of ERR_INVALID is safe to show to
 * the client. */
static int read_request(const char *body, size_t len, struct pki_spki *spki,
	char uuid[UUID_TEXT_LEN + 1], struct err *err)
{
	cleanup_json struct json_object *o = json_parse(body, len, &json_limits_public, err);
	struct json_object *v = NULL, *key = NULL, *other = NULL;
	const char *pem, *id;

	uuid[0] = '\0';
	if (!o)
		return err_wrap(err, "The body is not valid JSON");
	if (!json_object_is_type(o, json_type_object))
		return err_set(err, ERR_INVALID, "The body must be a JSON object");
	if (json_object_object_get_ex(o, "public_key", &key) &&
		json_object_object_get_ex(o, "attestation_key", &other))
		return err_set(err, ERR_INVALID,
			"public_key and attestation_key are synonyms: send only one of them");
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

/* Refuse a key that exists already or is being created. -1: the request has been answered. */
static int check_known(const struct srv_env *env, struct httpd_req *r, const struct registration *a)
{
	char hex[SHA256_HEX_LEN + 1];
	const struct kobj *o;
	const char *uuid;

	/* A cached key that this one repeats: any, for a request without uuid; otherwise one that
	 * has a uuid, too. */
	bytes_to_hex(a->spki.sha256, SHA256_LEN, hex);
	for (o = env->caches->aks ? k8s_cache_first(env->caches->aks, 1, hex) : NULL; o;
		o = k8s_cache_next(env->caches->aks, 1, o))
		if (!*a->uuid || model_ak(o)->uuid) {
			reply_duplicate(env, r, model_ak(o)->uuid, a->uuid);
			return -1;
		}
	if (!a->handed_out)
		return 0; /* the API will detect it, and nothing else is created before */
	switch (srv_pending_key_under_way(env->pending, a->name, &uuid)) {
	case SRV_UNDER_WAY_MADE:
		reply_duplicate(env, r, *uuid ? uuid : NULL, a->uuid);
		return -1;
	case SRV_UNDER_WAY_OPEN:
		httpd_reply_error(r, 503, 1, "This key is being registered");
		return -1;
	case SRV_UNDER_WAY_NONE:
		break;
	}
	return 0;
}

/* Decide whether a key with this uuid may come here. -1: the request has been refused. */
static int check_uuid(const struct srv_env *env, struct httpd_req *r, const struct model_cluster *c,
	struct registration *a)
{
	struct log_ctx lc = {.kind = "Machine", .ns = env->ns};
	cleanup_free char *name = model_machine_name(a->uuid);
	const struct kobj *o = NULL;

	/* The Machine with this uuid: in the cache, or created here a moment ago. */
	if (*a->uuid && env->caches->machines)
		o = k8s_cache_first(env->caches->machines, 0, a->uuid);
	note_machine(a, o          ? o->uid
			: *a->uuid ? srv_pending_made_machine(env->pending, name)
				   : NULL);
	/* With AtRequest, too: nodes come with ids that were handed out before the change. */
	a->handed_out = *a->uuid && !*a->machine_uid && c->reg_mode != MODEL_REG_MANUAL &&
			srv_regkey_valid(env->regkey, c, a->uuid);
	if (a->handed_out && !srv_regkey_filled(env->regkey)) {
		httpd_reply_error(r, 503, 5, "The list of deleted Machines is still being read");
		return -1;
	}
	if (a->handed_out && srv_regkey_is_deleted(env->regkey, a->uuid)) {
		log_warn(&lc, "registration refused, the Machine with this id was deleted",
			"machine=%s peer=%s", a->uuid, log_esc(httpd_req_peer(r)));
		a->handed_out = false;
	}
	if (*a->machine_uid || a->handed_out || c->reg_machine != MODEL_REG_AT_KEY)
		return 0;
	if (!*a->uuid)
		httpd_reply_error(r, 403, 0,
			"The request must include the uuid of a Machine (registration.machine AtKey)");
	else if (c->reg_mode != MODEL_REG_MANUAL && !srv_regkey_settled(env->regkey, c))
		httpd_reply_error(r, 503, 5, "The registration key is not ready yet");
	else
		httpd_reply_error(r, 403, 0,
			"No Machine has this uuid, and it was not handed out here or has expired: fetch the Ignition "
			"configuration again");
	return -1;
}

/* Take the places, then start the job at its first API call. Both places or none: a key without
 * its Machine would be useless. */
static void start(struct srv_listener *s, struct httpd_req *r, const struct model_cluster *c,
	const struct registration *a)
{
	const struct srv_env *env = srv_listener_env(s);
	cleanup_free char *machine_name = model_machine_name(a->uuid);
	cleanup_json struct json_object *body = NULL;
	const char *uuid = *a->uuid ? a->uuid : NULL;
	struct srv_place *key, *machine = NULL;
	enum srv_limit why;
	struct job *j;

	key = srv_pending_take_key(
		env->pending, c, a->name, uuid, *a->machine_uid || a->handed_out, &why);
	if (key && a->handed_out) {
		machine = srv_pending_take_machine(
			env->pending, c, httpd_req_peer(r), machine_name, &why);
		if (!machine)
			srv_place_give_back(steal_ptr(&key));
	}
	if (!key) {
		srv_reply_limit(env, r, why);
		return;
	}
	j = srv_job_start(sizeof(*j), s, r);
	j->base.key = key;
	j->base.machine = machine;
	j->a = *a;
	if (a->handed_out) {
		/* With registration.machine AtKey the Machine is created only now, by a client that
		 * holds a valid id. */
		body = model_machine_new_json(a->uuid, c->obj.name, c->obj.uid, true);
		k8s_call_create_only(env->api, &j->base.ops, &kobj_machine, env->ns, body,
			srv_api_ms(r), on_machine_created, j);
	} else if (uuid && !*a->machine_uid) {
		read_machine(j); /* another process may have created it a moment ago */
	} else {
		post_key(j);
	}
}

static void register_ak(struct httpd_req *r, void *arg)
{
	struct srv_listener *s = arg;
	const struct srv_env *env = srv_listener_env(s);
	const struct model_cluster *c = srv_served_cluster(env, r);
	struct err err = ERR_INIT;
	const char *body;
	struct registration a;
	size_t len;

	if (!c)
		return;
	if (c->endorsement == MODEL_ENDORSEMENT_REQUIRED) {
		httpd_reply_error(r, 503, 60,
			"registration.endorsement Required has no effect in this version and is not served");
		return;
	}
	body = httpd_req_body(r, &len);
	if (read_request(body, len, &a.spki, a.uuid, &err) < 0) {
		httpd_reply_error(r, 400, 0, "%s", err.text);
		return;
	}
	model_ak_name(a.spki.sha256, *a.uuid ? MODEL_AK_NAME : MODEL_AK_NAME_ANY, a.name);
	if (check_uuid(env, r, c, &a) == 0 && check_known(env, r, &a) == 0)
		start(s, r, c, &a);
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
		.rate_status = 429,
		.tls_secret = tls_secret,
	};

	return srv_listener_new(env, &conf);
}
