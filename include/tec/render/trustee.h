/* SPDX-License-Identifier: MIT */
/*
 * The objects of Trustee's own installation: model in, JSON out, ready for server-side apply
 * (apiVersion, kind, metadata with name, namespace, owner and render-hash). The caller puts every
 * result. Policies and kbs-config.toml come from etc/, compiled in.
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
		rate_limit; /* of the guard's node listener, as the operator's own; NULL: default */
};
extern const struct render_images render_images_default;

/*
 * Everything that restarts Trustee besides its image and configuration: it reads certificates only
 * at start (with the guard, TLS is the guard's and restarts nothing). Each hash becomes an
 * annotation of the Pod template; NULL: no annotation. A hash that was known and is unavailable now
 * must therefore be passed on unchanged: omitting it restarts Trustee.
 */
struct render_trustee_inputs {
	const char *tls_hash; /* of the content of trusteeSecret */
	/* From render_token_plan.use; none: trustee-token without a known hash. */
	const struct render_token_signer *signers;
	unsigned n_signers;
};

/* ConfigMap: kbs-config.toml, for the delivery of the cluster */
struct json_object *render_trustee_data(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in);
/* ConfigMap with both policies, by delivery, keyIsolation and pcr7; and the two texts. */
struct json_object *render_trustee_policies(const struct model_cluster *c, const char *ns);
const char *render_trustee_attestation_policy(const struct model_cluster *c);
const char *render_trustee_resource_policy(const struct model_cluster *c);
struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns);
/* The guard's port for the operator only. It exists with the guard and delivery by the admin
 * API. */
#define RENDER_TRUSTEE_ADMIN_PORT 8082
static inline bool render_trustee_has_admin_service(const struct model_cluster *c)
{
	return model_cluster_guarded(c) && c->delivery == MODEL_DELIVERY_ADMIN_API;
}
struct json_object *render_trustee_admin_service(const struct model_cluster *c, const char *ns);
struct json_object *render_trustee_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in);
/* Both hashes as stored in a Deployment. Borrowed; NULL: absent. */
const char *render_trustee_tls_hash(struct json_object *deployment);
const char *render_trustee_token_hash(struct json_object *deployment);
/*
 * Whether the Deployment has the mounts of the Rust operator. Applying ours over it would keep them
 * (they have another field manager) and thereby volumes whose Secrets are removed: it must be
 * deleted and created again. Judged by paths that ours never has, so additions by users or webhooks
 * do not matter.
 */
bool render_trustee_deployment_is_foreign(struct json_object *deployment);
/* Created once and never repaired: `[]` and `{}`; image-pcrs has no owner. */
struct json_object *render_rv_data(const struct model_cluster *c, const char *ns);
struct json_object *render_image_pcrs(const char *ns);
/* The bodies of a create, as secrets: trustee-auth from an Ed25519 key, and a token signer
 * (named by render_token_plan) from a P-256 key and its certificate. */
struct secret *render_auth_secret(const struct model_cluster *c, const char *ns,
	const struct secret *private_pem, const char *public_pem);
struct secret *render_token_secret(const struct model_cluster *c, const char *ns, const char *name,
	const struct secret *key_pem, const char *cert_pem);

/* The text of the attestation policy with delivery by volumes. */
const char *render_trustee_volumes_policy(const struct model_cluster *c);
/* The text of a file compiled in from etc/: "tpm.rego", "tpm-pcr7.rego" (render/etc.h), ...; NULL:
 * unknown name. */
const char *render_etc(const char *file_name);

#endif
