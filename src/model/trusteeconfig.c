/* SPDX-License-Identifier: MIT */
/*
 * TrusteeConfig as a compact struct; an unusable part of spec is kept as one sentence for the
 * condition. The TLS settings are kept as the lines of kbs-config.toml that they become. Nothing
 * from outside needs quoting in them: versions, suites and groups consist of letters, digits and
 * few other characters, or are refused.
 */
#include "config.h"

#include "tec/model/trusteeconfig.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/key.h"
#include "tec/pki/cipher.h"

#define SUFFIX_MAX strlen("-attestation-policy-cpu") /* the longest suffix of a derived name */
#define AT(m)      offsetof(struct model_trusteeconfig, m)

const char *const model_trusteeconfig_cond_types[TRUSTEECONFIG_N_CONDS] = {
	[TRUSTEECONFIG_CONFIGURED] = "Configured",
	[TRUSTEECONFIG_READY] = "Ready",
};

const char *model_trusteeconfig_reason(enum model_trusteeconfig_reason r)
{
	static const char *const names[TRUSTEECONFIG_N_REASONS] = {
		[TRUSTEECONFIG_IS_CONFIGURED] = "Configured",
		[TRUSTEECONFIG_CONFIGURING] = "Configuring",
		[TRUSTEECONFIG_INVALID_SPEC] = "InvalidSpec",
		[TRUSTEECONFIG_INPUT_MISSING] = "InputMissing",
		[TRUSTEECONFIG_EDITED] = "Edited",
		[TRUSTEECONFIG_CONFLICT] = "Conflict",
		[TRUSTEECONFIG_WRITE_REFUSED] = "WriteRefused",
		[TRUSTEECONFIG_NOT_WATCHED] = "NotWatched",
		[TRUSTEECONFIG_IS_READY] = "Ready",
		[TRUSTEECONFIG_NOT_CONFIGURED] = "NotConfigured",
		[TRUSTEECONFIG_NOT_READY] = "NotReady",
	};

	return names[r];
}

/* Keep the first problem only: the condition has room for one sentence. */
static void complain(struct strbuf *problem, const char *path, const char *what)
{
	if (!problem->len)
		strbuf_addf(problem, "spec.%s %s", path, what);
}

/* ---- TLS */

/* Absent versions are left to Trustee's defaults. */
static void add_version(
	struct strbuf *out, struct json_object *tls, const char *name, struct strbuf *problem)
{
	cleanup_free char *path = xasprintf("tlsConfig.%s", name);
	const char *v = json_get_str(tls, name);

	if (!v || !*v)
		return;
	if (!str_eq(v, "1.2") && !str_eq(v, "1.3"))
		complain(problem, path, "is not 1.2 or 1.3, the versions that Trustee supports");
	else
		strbuf_addf(out, "tls_%s_version = \"%s\"\n",
			str_eq(name, "minVersion") ? "min" : "max", v);
}

/* Groups have the same name in the API and in OpenSSL; only the characters are checked. */
static const char *group_name(const char *name)
{
	return pki_cipher_is_name(name) ? name : NULL;
}

/* Append KEY = "A:B", in the order given; nothing for an empty list. */
static void add_names(struct strbuf *out, const char *key, struct json_object *list,
	const char *(*translate)(const char *name), const char *path, struct strbuf *problem)
{
	size_t n = list ? json_object_array_length(list) : 0;

	if (n)
		strbuf_addf(out, "%s = \"", key);
	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		const char *name = json_object_is_type(one, json_type_string)
					   ? translate(json_object_get_string(one))
					   : NULL;

		if (!name)
			complain(problem, path, "contains a name unknown to OpenSSL");
		strbuf_addf(out, "%s%s", i ? ":" : "", name ? name : "");
	}
	if (n)
		strbuf_adds(out, "\"\n");
}

/* Only profile "custom" reads the other members: the others have fixed settings in Trustee. */
static void read_tls(struct strbuf *out, struct json_object *spec, struct strbuf *problem)
{
	static const char *const profiles[] = {"old", "intermediate", "modern", "custom"};
	struct json_object *tls = json_get_obj(spec, "tlsConfig");
	const char *profile = json_get_str(tls, "profile");
	bool known = false;

	if (!profile || !*profile)
		profile = "intermediate";
	for (size_t i = 0; i < ARRAY_LEN(profiles); i++)
		known |= str_eq(profile, profiles[i]);
	if (!known) {
		complain(
			problem, "tlsConfig.profile", "is not old, intermediate, modern or custom");
		return;
	}
	strbuf_addf(out, "# TLS configuration - Mozilla %s profile\ntls_profile = \"%s\"\n",
		profile, profile);
	if (!str_eq(profile, "custom"))
		return;
	add_version(out, tls, "minVersion", problem);
	add_version(out, tls, "maxVersion", problem);
	add_names(out, "tls_ciphers", json_get_arr(tls, "ciphers"), pki_cipher_openssl_name,
		"tlsConfig.ciphers", problem);
	add_names(out, "tls_groups", json_get_arr(tls, "groups"), group_name, "tlsConfig.groups",
		problem);
}

/* ---- spec */

/* There is no default: the profiles differ in what they let through. */
static enum model_profile profile_of(struct json_object *spec, struct strbuf *problem)
{
	const char *s = json_get_str(spec, "profileType");

	if (str_eq(s, "Permissive"))
		return MODEL_PROFILE_PERMISSIVE;
	if (str_eq(s, "Restricted"))
		return MODEL_PROFILE_RESTRICTED;
	complain(problem, "profileType", "is neither Permissive nor Restricted");
	return MODEL_PROFILE_NONE;
}

/* Pack the name of an object. path is written with dots, for people. */
static void read_name(struct kobj_pack *pack, size_t at, struct json_object *o, const char *member,
	const char *path, struct strbuf *problem)
{
	const char *s = json_get_str(o, member);

	if (!s || !*s)
		return;
	if (kobj_name_valid(s, strlen(s)))
		kobj_pack_str(pack, at, s);
	else
		complain(problem, path, "is not a valid object name");
}

/* metadata.name is checked here, because generated objects append suffixes to it. */
static void read_spec(struct kobj_pack *pack, struct model_trusteeconfig *m,
	struct json_object *spec, const char *name)
{
	cleanup_strbuf struct strbuf problem = STRBUF_INIT, tls = STRBUF_INIT;
	struct json_object *ibmse = json_get_obj(spec, "ibmSE");
	const char *service = json_get_str(spec, "kbsServiceType");

	m->profile = profile_of(spec, &problem);
	m->ibmse = ibmse != NULL;
	kobj_pack_str(pack, AT(service_type), service && *service ? service : "ClusterIP");
	read_name(pack, AT(https_secret), json_get_obj(spec, "httpsSpec"), "tlsSecretName",
		"httpsSpec.tlsSecretName", &problem);
	read_name(pack, AT(token_secret), json_get_obj(spec, "attestationTokenVerificationSpec"),
		"tlsSecretName", "attestationTokenVerificationSpec.tlsSecretName", &problem);
	read_name(pack, AT(volume), ibmse, "pvName", "ibmSE.pvName", &problem);
	if (ibmse && !json_get_str(ibmse, "pvName"))
		complain(&problem, "ibmSE.pvName", "is missing");
	if (strlen(name) + SUFFIX_MAX > KOBJ_NAME_MAX && !problem.len)
		strbuf_adds(&problem, "metadata.name is too long for the names derived from it");
	read_tls(&tls, spec, &problem);
	kobj_pack_str(pack, AT(tls), tls.len ? tls.data : NULL);
	kobj_pack_str(pack, AT(problem), problem.len ? problem.data : NULL);
}

/* Never fails because of spec, so that an invalid one can be reported in its status. */
struct kobj *model_trusteeconfig_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_trusteeconfig m = {.is_ready = false};

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	read_spec(&pack, &m, json_get_obj(o, "spec"), json_get_str(o, "metadata/name"));
	m.has_status = json_get(o, "status/isReady") != NULL;
	m.is_ready = json_get_bool(o, "status/isReady", false);
	kobj_pack_str(&pack, AT(description), json_get_str(o, "status/statusDescription"));
	kobj_pack_str(&pack, AT(ref), json_get_str(o, "status/kbsConfigRef/name"));
	kobj_cond_read(
		&pack, o, model_trusteeconfig_cond_types, TRUSTEECONFIG_N_CONDS, m.cond, AT(cond));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
