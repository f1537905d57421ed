/* SPDX-License-Identifier: MIT */
/*
 * What Trustee's own installation consists of (operator.md section 2): model in, JSON out, ready
 * for server-side apply (apiVersion, kind, metadata with name, namespace, owner and render-hash).
 * The caller puts every result. Policies and kbs-config.toml come from etc/, compiled in.
 */
#ifndef TEC_RENDER_TRUSTEE_H
#define TEC_RENDER_TRUSTEE_H

#include <json-c/json.h>

#include "tec/base/secret.h"
#include "tec/model/cluster.h"

struct render_images {
	const char *trustee, *operator_,
		*compute_pcrs; /* RELATED_IMAGE_*; never NULL: defaults in render_images_default */
};
extern const struct render_images render_images_default;

struct json_object *render_trustee_data(
	const struct model_cluster *c, const char *ns); /* ConfigMap: kbs-config.toml */
struct json_object *render_trustee_policies(
	const struct model_cluster *c, const char *ns); /* ConfigMap: the two policies */
struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns);
struct json_object *render_trustee_deployment(
	const struct model_cluster *c, const char *ns, const struct render_images *images);
/* Created once and never repaired: `[]` and `{}`; image-pcrs has no owner. */
struct json_object *render_rv_data(const struct model_cluster *c, const char *ns);
struct json_object *render_image_pcrs(const char *ns);
/* POST bodies of the two Secrets, as secrets: trustee-auth from an Ed25519 key, trustee-token from
 * a P-256 key and its certificate. */
struct secret *render_auth_secret(const struct model_cluster *c, const char *ns,
	const struct secret *private_pem, const char *public_pem);
struct secret *render_token_secret(const struct model_cluster *c, const char *ns,
	const struct secret *key_pem, const char *cert_pem);

/* Texts compiled in from etc/. */
const char *render_etc(const char
		*file_name); /* "tpm.rego", "resource.rego", "kbs-config.toml"; NULL if unknown */

#endif
