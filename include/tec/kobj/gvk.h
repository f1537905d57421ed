/* SPDX-License-Identifier: MIT */
/* The kinds this system speaks about, as constants, and their API paths (Kubernetes API
 * conventions, "resource names"). */
#ifndef TEC_KOBJ_GVK_H
#define TEC_KOBJ_GVK_H

#include <stdbool.h>

#include "tec/base/str.h"

/*
 * The members that are read of maps whose names every client chooses, and of large parts of which
 * little is read. The others are cut out of what the API sends (k8s/split) before it is measured and
 * parsed, so that an object of ours does not become too large to be read by additions to them, and
 * costs what is kept of it. A list ends with NULL; an entry that ends with '*' stands for every name
 * that begins so. A list that is NULL: all members are kept.
 */
struct kobj_keep {
	const char *const *labels, *const *annotations;
	const char *const *data; /* of data, binaryData and stringData */
	const char *const
		*owners; /* of each of ownerReferences; a uid of more than 127 bytes goes */
	const char *const *spec, *const *status;
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
/* Secrets and ConfigMaps that a KbsConfig may name: every key of data is read, nothing else. */
extern const struct kobj_gvk kobj_input_secret, kobj_input_configmap;
/* As model/plain reads it: without its Pods' template. */
extern const struct kobj_gvk kobj_plain_deployment;

/* Is a member of this name kept? name need not be terminated. */
bool kobj_keeps(const char *const *list, const char *name, size_t len);
/* "group/version" or "version" into out. */
void kobj_api_version(const struct kobj_gvk *gvk, struct strbuf *out);
/* /apis/G/V/namespaces/NS/PLURAL[/NAME[/SUB]]; name and sub may be NULL. Segments are
 * percent-encoded. */
void kobj_path(const struct kobj_gvk *gvk, const char *ns, const char *name, const char *sub,
	struct strbuf *out);

#endif
