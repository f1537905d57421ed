/* SPDX-License-Identifier: MIT */
/*
 * Trustee v0.17 and older: everything it serves is a file in its Pod, so
 * the Pod template lists every Machine and every approved key, and each change is a restart. The
 * same names of objects as for delivery by the admin API, in place of what render/trustee.h makes.
 * Same input, same bytes. The caller puts every result.
 */
#ifndef TEC_RENDER_VOLUMES_H
#define TEC_RENDER_VOLUMES_H

#include "tec/model/pod.h"
#include "tec/base/err.h"
#include "tec/render/trustee.h"

#define RENDER_VOLUMES_REPOSITORY "/opt/trustee/storage/kbs-repository"
#define RENDER_VOLUMES_AK_DIR     "/etc/tpm/trusted_ak_keys"
#define RENDER_VOLUMES_AK_VOLUME  "trusted-ak-keys"
/*
 * What the API server stores at most. It counts its notes on who owns each volume and mount as
 * well: 317 bytes per Machine on 1.34, where 2,103 Machines with keys and 2,700 without were taken,
 * 2,600 and 3,050 were not.
 */
#define RENDER_VOLUMES_MAX_BYTES   (1536 * 1024)
#define RENDER_VOLUMES_OWNED_BYTES 320

struct render_volumes {
	const char *const *machines; /* ids; the Secret with the key is called so */
	size_t n_machines;
	const char *const *aks; /* names of approved AttestationKeys; their Secret is called so */
	size_t n_aks;
	/* Of what these files say; NULL: not known. Becomes an annotation of the Pod template, so
	 * that another content of the same files is a restart, and every Pod tells what it was
	 * started with. */
	const char *contents;
};

struct json_object *render_trustee_data_volumes(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in);
struct json_object *render_trustee_policies_volumes(const struct model_cluster *c, const char *ns);
const char *render_volumes_attestation_policy(const struct model_cluster *c); /* its text */
/*
 * Both lists are sorted (strcmp) without duplicates, else ERR_BUG; an id that is not a UUID is
 * ERR_INVALID, as is one that would be stored in more than RENDER_VOLUMES_MAX_BYTES: that text says
 * how many Machines fit and names AdminAPI. A Secret that is gone by the time the Pod starts does
 * not hold it up.
 */
struct json_object *render_trustee_deployment_volumes(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v, struct err *err) MUST_CHECK;

/* The inverse: what a Deployment mounts. Sorted, without duplicates. Owned strings. */
struct render_volumes_list {
	char **machines, **aks;
	size_t n_machines, n_aks;
	char *contents; /* NULL: none is noted */
};
#define RENDER_VOLUMES_LIST_INIT                                                                   \
	{                                                                                          \
		.n_machines = 0                                                                    \
	}
void render_volumes_list_fini(struct render_volumes_list *l);
#define cleanup_volumes_list __attribute__((cleanup(render_volumes_list_fini)))
void render_volumes_list_add_machine(struct render_volumes_list *l, const char *id);
void render_volumes_list_add_ak(struct render_volumes_list *l, const char *name);
void render_volumes_list_sort(struct render_volumes_list *l); /* after the last add */
bool render_volumes_has_machine(const struct render_volumes_list *l, const char *id);
bool render_volumes_has_ak(const struct render_volumes_list *l, const char *name);
/* Borrows from l. */
struct render_volumes render_volumes_of(const struct render_volumes_list *l);
/* False: the Deployment is not one of delivery by volumes, and *out is empty. */
bool render_volumes_read(struct json_object *deployment, struct render_volumes_list *out);

#endif
