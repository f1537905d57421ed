/* SPDX-License-Identifier: MIT */
/*
 * KbsConfig as a compact struct. Unusable parts of spec are kept as one sentence for the condition,
 * because objects of the other operator were stored under another schema. As there, an empty name
 * counts as unset.
 */
#include "config.h"

#include "tec/model/kbsconfig.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/key.h"
#include "tec/kobj/owner.h"
#include "tec/model/plain.h"

#define VCEK_DIR "/opt/confidential-containers/attestation-service/kds-store/vcek"
#define AT(m)    offsetof(struct model_kbsconfig, m)

const char *const model_kbsconfig_cond_types[KBSCONFIG_N_CONDS] = {
	[KBSCONFIG_INSTALLED] = "Installed",
	[KBSCONFIG_READY] = "Ready",
};

const char *const model_kbsconfig_input_paths[KBSCONFIG_N_INPUTS] = {
	[KBSCONFIG_CONFIG] = "kbsConfigMapName",
	[KBSCONFIG_AS_CONFIG] = "kbsAsConfigMapName",
	[KBSCONFIG_RVPS_CONFIG] = "kbsRvpsConfigMapName",
	[KBSCONFIG_VALUES] = "kbsRvpsRefValuesConfigMapName",
	[KBSCONFIG_CPU_POLICY] = "kbsAttestationPolicyConfigMapName",
	[KBSCONFIG_GPU_POLICY] = "kbsGpuAttestationPolicyConfigMapName",
	[KBSCONFIG_RESOURCE_POLICY] = "kbsResourcePolicyConfigMapName",
	[KBSCONFIG_QCNL] = "tdxConfigSpec/kbsTdxConfigMapName",
	[KBSCONFIG_AUTH] = "kbsAuthSecretName",
	[KBSCONFIG_HTTPS_KEY] = "kbsHttpsKeySecretName",
	[KBSCONFIG_HTTPS_CERT] = "kbsHttpsCertSecretName",
	[KBSCONFIG_TOKEN_KEY] = "kbsAttestationKeySecretName",
	[KBSCONFIG_TOKEN_CERT] = "kbsAttestationCertSecretName",
};

/* Reasons are part of the API. Some belong to both conditions, e.g. Deleting. */
const char *model_kbsconfig_reason(enum model_kbsconfig_reason r)
{
	static const char *const names[KBSCONFIG_N_REASONS] = {
		[KBSCONFIG_IS_INSTALLED] = "Installed",
		[KBSCONFIG_INSTALLING] = "Installing",
		[KBSCONFIG_INPUT_MISSING] = "InputMissing",
		[KBSCONFIG_INPUT_INVALID] = "InputInvalid",
		[KBSCONFIG_CONFLICT] = "Conflict",
		[KBSCONFIG_WRITE_REFUSED] = "WriteRefused",
		[KBSCONFIG_NOT_WATCHED] = "NotWatched",
		[KBSCONFIG_IS_READY] = "Ready",
		[KBSCONFIG_NOT_INSTALLED] = "NotInstalled",
		[KBSCONFIG_STARTING] = "Starting",
		[KBSCONFIG_ROLLING_OUT] = "RollingOut",
		[KBSCONFIG_NO_REPLICAS] = "NoReplicas",
		[KBSCONFIG_DELETING] = "Deleting",
	};

	return names[r];
}

/* ---- parts of spec */

/* Find a name in lines. Each line begins with a name, which ends at a tab or at the end of the
 * line. */
static bool in_lines(const char *lines, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = lines ? lines : ""; *line;) {
		const char *end = strchrnul(line, '\n');

		if (strncmp(line, name, len) == 0 && (line[len] == '\n' || line[len] == '\t'))
			return true;
		line = *end ? end + 1 : end;
	}
	return false;
}

/* Kept as lines, because a packed object has strings but no arrays of them. */
static void read_resources(struct kobj_pack *pack, struct json_object *spec, struct strbuf *problem)
{
	struct json_object *list = json_get_arr(spec, "kbsSecretResources");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *v = json_at(list, i);
		const char *s =
			json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";

		if (!kobj_name_valid(s, strlen(s)))
			model_plain_complain(
				problem, "kbsSecretResources", "contains an invalid Secret name");
		else if (!in_lines(out.data, s)) /* skip duplicates */
			strbuf_addf(&out, "%s\n", s);
	}
	kobj_pack_str(pack, AT(resources), out.len ? out.data : NULL);
}

/* Without a mountPath, the VCEK certificates go where Trustee looks for them by default. */
static void add_cache(struct strbuf *out, struct json_object *one, struct strbuf *problem)
{
	const char *secret = model_plain_name(one, "secretName", problem),
		   *dir = model_plain_text(one, "mountPath");

	if (!secret)
		return;
	/* Lines and tabs separate our entries, and Kubernetes refuses a mountPath with a colon. */
	if (dir && (dir[0] != '/' || !dir[1] || strpbrk(dir, ":\n\t") || strstr(dir, "..")))
		model_plain_complain(problem, "kbsLocalCertCacheSpec/secrets/mountPath",
			"is not an absolute path");
	else
		strbuf_addf(out, "%s\t%s\n", secret, dir ? dir : VCEK_DIR);
}

/* Without kbsDeploymentType, a configuration for the AS or the RVPS implies separate
 * microservices. */
static void read_spec(struct kobj_pack *pack, struct model_kbsconfig *m, struct json_object *spec)
{
	cleanup_strbuf struct strbuf problem = STRBUF_INIT;
	const char *type = model_plain_text(spec, "kbsDeploymentType"),
		   *service = model_plain_text(spec, "kbsServiceType");
	struct json_object *env = json_get_obj(spec, "KbsEnvVars"),
			   *flat = json_get_obj(spec, "kbsLocalCertCacheSpec"),
			   *list = json_get_arr(flat, "secrets");
	cleanup_strbuf struct strbuf env_text = STRBUF_INIT, caches = STRBUF_INIT;
	bool parts = false;
	/* The member's name in version 0.4.0 of the other operator; stored objects may have it. */
	int64_t replicas = json_get_int(spec, "KbsDeploymentSpec/replicas",
		json_get_int(spec, "KksDeploymentSpec/replicas", 1));

	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		const char *name = model_plain_name(spec, model_kbsconfig_input_paths[i], &problem);

		parts |= name && (i == KBSCONFIG_AS_CONFIG || i == KBSCONFIG_RVPS_CONFIG);
		kobj_pack_str(pack, AT(input) + (size_t)i * sizeof(m->input[0]), name);
	}
	if (type && !str_eq(type, "AllInOneDeployment") && !str_eq(type, "MicroservicesDeployment"))
		model_plain_complain(&problem, "kbsDeploymentType",
			"is neither AllInOneDeployment nor MicroservicesDeployment");
	m->microservices = type ? str_eq(type, "MicroservicesDeployment") : parts;
	if (replicas < 0 || replicas > INT32_MAX)
		model_plain_complain(&problem, "KbsDeploymentSpec/replicas", "is negative");
	else
		m->replicas = (int32_t)replicas;
	kobj_pack_str(pack, AT(service_type), service ? service : "ClusterIP");
	kobj_pack_str(
		pack, AT(pvc), model_plain_name(spec, "ibmSEConfigSpec/certStorePvc", &problem));
	read_resources(pack, spec, &problem);
	/* Older objects have one cache in kbsLocalCertCacheSpec itself, newer ones a list `secrets`:
	 * both are read. */
	add_cache(&caches, flat, &problem);
	for (size_t i = 0; i < json_len(list); i++)
		add_cache(&caches, json_at(list, i), &problem);
	kobj_pack_str(pack, AT(caches), caches.len ? caches.data : NULL);
	/* Canonical JSON, so that a different order of the variables does not restart Trustee. */
	if (json_len(env))
		json_canonical(&env_text, env);
	kobj_pack_str(pack, AT(env), env_text.len ? env_text.data : NULL);
	kobj_pack_str(pack, AT(problem), problem.len ? problem.data : NULL);
}

/* Never fails because of spec: problems are kept for the condition, and finalizers must work in any
 * case. */
struct kobj *model_kbsconfig_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_kbsconfig m = {.replicas = 1};
	const char *controller = kobj_owner_controller(o);
	cleanup_strbuf struct strbuf owners = STRBUF_INIT;

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	m.has_finalizer = kobj_has_finalizer(o, MODEL_KBSCONFIG_FINALIZER);
	kobj_pack_other_finalizers(&pack, AT(other_finalizers), o, MODEL_KBSCONFIG_FINALIZER);
	kobj_pack_str(&pack, AT(layout), kobj_annotation(o, MODEL_KBSCONFIG_LAYOUT));
	kobj_pack_str(&pack, AT(guard), kobj_annotation(o, MODEL_KBSCONFIG_GUARD));
	kobj_pack_str(&pack, AT(writable), kobj_annotation(o, MODEL_KBSCONFIG_WRITABLE));
	kobj_pack_str(&pack, AT(profile), kobj_annotation(o, MODEL_KBSCONFIG_PROFILE));
	/* Owners without a controller are kept, so that an adoption adds to them and does not
	 * replace them. */
	if (!controller && kobj_owner_count(o))
		json_canonical(&owners, json_get_arr(o, "metadata/ownerReferences"));
	kobj_pack_str(&pack, AT(owner_uid), controller);
	kobj_pack_str(&pack, AT(owners), owners.len ? owners.data : NULL);
	kobj_pack_str(&pack, AT(log), json_get_str(o, "spec/KbsEnvVars/RUST_LOG"));
	read_spec(&pack, &m, json_get_obj(o, "spec"));
	m.has_status = json_get(o, "status/isReady") != NULL;
	m.is_ready = json_get_bool(o, "status/isReady", false);
	kobj_cond_read(&pack, o, model_kbsconfig_cond_types, KBSCONFIG_N_CONDS, m.cond, AT(cond));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

/* Index 0 has one value for all, which gives the objects in the order of their age. */
const char *model_kbsconfig_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? MODEL_KBSCONFIG_ALL : o->uid;
}

/* ---- questions */

/* Tells which KbsConfigs to wake when a ConfigMap or Secret changes. */
bool model_kbsconfig_names(const struct model_kbsconfig *c, bool secret, const char *name)
{
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++)
		if (model_kbsconfig_is_secret(i) == secret && str_eq(c->input[i], name))
			return true;
	return secret && (in_lines(c->resources, name) || in_lines(c->caches, name));
}
