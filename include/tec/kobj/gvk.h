/* SPDX-License-Identifier: MIT */
/* The kinds that this system uses, as constants, and their API paths (Kubernetes API conventions,
 * "resource names"). */
#ifndef TEC_KOBJ_GVK_H
#define TEC_KOBJ_GVK_H

#include <stdbool.h>

#include "tec/base/str.h"

/*
 * The members that this system reads from maps with client-chosen names, and from large parts of
 * which it needs little. k8s/split removes all other members from what the API sends before the size
 * is checked and the text is parsed. So additions by others cannot make an object of ours too large
 * to read, and an object costs only what is kept. A list ends with NULL; an entry that ends in '*'
 * matches every name with that prefix. A list that is NULL keeps all members.
 */
struct kobj_keep {
	const char *const *labels, *const *annotations;
	const char *const *data;   /* in data, binaryData and stringData */
	const char *const *owners; /* in each of ownerReferences; a uid over 127 bytes is removed */
	const char *const *spec, *const *status;
	bool managed; /* metadata.managedFields, half of most objects */
};

struct kobj_gvk {
	const char *group; /* "" for core */
	const char *version;
	const char *kind;
	const char *plural;
	const struct kobj_keep *keep;
};

extern const struct kobj_gvk kobj_cluster; /* TrustedExecutionCluster */
extern const struct kobj_gvk kobj_machine;
extern const struct kobj_gvk kobj_ak;    /* AttestationKey */
extern const struct kobj_gvk kobj_image; /* ApprovedImage */
extern const struct kobj_gvk kobj_secret, kobj_configmap, kobj_service, kobj_pod;
extern const struct kobj_gvk kobj_deployment, kobj_job, kobj_lease, kobj_event;
extern const struct kobj_gvk kobj_kbsconfig, kobj_trusteeconfig; /* of Trustee's own operator */
extern const struct kobj_gvk kobj_claim;                         /* PersistentVolumeClaim */
/* Secrets and ConfigMaps that a KbsConfig may reference: every key of data is read, nothing else. */
extern const struct kobj_gvk kobj_input_secret, kobj_input_configmap;
/* A Deployment as model/plain reads it: without the Pod template. */
extern const struct kobj_gvk kobj_plain_deployment;

/* True if the list keeps a member of this name; name need not be NUL-terminated. */
bool kobj_keeps(const char *const *list, const char *name, size_t len);
/* Append "group/version", or "version" for the core group. */
void kobj_api_version(const struct kobj_gvk *gvk, struct strbuf *out);
/* /apis/G/V/namespaces/NS/PLURAL[/NAME[/SUB]]; name and sub may be NULL. Segments are
 * percent-encoded. */
void kobj_path(const struct kobj_gvk *gvk, const char *ns, const char *name, const char *sub,
	struct strbuf *out);

#endif
