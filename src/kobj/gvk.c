/* SPDX-License-Identifier: MIT */
/* The table of kinds. A path is built from it only, so that no name from outside can reach another
 * resource: segments are encoded. */
#include "config.h"

#include "tec/kobj/gvk.h"

#define OURS "trusted-execution-clusters.io"

const struct kobj_gvk kobj_cluster = {
	OURS, "v1alpha1", "TrustedExecutionCluster", "trustedexecutionclusters"};
const struct kobj_gvk kobj_machine = {OURS, "v1alpha1", "Machine", "machines"};
const struct kobj_gvk kobj_ak = {OURS, "v1alpha1", "AttestationKey", "attestationkeys"};
const struct kobj_gvk kobj_image = {OURS, "v1alpha1", "ApprovedImage", "approvedimages"};
const struct kobj_gvk kobj_secret = {"", "v1", "Secret", "secrets"};
const struct kobj_gvk kobj_configmap = {"", "v1", "ConfigMap", "configmaps"};
const struct kobj_gvk kobj_service = {"", "v1", "Service", "services"};
const struct kobj_gvk kobj_pod = {"", "v1", "Pod", "pods"};
const struct kobj_gvk kobj_deployment = {"apps", "v1", "Deployment", "deployments"};
const struct kobj_gvk kobj_job = {"batch", "v1", "Job", "jobs"};
const struct kobj_gvk kobj_lease = {"coordination.k8s.io", "v1", "Lease", "leases"};
const struct kobj_gvk kobj_event = {"events.k8s.io", "v1", "Event", "events"};

void kobj_api_version(const struct kobj_gvk *gvk, struct strbuf *out)
{
	if (gvk->group[0])
		strbuf_addf(out, "%s/", gvk->group);
	strbuf_adds(out, gvk->version);
}

static void segment(struct strbuf *out, const char *s)
{
	strbuf_addc(out, '/');
	str_percent_encode(out, s, strlen(s));
}

void kobj_path(const struct kobj_gvk *gvk, const char *ns, const char *name, const char *sub,
	struct strbuf *out)
{
	strbuf_adds(out, gvk->group[0] ? "/apis/" : "/api/");
	kobj_api_version(gvk, out);
	strbuf_adds(out, "/namespaces");
	segment(out, ns);
	segment(out, gvk->plural);
	if (!name)
		return;
	segment(out, name);
	if (sub)
		segment(out, sub);
}
