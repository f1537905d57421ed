/* SPDX-License-Identifier: MIT */
/* The kinds this system speaks about, as constants, and their API paths (Kubernetes API
 * conventions, "resource names"). */
#ifndef TEC_KOBJ_GVK_H
#define TEC_KOBJ_GVK_H

#include <stdbool.h>

#include "tec/base/str.h"

struct kobj_gvk {
	const char *group; /* "" for core */
	const char *version;
	const char *kind;
	const char *plural;
};

extern const struct kobj_gvk kobj_cluster; /* TrustedExecutionCluster */
extern const struct kobj_gvk kobj_machine;
extern const struct kobj_gvk kobj_ak;    /* AttestationKey */
extern const struct kobj_gvk kobj_image; /* ApprovedImage */
extern const struct kobj_gvk kobj_secret, kobj_configmap, kobj_service, kobj_pod;
extern const struct kobj_gvk kobj_deployment, kobj_job, kobj_lease, kobj_event;

/* "group/version" or "version" into out. */
void kobj_api_version(const struct kobj_gvk *gvk, struct strbuf *out);
/* /apis/G/V/namespaces/NS/PLURAL[/NAME[/SUB]]; name and sub may be NULL. Segments are
 * percent-encoded. */
void kobj_path(const struct kobj_gvk *gvk, const char *ns, const char *name, const char *sub,
	struct strbuf *out);

#endif
