/* SPDX-License-Identifier: MIT */
/*
 * Names, keys and labels are those of the Trustee operator, so that its objects are found again. A
 * line of etc/trusteeconfig-kbs.toml that ends in a tag (#https) is included only in that case.
 */
#include "config.h"

#include "render_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/kobj/owner.h"
#include "tec/render/trusteeconfig.h"

#define SAMPLE_NAME "attestation-status"

/* ---- the objects it makes */

/* One row per object, in the order of the enum. */
static const struct child {
	const char *suffix; /* of the name */
	const char *key;    /* of data */
	const char *source; /* key in the Secret it is copied from */
	const char *component;
} children[RENDER_N_CHILDREN] = {
	[RENDER_CHILD_CONFIG] = {"-kbs-config", MODEL_KBSFILE_KEY, NULL, NULL},
	[RENDER_CHILD_POLICY] = {"-resource-policy", "resource-policy.rego", NULL, NULL},
	[RENDER_CHILD_VALUES] = {"-rvps-reference-values", "reference_value", NULL, NULL},
	[RENDER_CHILD_CPU] = {"-attestation-policy-cpu", "default_cpu.rego", NULL, NULL},
	[RENDER_CHILD_GPU] = {"-attestation-policy-gpu", "default_gpu.rego", NULL, NULL},
	[RENDER_CHILD_AUTH] = {"-auth-secret", "privateKey", NULL, "auth"},
	[RENDER_CHILD_SAMPLE] = {NULL, "status", NULL, "sample"},
	[RENDER_CHILD_HTTPS_KEY] = {"-https-key-secret", "privateKey", "tls.key", "https"},
	[RENDER_CHILD_HTTPS_CERT] = {"-https-cert-secret", "certificate", "tls.crt", "https"},
	[RENDER_CHILD_TOKEN_KEY] = {"-attestation-key-secret", "token.key", "tls.key",
		"attestation"},
	[RENDER_CHILD_TOKEN_CERT] = {"-attestation-cert-secret", "token.crt", "tls.crt",
		"attestation"},
	[RENDER_CHILD_CLAIM] = {"-ibmse-certstore-pvc", NULL, NULL, NULL},
	[RENDER_CHILD_KBSCONFIG] = {"-kbs-config", NULL, NULL, NULL},
};

const struct kobj_gvk *render_child_gvk(enum render_trusteeconfig_child i)
{
	return render_child_is_configmap(i)  ? &kobj_configmap
	       : render_child_is_secret(i)   ? &kobj_secret
	       : i == RENDER_CHILD_KBSCONFIG ? &kobj_kbsconfig
					     : &kobj_claim;
}

/* IBM Secure Execution needs a certificate store instead of the attestation policies. */
bool render_child_wanted(const struct model_trusteeconfig *t, enum render_trusteeconfig_child i)
{
	if (render_child_is_copy(i))
		return render_child_source(t, i) != NULL;
	if (i == RENDER_CHILD_CPU || i == RENDER_CHILD_GPU)
		return !t->ibmse;
	return i != RENDER_CHILD_CLAIM || t->ibmse;
}

char *render_child_name(const struct model_trusteeconfig *t, enum render_trusteeconfig_child i)
{
	return children[i].suffix ? xasprintf("%s%s", t->obj.name, children[i].suffix)
				  : xstrdup(SAMPLE_NAME);
}

/* The user's TLS Secret that the copy is made from; NULL: not configured. */
const char *render_child_source(
	const struct model_trusteeconfig *t, enum render_trusteeconfig_child i)
{
	return i <= RENDER_CHILD_HTTPS_CERT ? t->https_secret : t->token_secret;
}

const char *render_child_source_key(enum render_trusteeconfig_child i)
{
	return children[i].source;
}

/* The frame of a generated object: owned by the TrusteeConfig. */
static struct json_object *object(const struct model_trusteeconfig *t, const char *ns,
	enum render_trusteeconfig_child i, struct json_object *take_marks)
{
	cleanup_free char *name = render_child_name(t, i);

	return render_object(&(struct render_meta){.gvk = render_child_gvk(i),
		.name = name,
		.ns = ns,
		.take_marks = take_marks,
		.owner_gvk = &kobj_trusteeconfig,
		.owner = &t->obj});
}

/* ---- ConfigMaps */

/* Whether the line belongs to the file; *len becomes its length without the tag. */
static bool has_line(const struct model_trusteeconfig *t, const char *line, size_t *len)
{
	const struct {
		const char *tag;
		bool on;
	} tags[] = {
		{" #plain", !t->https_secret},
		{" #https", t->https_secret},
		{" #open", !t->token_secret},
		{" #token", t->token_secret},
	};

	for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
		size_t n = strlen(tags[i].tag);

		if (*len < n || strncmp(line + *len - n, tags[i].tag, n) != 0)
			continue;
		*len -= n;
		return tags[i].on;
	}
	return true;
}

const char *render_child_tls(const struct model_trusteeconfig *t)
{
	return t->https_secret && t->tls ? t->tls : "";
}

/* Kept as annotation MODEL_INPUT_TLS: it tells whether the settings have changed since. */
void render_child_tls_hash(const struct model_trusteeconfig *t, char hex[SHA256_HEX_LEN + 1])
{
	const char *lines = render_child_tls(t);

	bytes_sha256_hex(lines, strlen(lines), hex);
}

/* Resolve the tags of the template; the line "#tls" becomes the TLS settings. */
static char *config_text(const struct model_trusteeconfig *t)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (const char *p = render_etc("trusteeconfig-kbs.toml"), *end; *p; p = end + 1) {
		size_t len;

		end = strchr(p, '\n');
		len = (size_t)(end - p);
		if (len == 4 && strncmp(p, "#tls", 4) == 0)
			strbuf_adds(&out, render_child_tls(t));
		else if (has_line(t, p, &len))
			strbuf_addf(&out, "%.*s\n", (int)len, p);
	}
	return strbuf_steal(&out);
}

/* The generated content. A user may have edited the object since; the controller decides. */
struct json_object *render_child_data(
	const struct model_trusteeconfig *t, enum render_trusteeconfig_child i)
{
	cleanup_free char *config = i == RENDER_CHILD_CONFIG ? config_text(t) : NULL;
	const char *policy = t->ibmse ? "trusteeconfig-ibmse.rego"
			     : t->profile == MODEL_PROFILE_PERMISSIVE
				     ? "trusteeconfig-allow.rego"
				     : "trusteeconfig-affirming.rego";
	const char *text = i == RENDER_CHILD_CONFIG   ? config
			   : i == RENDER_CHILD_POLICY ? render_etc(policy)
			   : i == RENDER_CHILD_VALUES ? "{\n}\n"
			   : i == RENDER_CHILD_CPU    ? render_etc("trusteeconfig-cpu.rego")
						      : render_etc("trusteeconfig-gpu.rego");

	return json_add_str(json_obj(), children[i].key, text);
}

/* The annotation MODEL_INPUT_MADE keeps the hash of what was generated, which reveals later
 * edits. */
struct json_object *render_child_configmap(
	const struct model_trusteeconfig *t, const char *ns, enum render_trusteeconfig_child i)
{
	struct json_object *data = render_child_data(t, i), *marks = json_obj();
	char made[SHA256_HEX_LEN + 1], tls[SHA256_HEX_LEN + 1];

	model_input_hash(data, made);
	render_child_tls_hash(t, tls);
	json_add_str(marks, MODEL_INPUT_MADE, made);
	json_add_str(marks, MODEL_INPUT_TLS, i == RENDER_CHILD_CONFIG ? tls : NULL);
	return json_add(object(t, ns, i, marks), "data", data);
}

/* ---- Secrets, the claim */

/* Labels are those of the Trustee operator, which selects its Secrets by them. */
struct secret *render_child_secret(const struct model_trusteeconfig *t, const char *ns,
	enum render_trusteeconfig_child i, const struct secret *value, const char *public_pem,
	const char *made)
{
	cleanup_secret struct secret *sample =
		i == RENDER_CHILD_SAMPLE ? secret_new_copy("success", strlen("success")) : NULL;
	struct json_object *marks = made ? json_add_str(json_obj(), MODEL_INPUT_MADE, made) : NULL,
			   *o = object(t, ns, i, marks),
			   *labels = json_get_obj(o, "metadata/labels");

	json_add_str(labels, "app.kubernetes.io/managed-by", "trustee-operator");
	json_add_str(labels, "app.kubernetes.io/part-of", "trustee");
	/* A label value is limited to 63 characters, a name is not. */
	if (strlen(t->obj.name) <= 63)
		json_add_str(labels, "app.kubernetes.io/instance", t->obj.name);
	json_add_str(labels, "app.kubernetes.io/component", children[i].component);
	return render_secret_text(o, children[i].key, sample ? sample : value,
		i == RENDER_CHILD_AUTH ? "publicKey" : NULL, public_pem);
}

/* storageClassName "" binds the claim to the named volume instead of provisioning one. */
struct json_object *render_child_claim(const struct model_trusteeconfig *t, const char *ns)
{
	struct json_object *spec = json_obj(), *size = json_add_str(json_obj(), "storage", "100Mi");

	json_add(spec, "accessModes", json_push_str(json_arr(), "ReadOnlyMany"));
	json_add_str(spec, "storageClassName", "");
	json_add_str(spec, "volumeName", t->volume);
	json_add(spec, "resources", json_add(json_obj(), "requests", size));
	return json_add(object(t, ns, RENDER_CHILD_CLAIM, NULL), "spec", spec);
}

/* ---- the KbsConfig */

static const int child_of_input[KBSCONFIG_N_INPUTS] = {
	[KBSCONFIG_CONFIG] = RENDER_CHILD_CONFIG,
	[KBSCONFIG_AS_CONFIG] = -1,
	[KBSCONFIG_RVPS_CONFIG] = -1,
	[KBSCONFIG_VALUES] = RENDER_CHILD_VALUES,
	[KBSCONFIG_CPU_POLICY] = RENDER_CHILD_CPU,
	[KBSCONFIG_GPU_POLICY] = RENDER_CHILD_GPU,
	[KBSCONFIG_RESOURCE_POLICY] = RENDER_CHILD_POLICY,
	[KBSCONFIG_QCNL] = -1,
	[KBSCONFIG_AUTH] = RENDER_CHILD_AUTH,
	[KBSCONFIG_HTTPS_KEY] = RENDER_CHILD_HTTPS_KEY,
	[KBSCONFIG_HTTPS_CERT] = RENDER_CHILD_HTTPS_CERT,
	[KBSCONFIG_TOKEN_KEY] = RENDER_CHILD_TOKEN_KEY,
	[KBSCONFIG_TOKEN_CERT] = RENDER_CHILD_TOKEN_CERT,
};

/* Set a member; null removes it in a merge patch (RFC 7396). */
static void add_or_null(struct json_object *spec, const char *name, const char *value)
{
	json_object_object_add(spec, name, value ? json_object_new_string(value) : NULL);
}

/* Name the generated objects in the KbsConfig's spec. A claim with another name was chosen by the
 * user and is kept; ours is removed again. */
static void patch_names(struct json_object *spec, const struct model_trusteeconfig *t,
	const struct model_kbsconfig *have)
{
	cleanup_free char *ours = render_child_name(t, RENDER_CHILD_CLAIM);
	const char *claim = have ? have->pvc : NULL;

	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		int child = child_of_input[i];
		bool wanted = child >= 0 &&
			      render_child_wanted(t, (enum render_trusteeconfig_child)child);
		cleanup_free char *want =
			wanted ? render_child_name(t, (enum render_trusteeconfig_child)child)
			       : NULL;

		/* A setting of older releases, which only users make. */
		if (i != KBSCONFIG_QCNL && !str_eq(want, have ? have->input[i] : NULL))
			add_or_null(spec, model_kbsconfig_input_paths[i], want);
	}
	if (t->ibmse ? !claim : str_eq(claim, ours)) {
		struct json_object *se = json_obj();

		add_or_null(se, "certStorePvc", t->ibmse ? ours : NULL);
		json_add(spec, "ibmSEConfigSpec", se);
	}
}

/* Adopt a KbsConfig without a controller: our owner reference comes after those of others. */
static struct json_object *owners(
	const struct model_trusteeconfig *t, const struct model_kbsconfig *have)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *others =
		have->owners
			? json_parse(have->owners, strlen(have->owners), &json_limits_api, &err)
			: NULL;
	struct json_object *all = json_arr();

	for (size_t i = 0; i < json_len(others); i++) {
		struct json_object *one = json_at(others, i);

		/* Ours may be there already, without `controller`. */
		if (!str_eq(json_get_str(one, "uid"), t->obj.uid))
			json_push(all, json_object_get(one));
	}
	return json_push(all, kobj_owner_json(&kobj_trusteeconfig, t->obj.name, t->obj.uid));
}

/* Compare field by field, so that what users may set is never overwritten. */
struct json_object *render_child_kbsconfig(
	const struct model_trusteeconfig *t, const char *ns, const struct model_kbsconfig *have)
{
	bool permissive = t->profile == MODEL_PROFILE_PERMISSIVE;
	const char *profile = permissive ? "Permissive" : "Restricted";
	struct json_object *o = have ? json_add(json_obj(), "metadata", json_obj())
				     : object(t, ns, RENDER_CHILD_KBSCONFIG, NULL);
	cleanup_json struct json_object *env = json_obj(), *marks = json_obj();
	struct json_object *spec = json_obj(), *meta = json_get_obj(o, "metadata");

	patch_names(spec, t, have);
	/* A TrusteeConfig supports a single deployment type. */
	if (!have || have->microservices)
		json_add_str(spec, "kbsDeploymentType", "AllInOneDeployment");
	if (!have || !str_eq(have->service_type, t->service_type))
		json_add_str(spec, "kbsServiceType", t->service_type);
	if (!have || !have->resources)
		json_add(spec, "kbsSecretResources", json_push_str(json_arr(), SAMPLE_NAME));
	/* RUST_LOG=debug is set and removed with profile Permissive, which an annotation records;
	 * any other value is the user's. */
	if (permissive && (!have || !have->log))
		json_add_str(env, "RUST_LOG", "debug");
	else if (!permissive && have && str_eq(have->profile, "Permissive") &&
		 str_eq(have->log, "debug"))
		add_or_null(env, "RUST_LOG", NULL);
	if (json_len(env))
		json_add(spec, "KbsEnvVars", steal_ptr(&env));
	if (have && !have->owner_uid)
		json_add(meta, "ownerReferences", owners(t, have));
	if (!have || !str_eq(have->profile, profile))
		json_add_str(marks, MODEL_KBSCONFIG_PROFILE, profile);
	if (!str_eq(have ? have->writable : NULL, t->writable))
		add_or_null(marks, MODEL_KBSCONFIG_WRITABLE, t->writable);
	if (json_len(marks))
		json_add(meta, "annotations", steal_ptr(&marks));
	/* An empty patch would still be a write and wake every watcher. */
	if (have && !json_len(spec) && !json_len(meta)) {
		json_object_put(o);
		json_object_put(spec);
		return NULL;
	}
	return json_add(o, "spec", spec);
}
