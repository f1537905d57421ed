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
#include "tec/kobj/owner.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/plain.h"
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

/* ---- TLS */

/* Append KEY = "A:B", in the order given; nothing for an empty list. Groups have the same name in
 * the API and in OpenSSL; only the characters are checked. */
static void add_names(struct strbuf *out, const char *key, struct json_object *spec,
	const char *path, bool ciphers, struct strbuf *problem)
{
	struct json_object *list = json_get_arr(spec, path);

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *one = json_at(list, i);
		const char *name = json_object_is_type(one, json_type_string)
					   ? json_object_get_string(one)
					   : "";

		if (ciphers)
			name = pki_cipher_openssl_name(name);
		else if (!pki_cipher_is_name(name))
			name = NULL;
		if (!name)
			model_plain_complain(problem, path, "contains a name unknown to OpenSSL");
		if (i == 0)
			strbuf_addf(out, "%s = \"", key);
		strbuf_addf(out, "%s%s", i ? ":" : "", name ? name : "");
	}
	if (json_len(list))
		strbuf_adds(out, "\"\n");
}

/* Only profile "custom" reads the other members: the others have fixed settings in Trustee. Absent
 * versions are left to Trustee's defaults. */
static void read_tls(struct strbuf *out, struct json_object *spec, struct strbuf *problem)
{
	static const char *const versions[] = {"min", "max"};
	const char *profile = model_plain_text(spec, "tlsConfig/profile");

	if (!profile)
		profile = "intermediate";
	if (!str_eq(profile, "old") && !str_eq(profile, "intermediate") &&
		!str_eq(profile, "modern") && !str_eq(profile, "custom")) {
		model_plain_complain(
			problem, "tlsConfig.profile", "is not old, intermediate, modern or custom");
		return;
	}
	strbuf_addf(out, "# TLS configuration - Mozilla %s profile\ntls_profile = \"%s\"\n",
		profile, profile);
	if (!str_eq(profile, "custom"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		cleanup_free char *path = xasprintf("tlsConfig/%sVersion", versions[i]);
		const char *v = model_plain_text(spec, path);

		if (v && !str_eq(v, "1.2") && !str_eq(v, "1.3"))
			model_plain_complain(problem, path,
				"is not 1.2 or 1.3, the versions that Trustee supports");
		else if (v)
			strbuf_addf(out, "tls_%s_version = \"%s\"\n", versions[i], v);
	}
	add_names(out, "tls_ciphers", spec, "tlsConfig/ciphers", true, problem);
	add_names(out, "tls_groups", spec, "tlsConfig/groups", false, problem);
}

/* ---- spec */

/* There is no default for the profile: they differ in what they let through. metadata.name is
 * checked here, because generated objects append suffixes to it. */
static void read_spec(struct kobj_pack *pack, struct model_trusteeconfig *m,
	struct json_object *spec, const char *name)
{
	cleanup_strbuf struct strbuf problem = STRBUF_INIT, tls = STRBUF_INIT;
	const char *service = model_plain_text(spec, "kbsServiceType"),
		   *profile = json_get_str(spec, "profileType");

	if (str_eq(profile, "Permissive"))
		m->profile = MODEL_PROFILE_PERMISSIVE;
	else if (str_eq(profile, "Restricted"))
		m->profile = MODEL_PROFILE_RESTRICTED;
	else
		model_plain_complain(
			&problem, "profileType", "is neither Permissive nor Restricted");
	m->ibmse = json_get_obj(spec, "ibmSE") != NULL;
	kobj_pack_str(pack, AT(service_type), service ? service : "ClusterIP");
	kobj_pack_str(pack, AT(https_secret),
		model_plain_name(spec, "httpsSpec/tlsSecretName", &problem));
	kobj_pack_str(pack, AT(token_secret),
		model_plain_name(spec, "attestationTokenVerificationSpec/tlsSecretName", &problem));
	kobj_pack_str(pack, AT(volume), model_plain_name(spec, "ibmSE/pvName", &problem));
	if (m->ibmse && !json_get_str(spec, "ibmSE/pvName"))
		model_plain_complain(&problem, "ibmSE.pvName", "is missing");
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
	kobj_pack_str(&pack, AT(writable), kobj_annotation(o, MODEL_KBSCONFIG_WRITABLE));
	m.has_status = json_get(o, "status/isReady") != NULL;
	m.is_ready = json_get_bool(o, "status/isReady", false);
	kobj_pack_str(&pack, AT(description), json_get_str(o, "status/statusDescription"));
	kobj_pack_str(&pack, AT(ref), json_get_str(o, "status/kbsConfigRef/name"));
	kobj_cond_read(
		&pack, o, model_trusteeconfig_cond_types, TRUSTEECONFIG_N_CONDS, m.cond, AT(cond));
	return kobj_pack_finish(&pack, &m, sizeof(m));
}
