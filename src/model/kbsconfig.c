/* SPDX-License-Identifier: MIT */
/*
 * KbsConfig as a compact struct. What cannot be used is kept as one sentence for the condition:
 * objects of the other operator were stored under another schema. An empty name is none, as there.
 */
#include "config.h"

#include "tec/model/kbsconfig.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/key.h"
#include "tec/kobj/owner.h"

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

/* lines: each begins with a name, which ends at the end of the line or at a tab. */
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

/* NULL: not given. */
static const char *text_at(struct json_object *spec, const char *path)
{
	const char *s = json_get_str(spec, path);

	return s && *s ? s : NULL;
}

static void complain(struct strbuf *problem, const char *path, const char *what)
{
	if (problem->len)
		return;
	strbuf_addf(problem, "spec.%s %s", path, what);
	for (char *p = problem->data; *p; p++)
		*p = *p == '/' ? '.' : *p;
}

static const char *name_at(struct json_object *spec, const char *path, struct strbuf *problem)
{
	const char *s = text_at(spec, path);

	if (!s || kobj_name_valid(s, strlen(s)))
		return s;
	complain(problem, path, "is not the name of an object");
	return NULL;
}

static void read_resources(struct kobj_pack *pack, struct json_object *spec, struct strbuf *problem)
{
	struct json_object *list = json_get_arr(spec, "kbsSecretResources");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);
		const char *s =
			json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "";

		if (!kobj_name_valid(s, strlen(s)))
			complain(problem, "kbsSecretResources", "has a name that no Secret has");
		else if (!in_lines(out.data, s)) /* twice is once */
			strbuf_addf(&out, "%s\n", s);
	}
	kobj_pack_str(pack, AT(resources), out.len ? out.data : NULL);
}

static bool is_mountable(const char *s)
{
	return s[0] == '/' && s[1] && !strchr(s, ':') && !strchr(s, '\n') && !strchr(s, '\t') &&
	       !strstr(s, "..");
}

static void add_cache(struct strbuf *out, struct json_object *one, struct strbuf *problem)
{
	const char *secret = name_at(one, "secretName", problem), *dir = text_at(one, "mountPath");

	if (!secret)
		return;
	if (dir && !is_mountable(dir))
		complain(problem, "kbsLocalCertCacheSpec/secrets/mountPath",
			"is not an absolute path");
	else
		strbuf_addf(out, "%s\t%s\n", secret, dir ? dir : VCEK_DIR);
}

static void read_caches(struct kobj_pack *pack, struct json_object *spec, struct strbuf *problem)
{
	struct json_object *flat = json_get_obj(spec, "kbsLocalCertCacheSpec"),
			   *list = json_get_arr(flat, "secrets");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	add_cache(&out, flat, problem);
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		add_cache(&out, json_object_array_get_idx(list, i), problem);
	kobj_pack_str(pack, AT(caches), out.len ? out.data : NULL);
}

static int32_t read_replicas(struct json_object *spec, struct strbuf *problem)
{
	int64_t n = json_get_int(spec, "KbsDeploymentSpec/replicas",
		json_get_int(spec, "KksDeploymentSpec/replicas", 1));

	if (n >= 0 && n <= INT32_MAX)
		return (int32_t)n;
	complain(problem, "KbsDeploymentSpec/replicas", "is negative");
	return 1;
}

static void read_env(struct kobj_pack *pack, struct json_object *spec)
{
	struct json_object *env = json_get_obj(spec, "KbsEnvVars");
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (env && json_object_object_length(env))
		json_canonical(&text, env);
	kobj_pack_str(pack, AT(env), text.len ? text.data : NULL);
}

static void read_spec(struct kobj_pack *pack, struct model_kbsconfig *m, struct json_object *spec)
{
	cleanup_strbuf struct strbuf problem = STRBUF_INIT;
	const char *type = text_at(spec, "kbsDeploymentType"),
		   *service = text_at(spec, "kbsServiceType");
	bool parts = false;

	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		const char *name = name_at(spec, model_kbsconfig_input_paths[i], &problem);

		parts |= name && (i == KBSCONFIG_AS_CONFIG || i == KBSCONFIG_RVPS_CONFIG);
		kobj_pack_str(pack, AT(input) + (size_t)i * sizeof(m->input[0]), name);
	}
	if (type && !str_eq(type, "AllInOneDeployment") && !str_eq(type, "MicroservicesDeployment"))
		complain(&problem, "kbsDeploymentType",
			"is neither AllInOneDeployment nor MicroservicesDeployment");
	m->microservices = type ? str_eq(type, "MicroservicesDeployment") : parts;
	m->replicas = read_replicas(spec, &problem);
	kobj_pack_str(pack, AT(service_type), service ? service : "ClusterIP");
	kobj_pack_str(pack, AT(pvc), name_at(spec, "ibmSEConfigSpec/certStorePvc", &problem));
	read_resources(pack, spec, &problem);
	read_caches(pack, spec, &problem);
	read_env(pack, spec);
	kobj_pack_str(pack, AT(problem), problem.len ? problem.data : NULL);
}

static void read_owners(struct kobj_pack *pack, struct json_object *o)
{
	const char *controller = kobj_owner_controller(o);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (!controller && kobj_owner_count(o))
		json_canonical(&text, json_get_arr(o, "metadata/ownerReferences"));
	kobj_pack_str(pack, AT(owner_uid), controller);
	kobj_pack_str(pack, AT(owners), text.len ? text.data : NULL);
}

struct kobj *model_kbsconfig_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_kbsconfig m = {.replicas = 1};

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	m.has_finalizer = kobj_has_finalizer(o, MODEL_KBSCONFIG_FINALIZER);
	kobj_pack_other_finalizers(&pack, AT(other_finalizers), o, MODEL_KBSCONFIG_FINALIZER);
	kobj_pack_str(&pack, AT(layout), kobj_annotation(o, MODEL_KBSCONFIG_LAYOUT));
	kobj_pack_str(&pack, AT(guard), kobj_annotation(o, MODEL_KBSCONFIG_GUARD));
	kobj_pack_str(&pack, AT(profile), kobj_annotation(o, MODEL_KBSCONFIG_PROFILE));
	read_owners(&pack, o);
	kobj_pack_str(&pack, AT(log), json_get_str(o, "spec/KbsEnvVars/RUST_LOG"));
	read_spec(&pack, &m, json_get_obj(o, "spec"));
	m.has_status = json_get(o, "status/isReady") != NULL;
	m.is_ready = json_get_bool(o, "status/isReady", false);
	kobj_cond_read(&pack, o, model_kbsconfig_cond_types, KBSCONFIG_N_CONDS, m.cond, AT(cond));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

const char *model_kbsconfig_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? MODEL_KBSCONFIG_ALL : o->uid;
}

/* ---- questions */

bool model_kbsconfig_names(const struct model_kbsconfig *c, bool secret, const char *name)
{
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++)
		if (model_kbsconfig_is_secret(i) == secret && str_eq(c->input[i], name))
			return true;
	return secret && (in_lines(c->resources, name) || in_lines(c->caches, name));
}
