/* SPDX-License-Identifier: MIT */
/*
 * What Trustee's own installation consists of: model in, JSON out, ready
 * for server-side apply (apiVersion, kind, metadata with name, namespace, owner and render-hash).
 * The caller puts every result. Policies and kbs-config.toml come from etc/, compiled in.
 */
#ifndef TEC_RENDER_TRUSTEE_H
#define TEC_RENDER_TRUSTEE_H

#include <json-c/json.h>

#include "tec/base/secret.h"
#include "tec/model/cluster.h"
#include "tec/render/token.h"

struct render_images {
	const char *trustee, *operator_,
		*compute_pcrs; /* RELATED_IMAGE_*; never NULL: defaults in render_images_default */
	const char *
		rate_limit; /* the operator's own, for the guard's node listener; NULL: its default */
};
extern const struct render_images render_images_default;

/*
 * What restarts Trustee besides its image and its config: it reads its certificates at its start
 * only (that of TLS is the guard's, where there is one, and restarts nothing). Each becomes an annotation of the Pod template, or none when the hash is NULL. So a hash
 * that was known and cannot be had any more is passed on as it was: leaving it out is a restart.
 */
struct render_trustee_inputs {
	const char *tls_hash; /* of the content of trusteeSecret */
	/* render_token_plan.use; none: trustee-token, of which no hash is known. */
	const struct render_token_signer *signers;
	unsigned n_signers;
};

/* ConfigMap: kbs-config.toml */
struct json_object *render_trustee_data(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in);
/* ConfigMap: the two policies, by keyIsolation and pcr7; and their texts */
struct json_object *render_trustee_policies(const struct model_cluster *c, const char *ns);
const char *render_trustee_attestation_policy(const struct model_cluster *c);
const char *render_trustee_resource_policy(const struct model_cluster *c);
struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns);
/* The guard's port for the operator alone, where there is one: with the guard, and delivery by the
 * admin API. */
#define RENDER_TRUSTEE_ADMIN_PORT 8082
static inline bool render_trustee_has_admin_service(const struct model_cluster *c)
{
	return model_cluster_guarded(c) && c->delivery == MODEL_DELIVERY_ADMIN_API;
}
struct json_object *render_trustee_admin_service(const struct model_cluster *c, const char *ns);
struct json_object *render_trustee_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in);
/* The two as they stand in a Deployment: what was known when it was written. Borrowed; NULL: not
 * there. */
const char *render_trustee_tls_hash(struct json_object *deployment);
const char *render_trustee_token_hash(struct json_object *deployment);
/*
 * Has the Deployment the mounts of the Rust operator? Applying ours over it would keep them (they
 * have another manager), and with them volumes whose Secrets go away: it is deleted and created
 * again. Judged by paths that ours never has, so that what people or webhooks add is left alone.
 */
bool render_trustee_deployment_is_foreign(struct json_object *deployment);
/* Created once and never repaired: `[]` and `{}`; image-pcrs has no owner. */
struct json_object *render_rv_data(const struct model_cluster *c, const char *ns);
struct json_object *render_image_pcrs(const char *ns);
/* POST bodies of the two Secrets, as secrets: trustee-auth from an Ed25519 key, and a token signer
 * (called as render_token_plan says) from a P-256 key and its certificate. */
struct secret *render_auth_secret(const struct model_cluster *c, const char *ns,
	const struct secret *private_pem, const char *public_pem);
struct secret *render_token_secret(const struct model_cluster *c, const char *ns, const char *name,
	const struct secret *key_pem, const char *cert_pem);

/* Texts compiled in from etc/. */
/* "tpm.rego", "tpm-pcr7.rego" (render/etc.h), ...; NULL if unknown. */
const char *render_etc(const char *file_name);

#endif
