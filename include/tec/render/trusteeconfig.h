/* SPDX-License-Identifier: MIT */
/* The objects that a TrusteeConfig makes: ConfigMaps, Secrets, a claim, and the KbsConfig that
 * names them. The same input gives the same bytes. The caller puts every result. */
#ifndef TEC_RENDER_TRUSTEECONFIG_H
#define TEC_RENDER_TRUSTEECONFIG_H

#include <json-c/json.h>

#include "tec/base/bytes.h"
#include "tec/base/secret.h"
#include "tec/model/input.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/trusteeconfig.h"

/* In the order of creation. */
enum render_trusteeconfig_child {
	RENDER_CHILD_CONFIG, /* ConfigMaps */
	RENDER_CHILD_POLICY,
	RENDER_CHILD_VALUES,
	RENDER_CHILD_CPU,
	RENDER_CHILD_GPU,
	RENDER_CHILD_AUTH, /* Secrets, created once */
	RENDER_CHILD_SAMPLE,
	RENDER_CHILD_HTTPS_KEY, /* Secrets, replaced when their source changes */
	RENDER_CHILD_HTTPS_CERT,
	RENDER_CHILD_TOKEN_KEY,
	RENDER_CHILD_TOKEN_CERT,
	RENDER_CHILD_CLAIM,
	RENDER_CHILD_KBSCONFIG,
	RENDER_N_CHILDREN,
};
static inline bool render_child_is_configmap(enum render_trusteeconfig_child i)
{
	return i <= RENDER_CHILD_GPU;
}
static inline bool render_child_is_copy(enum render_trusteeconfig_child i)
{
	return i >= RENDER_CHILD_HTTPS_KEY && i <= RENDER_CHILD_TOKEN_CERT;
}
static inline bool render_child_is_secret(enum render_trusteeconfig_child i)
{
	return i >= RENDER_CHILD_AUTH && i <= RENDER_CHILD_TOKEN_CERT;
}
const struct kobj_gvk *render_child_gvk(enum render_trusteeconfig_child i);
bool render_child_wanted(const struct model_trusteeconfig *t, enum render_trusteeconfig_child i);
/* The caller frees. */
char *render_child_name(const struct model_trusteeconfig *t, enum render_trusteeconfig_child i);

/* For a ConfigMap: its generated data; and the whole object, to be applied. */
struct json_object *render_child_data(
	const struct model_trusteeconfig *t, enum render_trusteeconfig_child i);
struct json_object *render_child_configmap(
	const struct model_trusteeconfig *t, const char *ns, enum render_trusteeconfig_child i);
/* The TLS lines of its kbs-config.toml ("": none), and their hash. */
const char *render_child_tls(const struct model_trusteeconfig *t);
void render_child_tls_hash(const struct model_trusteeconfig *t, char hex[SHA256_HEX_LEN + 1]);

/* For a copy: the name of its source Secret, and the key in it. */
const char *render_child_source(
	const struct model_trusteeconfig *t, enum render_trusteeconfig_child i);
const char *render_child_source_key(enum render_trusteeconfig_child i);
/* The text of a Secret to create. value: for its key (AUTH: the private one; SAMPLE: NULL);
 * public_pem: for AUTH only; made: annotation. */
struct secret *render_child_secret(const struct model_trusteeconfig *t, const char *ns,
	enum render_trusteeconfig_child i, const struct secret *value, const char *public_pem,
	const char *made);
struct json_object *render_child_claim(const struct model_trusteeconfig *t, const char *ns);

/* The change of the KbsConfig as a merge patch {"metadata":...,"spec":...}; NULL: nothing to
 * change. Keeps what users may set: replicas, other variables, resources and certificates,
 * another claim. have NULL: it does not exist yet, and the result is the whole object. */
struct json_object *render_child_kbsconfig(
	const struct model_trusteeconfig *t, const char *ns, const struct model_kbsconfig *have);

#endif
