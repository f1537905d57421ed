/* SPDX-License-Identifier: MIT */
/* The table of kinds. Paths are built only from this table with percent-encoded segments, so that no
 * outside name can address another resource. */
#include "config.h"

#include "tec/kobj/gvk.h"

#include <string.h>

#define OURS "trusted-execution-clusters.io"
#define COCO "confidentialcontainers.org"

/* ---- members read from maps that every client may extend */

static const char *const labels[] = {"app", "app.kubernetes.io/managed-by", "job-name",
	"batch.kubernetes.io/job-name", OURS "/*", NULL};
static const char *const annotations[] = {OURS "/*", NULL};
static const char *const none[] = {NULL};
static const char *const secret_data[] = {"root", "public_key", /* a Machine's, a key's */
	"private.key", "public.pub", "key.pem", "cert.pem",     /* Trustee's */
	"tls.crt", "tls.key", "ca.crt",                         /* certificates */
	"current", "previous", "key",                           /* registration */
	NULL};
static const char *const configmap_data[] = {"kbs-config.toml", "default_cpu.rego",
	"default_gpu.rego", "resource-policy.rego", "image-pcrs.json", "reference-values.json",
	"boot-sets.json", "trustees.json", "deleted",
	/* a platform's UEFI variables, named as in /sys/firmware/efi/efivars and mok-variables */
	"SecureBoot-*", "PK-*", "KEK-*", "db-*", "dbx-*", "MokListRT", "MokListXRT",
	"MokListTrustedRT", "MokSBStateRT", "MokIgnoreDB", "AllowValidationDisabled",
	/* and what its firmware measures besides */
	"dbt-*", "dbr-*", "FirmwareEvents", "AllowFirmwareApplications", NULL};

static const char *const deployment_spec[] = {"replicas", NULL};
static const char *const deployment_status[] = {
	"observedGeneration", "readyReplicas", "updatedReplicas", "replicas", NULL};

static const struct kobj_keep keep_meta = {.labels = labels, .annotations = annotations};
/* kobj/managed.h, k8s/lease.c */
static const struct kobj_keep keep_managed = {
	.labels = labels, .annotations = annotations, .managed = true};
/* neither labels nor annotations of a Secret are read */
static const char *const owner[] = {"uid", "controller", NULL};
static const struct kobj_keep keep_secret = {
	.labels = none, .annotations = none, .data = secret_data, .owners = owner};
static const struct kobj_keep keep_configmap = {
	.labels = labels, .annotations = annotations, .data = configmap_data};
/* the owner of a KbsConfig chooses the keys in the objects that it references */
static const struct kobj_keep keep_input = {
	.labels = none, .annotations = annotations, .owners = owner};
static const struct kobj_keep keep_plain_deployment = {.labels = labels,
	.annotations = annotations,
	.spec = deployment_spec,
	.status = deployment_status};

/* Runs for each member of these maps in every object the API sends, before parsing; the lists are
 * short, so a linear scan is sufficient. */
bool kobj_keeps(const char *const *list, const char *name, size_t len)
{
	for (; *list; list++) {
		size_t n = strlen(*list);

		if ((*list)[n - 1] == '*' ? len >= n - 1 && memcmp(*list, name, n - 1) == 0
					  : len == n && memcmp(*list, name, n) == 0)
			return true;
	}
	return false;
}

/* ---- the kinds */

const struct kobj_gvk kobj_cluster = {
	OURS, "v1alpha1", "TrustedExecutionCluster", "trustedexecutionclusters", &keep_meta};
const struct kobj_gvk kobj_machine = {OURS, "v1alpha1", "Machine", "machines", &keep_meta};
const struct kobj_gvk kobj_ak = {OURS, "v1alpha1", "AttestationKey", "attestationkeys", &keep_meta};
const struct kobj_gvk kobj_image = {
	OURS, "v1alpha1", "ApprovedImage", "approvedimages", &keep_meta};
const struct kobj_gvk kobj_secret = {"", "v1", "Secret", "secrets", &keep_secret};
const struct kobj_gvk kobj_configmap = {"", "v1", "ConfigMap", "configmaps", &keep_configmap};
const struct kobj_gvk kobj_input_secret = {"", "v1", "Secret", "secrets", &keep_input};
const struct kobj_gvk kobj_input_configmap = {"", "v1", "ConfigMap", "configmaps", &keep_input};
const struct kobj_gvk kobj_kbsconfig = {COCO, "v1alpha1", "KbsConfig", "kbsconfigs", &keep_meta};
const struct kobj_gvk kobj_trusteeconfig = {
	COCO, "v1alpha1", "TrusteeConfig", "trusteeconfigs", &keep_meta};
const struct kobj_gvk kobj_claim = {
	"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &keep_meta};
const struct kobj_gvk kobj_service = {"", "v1", "Service", "services", &keep_managed};
const struct kobj_gvk kobj_pod = {"", "v1", "Pod", "pods", &keep_meta};
const struct kobj_gvk kobj_deployment = {"apps", "v1", "Deployment", "deployments", &keep_managed};
const struct kobj_gvk kobj_plain_deployment = {
	"apps", "v1", "Deployment", "deployments", &keep_plain_deployment};
const struct kobj_gvk kobj_job = {"batch", "v1", "Job", "jobs", &keep_meta};
const struct kobj_gvk kobj_lease = {"coordination.k8s.io", "v1", "Lease", "leases", &keep_managed};
const struct kobj_gvk kobj_event = {"events.k8s.io", "v1", "Event", "events", &keep_meta};

void kobj_api_version(const struct kobj_gvk *gvk, struct strbuf *out)
{
	if (gvk->group[0])
		strbuf_addf(out, "%s/", gvk->group);
	strbuf_adds(out, gvk->version);
}

/* Append '/' and one path segment. Encoding matters for names that come from a spec or an
 * annotation and were not validated. */
static void segment(struct strbuf *out, const char *s)
{
	strbuf_addc(out, '/');
	str_percent_encode(out, s, strlen(s));
}

/* ns is NULL for cluster-scoped requests and for lists across namespaces; name is NULL for the
 * collection (list, create). */
void kobj_path(const struct kobj_gvk *gvk, const char *ns, const char *name, const char *sub,
	struct strbuf *out)
{
	strbuf_adds(out, gvk->group[0] ? "/apis/" : "/api/");
	kobj_api_version(gvk, out);
	if (ns) {
		strbuf_adds(out, "/namespaces");
		segment(out, ns);
	}
	segment(out, gvk->plural);
	if (!name)
		return;
	segment(out, name);
	if (sub)
		segment(out, sub);
}
