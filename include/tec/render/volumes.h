/* SPDX-License-Identifier: MIT */
/*
 * Trustee v0.17 and older: everything it serves is a file in its Pod, so the Pod template lists
 * every Machine and every approved key, and each change is a restart. Makes objects of the same
 * names as render/trustee.h, which it replaces. The same input gives the same bytes. The caller
 * puts every result.
 */
#ifndef TEC_RENDER_VOLUMES_H
#define TEC_RENDER_VOLUMES_H

#include "tec/model/pod.h"
#include "tec/base/err.h"
#include "tec/render/trustee.h"

#define RENDER_VOLUMES_REPOSITORY "/opt/trustee/storage/kbs-repository"
#define RENDER_VOLUMES_AK_DIR     "/etc/tpm/trusted_ak_keys"
#define RENDER_VOLUMES_AK_VOLUME  "trusted-ak-keys"
/* The largest object that the API server stores. Its managedFields count as well: 317 bytes per
 * Machine on 1.34, where 2,103 Machines with keys and 2,700 without were accepted, 2,600 and
 * 3,050 were not. */
#define RENDER_VOLUMES_MAX_BYTES   (1536 * 1024)
#define RENDER_VOLUMES_OWNED_BYTES 320

/* Names of Secrets. A list is sorted and without duplicates once it is complete. */
struct render_names {
	const char **v; /* owned, and the names, too */
	size_t n;
};
void render_names_add(struct render_names *l, const char *name);
bool render_names_have(const struct render_names *l, const char *name); /* l is complete */

/* What Trustee mounts. Owned. */
struct render_volumes {
	struct render_names machines; /* ids */
	struct render_names aks;      /* approved AttestationKeys */
	/* Hashes of the files' contents; NULL: unknown. Becomes an annotation of the Pod
	 * template, so that a change of content is a restart, and every Pod records what it was
	 * started with. */
	char *contents;
};
#define RENDER_VOLUMES_INIT                                                                        \
	{                                                                                          \
		.contents = NULL                                                                   \
	}
void render_volumes_fini(struct render_volumes *v); /* empties it */
#define cleanup_volumes __attribute__((cleanup(render_volumes_fini)))
void render_volumes_sort(struct render_volumes *v); /* after the last addition */

/*
 * Both lists must be sorted (strcmp) without duplicates, otherwise ERR_BUG. ERR_INVALID: an id
 * is not a UUID, or the object would exceed RENDER_VOLUMES_MAX_BYTES; that message says how many
 * Machines fit and recommends AdminAPI. A Secret deleted before the Pod starts does not block
 * it.
 */
struct json_object *render_trustee_deployment_volumes(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v, struct err *err) MUST_CHECK;

/* The inverse: read what a Deployment mounts. False: the Deployment does not use delivery by volumes, and *out is empty. */
bool render_volumes_read(struct json_object *deployment, struct render_volumes *out);

#endif
