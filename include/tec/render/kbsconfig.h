/* SPDX-License-Identifier: MIT */
/*
 * Deployment and Service of a KbsConfig. Mount paths follow from the user's kbs-config.toml
 * (model/kbsfile.h). The same input gives the same bytes. The caller puts every result.
 *
 * A hash in the Pod template covers everything that Trustee reads only at start (configuration,
 * policies, reference values, certificates, keys), so a change of it is a rollout. Resources are
 * not covered: their volume follows the Secrets while Trustee runs. A writable repository is a copy
 * that an init container makes, so the hash covers its Secrets, too.
 */
#ifndef TEC_RENDER_KBSCONFIG_H
#define TEC_RENDER_KBSCONFIG_H

#include <json-c/json.h>

#include "tec/base/str.h"
#include "tec/model/input.h"
#include "tec/model/kbsconfig.h"

#define RENDER_KBSCONFIG_DEPLOYMENT "trustee-deployment"
#define RENDER_KBSCONFIG_SERVICE    "kbs-service"
#define RENDER_KBSCONFIG_HASH       "trusted-execution-clusters.io/content-hash"

/* kbs-config.toml says which Trustee can read it (tec-trustee(7) has the table). */
struct render_kbsconfig_images {
	const char *kbs, *kbs_microservices, *kbs_legacy, *kbs_v0_18, *kbs_v0_20, *as, *rvps,
		*operator_; /* never NULL */
	/* Images that run and are kept, render_kbsconfig_kept(); NULL: none. */
	const char *kept;
};
extern const struct render_kbsconfig_images render_kbsconfig_images_default;

/* Finds the objects that spec may name; find borrows for the call, NULL: not found. */
struct render_kbsconfig_source {
	const struct kobj *(*find)(void *arg, bool secret, const char *name);
	void *arg;
};

/* Whether it can be rendered: KBSCONFIG_IS_INSTALLED, or the reason against it with a message
 * that says what to do. Call the functions below only in the first case. */
enum model_kbsconfig_reason render_kbsconfig_check(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, struct strbuf *why);
struct json_object *render_kbsconfig_deployment(const struct model_kbsconfig *c, const char *ns,
	const struct render_kbsconfig_source *from, const struct render_kbsconfig_images *images);
/* The images of a Deployment that is taken over, as "READER CONTAINER=IMAGE ..."; they are kept while
 * kbs-config.toml is for the same reader. The caller frees it. */
char *render_kbsconfig_kept(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, struct json_object *deployment);
struct json_object *render_kbsconfig_service(const struct model_kbsconfig *c, const char *ns,
	const struct render_kbsconfig_source *from);
/* Whether kbs-config.toml has the current layout (as it or the annotation says) and an [admin] section that Trustee from v0.21
 * rejects. */
bool render_kbsconfig_has_older_admin(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from);

#endif
