/* SPDX-License-Identifier: MIT */
/*
 * tecctl doctor: checks from the kubeconfig to Trustee, in the order in which each depends on the
 * one before. If a check fails, those that need it are left out.
 *
 * kubeconfig and API server -> user -> kinds -> rights -> Lease, Deployment and observed generation
 * -> conditions of the cluster -> certificates -> images.
 */
#include "config.h"

#include "tool.h"
#include "tool_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/cluster.h"

#define GROUP "trusted-execution-clusters.io"
#define OTHER_CREDENTIALS                                                                          \
	"get other credentials; for --standalone=DIR they are in DIR/kubeconfig, or the file of --write-kubeconfig"

/* ---- the server */

/* 1: no usable answer, so that nothing else can be checked. -1: interrupted. */
static int check_server(struct tool *t, struct report_findings *f, struct err *err)
{
	cleanup_json struct json_object *version = NULL;
	uint64_t start = clock_boot_ms();

	report_found(f, REPORT_IS_OK, "kubeconfig", NULL, "%s, server %s, namespace %s", t->from,
		t->server, t->ns);
	if (tool_ask(t, "GET", "/version", NULL, NULL, &version, err) < 0) {
		if (t->interrupted)
			return -1;
		report_found(f, REPORT_IS_NO, "API server",
			err->kind == ERR_DENIED && !err->http
				? "compare certificate-authority and the server name in the kubeconfig with the server's certificate: openssl s_client -connect HOST:PORT"
			: err->kind == ERR_DENIED
				? OTHER_CREDENTIALS
				: "check that the server runs and that the address is right",
			"%s", err->text);
		err_clear(err);
		return 1;
	}
	report_found(f, REPORT_IS_OK, "API server", NULL, "%s, answered in %" PRIu64 " ms",
		json_get_str(version, "gitVersion") ? json_get_str(version, "gitVersion") : "?",
		clock_boot_ms() - start);
	return 0;
}

/* ---- rights */

/* Ask for the rights that commands need. Without the first four nothing can be shown; the
 * others are notes. */
static void check_rights(struct tool *t, struct report_findings *f, struct err *err)
{
	static const struct {
		const struct kobj_gvk *gvk;
		const char *verb, *commands;
		enum report_is without;
	} rights[] = {
		{&kobj_cluster, "list", "status", REPORT_IS_NO},
		{&kobj_machine, "list", "status, machine list", REPORT_IS_NO},
		{&kobj_ak, "list", "status, approve", REPORT_IS_NO},
		{&kobj_image, "list", "status, image list", REPORT_IS_NO},
		{&kobj_configmap, "get", "image explain", REPORT_IS_NOTE},
		{&kobj_event, "list", "why", REPORT_IS_NOTE},
		{&kobj_ak, "patch", "approve", REPORT_IS_NOTE},
		{&kobj_ak, "delete", "deny, rebind", REPORT_IS_NOTE},
		{&kobj_machine, "delete", "machine delete", REPORT_IS_NOTE},
		{&kobj_image, "create", "image approve", REPORT_IS_NOTE},
		{&kobj_cluster, "patch", "server lost", REPORT_IS_NOTE},
	};
	unsigned have = 0;

	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		if (tool_may(t, rights[i].gvk, rights[i].verb, err)) {
			have++;
			continue;
		}
		if (err_is_set(err)) {
			report_found(f, REPORT_IS_NOTE, "rights", NULL, "unknown: %s", err->text);
			err_clear(err);
			return;
		}
		report_found(f, rights[i].without, "rights",
			"if you need this, ask an administrator for a Role that allows it",
			"may not %s %s in namespace %s, needed by: %s", rights[i].verb,
			rights[i].gvk->plural, t->ns, rights[i].commands);
	}
	if (have)
		report_found(f, REPORT_IS_OK, "rights", NULL, "%u of %zu", have, ARRAY_LEN(rights));
}

/* ---- the cluster */

/* The Secrets that the cluster names, as the operator judges them. */
static void check_certificates(
	struct tool *t, struct report_findings *f, struct json_object *cluster, struct err *err)
{
	static const char *const whats[] = {[MODEL_TLS_TRUSTEE] = "TLS of Trustee",
		[MODEL_TLS_REGISTER] = "TLS of /ignition",
		[MODEL_TLS_REGISTER_KEY] = "TLS of /register-ak",
		[MODEL_TLS_SERVERS] = "TLS of trusteeServers"};
	cleanup_kobj const struct kobj *o = model_cluster_extract(cluster, err);
	struct model_tls_use use;

	if (!o) {
		report_found(f, REPORT_IS_NO, "cluster", NULL, "%s", err->text);
		err_clear(err);
		return;
	}
	for (unsigned i = 0; model_tls_use(model_cluster(o), i, &use) && !t->interrupted; i++) {
		const char *what = whats[i < MODEL_TLS_SERVERS ? i : MODEL_TLS_SERVERS];
		cleanup_strbuf struct strbuf pem = STRBUF_INIT;

		(void)tool_check_certificate(t, f, &use, what, &pem, err);
	}
}

/* Operator, conditions, certificates, images: what makes nodes get their keys. */
static void check_cluster(
	struct tool *t, struct report_findings *f, const struct report_world *w, struct err *err)
{
	struct json_object *cluster = report_cluster(w);

	if (w->list[REPORT_CLUSTER].problem) {
		report_found(
			f, REPORT_IS_NO, "cluster", NULL, "%s", w->list[REPORT_CLUSTER].problem);
		return;
	}
	if (!cluster) {
		report_found(f, REPORT_IS_NO, "cluster",
			"apply one (k8s/samples), or give its namespace with -n",
			"no TrustedExecutionCluster in namespace %s", t->ns);
		return;
	}
	tool_check_operator(t, f, cluster, err);
	for (size_t i = 0; i < CLUSTER_N_CONDS; i++)
		report_found_condition(f, cluster, model_cluster_cond_types[i]);
	check_certificates(t, f, cluster, err);
	report_found_images(f, w);
}

/* Stop at the first check without which the next ones cannot work. */
static int check_all(struct tool *t, struct report_findings *f, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_json struct json_object *kinds = NULL;
	cleanup_free char *user = NULL;
	int rc = check_server(t, f, err);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	/* Servers before Kubernetes 1.28 do not tell. */
	user = tool_whoami(t, err);
	if (user)
		report_found(f, REPORT_IS_OK, "user", NULL, "%s", user);
	else if (err->kind == ERR_DENIED)
		report_found(f, REPORT_IS_NO, "user", OTHER_CREDENTIALS, "%s", err->text);
	err_clear(err);
	if (tool_ask(t, "GET", "/apis/" GROUP "/v1alpha1", NULL, NULL, &kinds, err) < 0 &&
		err->kind != ERR_NOT_FOUND) {
		report_found(f, REPORT_IS_NO, "kinds", NULL, "%s", err->text);
		err_clear(err);
		return 0;
	}
	err_clear(err);
	if (!report_found_kinds(f, kinds))
		return 0;
	check_rights(t, f, err);
	if (tool_load(t, 1u << REPORT_CLUSTER | 1u << REPORT_IMAGE, &w, err) < 0 && t->interrupted)
		return -1;
	err_clear(err);
	check_cluster(t, f, &w, err);
	return t->interrupted ? err_set(err, ERR_TRANSIENT, "interrupted") : 0;
}

int tool_doctor(struct tool *t, struct err *err)
{
	struct report_findings f;

	if (tool_findings_start(t, &f, err) < 0)
		return -1;
	return tool_findings_end(t, &f, check_all(t, &f, err));
}
