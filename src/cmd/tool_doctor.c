/* SPDX-License-Identifier: MIT */
/*
 * tecctl doctor: checks from the kubeconfig to Trustee, in the order in which each depends on the
 * one before. If a check fails, those that need it are left out.
 *
 * kubeconfig and API server -> user -> kinds -> rights -> Lease, Deployment and observed generation
 * -> conditions of the cluster -> certificates -> images.
 *
 * The functions tool_check_*() and tool_findings_*() also serve tecctl bootstrap check and the
 * commands of a handover.
 */
#include "config.h"

#include "tool.h"
#include "tool_secret.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/show/finding.h"
#include "tec/show/text.h"

#define GROUP "trusted-execution-clusters.io"

struct doctor {
	struct tool *t;
	struct show_findings f;
};

/* ---- findings */

/* Printed at once: a check of an unreachable server can take long. */
static void print(void *arg, struct json_object *finding)
{
	const struct tool *t = arg;
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	show_finding_line(finding, t->colours, &line);
	puts(strbuf_str(&line));
	fflush(stdout);
}

int tool_findings_start(struct tool *t, struct show_findings *f, struct err *err)
{
	if (t->output == TOOL_NAME)
		return err_set(
			err, ERR_INVALID, "option --output: name is only available for lists");
	show_findings_init(f);
	f->said = t->output == TOOL_TEXT ? print : NULL;
	f->arg = t;
	return 0;
}

/* Exit status 1 if any finding is "no"; notes do not count. */
int tool_findings_end(struct tool *t, struct show_findings *f, int rc)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (rc == 0 && t->output == TOOL_YAML)
		show_yaml(&out, f->all);
	else if (rc == 0 && t->output == TOOL_JSON)
		show_json(&out, f->all);
	fputs(strbuf_str(&out), stdout);
	show_findings_fini(f);
	return rc < 0 ? -1 : f->n_no ? TOOL_FAILED : 0;
}

/* ---- the server */

/* 1: no usable answer, so that nothing else can be checked. -1: interrupted. */
static int check_server(struct doctor *d, struct err *err)
{
	struct tool *t = d->t;
	cleanup_json struct json_object *version = NULL;
	uint64_t start = clock_boot_ms();

	show_found(&d->f, SHOW_IS_OK, "kubeconfig", NULL, "%s, server %s, namespace %s", t->from,
		t->server, t->ns);
	if (tool_ask(t, "GET", "/version", NULL, NULL, &version, err) < 0) {
		if (t->interrupted)
			return -1;
		show_found(&d->f, SHOW_IS_NO, "API server",
			err->kind == ERR_DENIED && !err->http
				? "compare certificate-authority and the server name in the kubeconfig with the server's certificate: openssl s_client -connect HOST:PORT"
			: err->kind == ERR_DENIED
				? "get other credentials; for --standalone=DIR they are in DIR/kubeconfig, or the file of --write-kubeconfig"
				: "check that the server runs and that the address is right",
			"%s", err->text);
		err_clear(err);
		return 1;
	}
	show_found(&d->f, SHOW_IS_OK, "API server", NULL, "%s, answered in %" PRIu64 " ms",
		json_get_str(version, "gitVersion") ? json_get_str(version, "gitVersion") : "?",
		clock_boot_ms() - start);
	return 0;
}

/* Who the server takes us for. */
static void check_user(struct doctor *d, struct err *err)
{
	cleanup_json struct json_object *ask = json_obj(), *answer = NULL;

	json_add_str(json_add_str(ask, "apiVersion", "authentication.k8s.io/v1"), "kind",
		"SelfSubjectReview");
	if (tool_ask(d->t, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		    "application/json", ask, &answer, err) == 0)
		show_found(&d->f, SHOW_IS_OK, "user", NULL, "%s",
			json_get_str(answer, "status/userInfo/username")
				? json_get_str(answer, "status/userInfo/username")
				: "?");
	else if (err->kind == ERR_DENIED)
		show_found(&d->f, SHOW_IS_NO, "user",
			"get other credentials; for --standalone=DIR they are in DIR/kubeconfig, or the file of --write-kubeconfig",
			"%s", err->text);
	err_clear(err); /* servers before Kubernetes 1.28 do not have this API */
}

/* By its plural, in an APIResourceList. */
static bool has_resource(struct json_object *list, const char *name)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(list, i), "name"), name))
			return true;
	return false;
}

/* false: a kind is missing, so that nothing else can be checked. */
static bool check_kinds(struct doctor *d, struct err *err)
{
	static const struct kobj_gvk *const kinds[] = {
		&kobj_cluster, &kobj_machine, &kobj_ak, &kobj_image};
	cleanup_json struct json_object *answer = NULL;
	cleanup_strbuf struct strbuf missing = STRBUF_INIT;

	if (tool_ask(d->t, "GET", "/apis/" GROUP "/v1alpha1", NULL, NULL, &answer, err) < 0 &&
		err->kind != ERR_NOT_FOUND) {
		show_found(&d->f, SHOW_IS_NO, "kinds", NULL, "%s", err->text);
		err_clear(err);
		return false;
	}
	err_clear(err);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!has_resource(json_get_arr(answer, "resources"), kinds[i]->plural))
			strbuf_addf(&missing, "%s%s", missing.len ? ", " : "", kinds[i]->plural);
	if (missing.len)
		show_found(&d->f, SHOW_IS_NO, "kinds", "kubectl apply -k crd/",
			"the server has no resource %s", strbuf_str(&missing));
	else
		show_found(&d->f, SHOW_IS_OK, "kinds", NULL, "all four are defined");
	return !missing.len;
}

/* ---- rights */

/* SelfSubjectAccessReview (authorization.k8s.io/v1): every authenticated user may ask it. */
bool tool_may(struct tool *t, const struct kobj_gvk *gvk, const char *verb, struct err *err)
{
	cleanup_json struct json_object *ask = json_obj(), *answer = NULL;
	struct json_object *what = json_obj();

	json_add_str(json_add_str(ask, "apiVersion", "authorization.k8s.io/v1"), "kind",
		"SelfSubjectAccessReview");
	json_add_str(json_add_str(what, "namespace", t->ns), "verb", verb);
	json_add_str(json_add_str(what, "group", gvk->group), "resource", gvk->plural);
	json_add(ask, "spec", json_add(json_obj(), "resourceAttributes", what));
	if (tool_ask(t, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		    "application/json", ask, &answer, err) < 0)
		return false;
	return json_get_bool(answer, "status/allowed", false);
}

/* Ask for the rights that commands need. Without the first four nothing can be shown; the
 * others are notes. */
static void check_rights(struct doctor *d, struct err *err)
{
	static const struct {
		const struct kobj_gvk *gvk;
		const char *verb, *commands;
		enum show_is without;
	} rights[] = {
		{&kobj_cluster, "list", "status", SHOW_IS_NO},
		{&kobj_machine, "list", "status, machine list", SHOW_IS_NO},
		{&kobj_ak, "list", "status, approve", SHOW_IS_NO},
		{&kobj_image, "list", "status, image list", SHOW_IS_NO},
		{&kobj_configmap, "get", "image explain", SHOW_IS_NOTE},
		{&kobj_event, "list", "why", SHOW_IS_NOTE},
		{&kobj_ak, "patch", "approve", SHOW_IS_NOTE},
		{&kobj_ak, "delete", "deny, rebind", SHOW_IS_NOTE},
		{&kobj_machine, "delete", "machine delete", SHOW_IS_NOTE},
		{&kobj_image, "create", "image approve", SHOW_IS_NOTE},
	};
	unsigned have = 0;

	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		if (tool_may(d->t, rights[i].gvk, rights[i].verb, err)) {
			have++;
			continue;
		}
		if (err_is_set(err)) {
			show_found(&d->f, SHOW_IS_NOTE, "rights", NULL, "unknown: %s", err->text);
			err_clear(err);
			return;
		}
		show_found(&d->f, rights[i].without, "rights",
			"if you need this, ask an administrator for a Role that allows it",
			"may not %s %s in namespace %s, needed by: %s", rights[i].verb,
			rights[i].gvk->plural, d->t->ns, rights[i].commands);
	}
	if (have)
		show_found(&d->f, SHOW_IS_OK, "rights", NULL, "%u of %zu", have, ARRAY_LEN(rights));
}

/* ---- the operator */

/* A Lease that was not renewed within its duration has no holder, whatever it says; but a wrong
 * clock looks the same. */
static void check_lease(struct tool *t, struct show_findings *f, struct err *err)
{
	cleanup_json struct json_object *lease = tool_get(t, &kobj_lease, "tec-operator", err);
	const char *text = json_get_str(lease, "spec/renewTime"),
		   *holder = json_get_str(lease, "spec/holderIdentity");
	int64_t us, age;

	if (!lease && err->kind == ERR_NOT_FOUND)
		show_found(f, SHOW_IS_NOTE, "leader", NULL,
			"no Lease found: tec-operator --standalone and --leader-elect=false have none");
	else if (!lease)
		show_found(f, SHOW_IS_NOTE, "leader", NULL, "unknown: %s", err->text);
	else if (!holder || !*holder || !text || clock_parse(text, &us) < 0)
		show_found(f, SHOW_IS_NO, "leader", "kubectl get pods: check that an operator runs",
			"no process holds the Lease tec-operator");
	else if ((age = clock_wall_s() - us / 1000000) >
		 json_get_int(lease, "spec/leaseDurationSeconds", 15))
		show_found(f, SHOW_IS_NO, "leader",
			"kubectl get pods: check that an operator runs; also compare the clocks",
			"%s renewed the Lease %" PRId64 " s ago, and it has expired", holder, age);
	else
		show_found(f, SHOW_IS_OK, "leader", NULL, "%s", holder);
	err_clear(err);
}

/* The Deployment is optional: the operator may run elsewhere, or standalone. */
void tool_check_operator(
	struct tool *t, struct show_findings *f, struct json_object *cluster, struct err *err)
{
	cleanup_json struct json_object *o = NULL;
	int64_t ready, want;

	check_lease(t, f, err);
	o = tool_get(t, &kobj_deployment, "tec-operator", err);
	ready = json_get_int(o, "status/readyReplicas", 0);
	want = json_get_int(o, "spec/replicas", 1);
	if (o)
		show_found(f, ready > 0 ? SHOW_IS_OK : SHOW_IS_NO, "operator",
			ready > 0 ? NULL : "kubectl describe deployment tec-operator",
			"%" PRId64 " of %" PRId64 " Pods are ready", ready, want);
	err_clear(err);
	show_found_observed(f, cluster);
}

/* ---- the cluster */

/* A Secret that may not be read is a note, as the operator may well read it. */
bool tool_check_certificate(struct tool *t, struct show_findings *f, const char *name,
	const char *what, struct strbuf *pem, struct err *err)
{
	int64_t end;

	if (!name) {
		show_found(f, SHOW_IS_NOTE, what,
			"for TLS, name a Secret with a certificate in spec",
			"plain HTTP: spec names no Secret");
		return false;
	}
	if (tool_secret_member(t, name, "tls.crt", pem, err) < 0 ||
		pki_cert_not_after(strbuf_str(pem), pem->len, &end, err) < 0) {
		show_found(f, err->kind == ERR_DENIED ? SHOW_IS_NOTE : SHOW_IS_NO, what,
			err->kind == ERR_DENIED ? NULL
						: "put tls.crt, tls.key and ca.crt into the Secret",
			"%s", err->text);
		err_clear(err);
		return false;
	}
	show_found_end(f, what, name, end, clock_wall_s());
	return true;
}

/* Operator, conditions, certificates, images: what makes nodes get their keys. */
static void check_cluster(struct doctor *d, const struct show_world *w, struct err *err)
{
	static const struct {
		const char *field, *what;
	} secrets[] = {{"spec/trusteeSecret", "TLS of Trustee"},
		{"spec/registerServerSecret", "TLS of /ignition"},
		{"spec/attestationKeyRegisterSecret", "TLS of /register-ak"}};
	struct json_object *cluster = show_cluster(w);
	size_t good = 0;

	if (w->list[SHOW_CLUSTER].problem) {
		show_found(&d->f, SHOW_IS_NO, "cluster", NULL, "%s", w->list[SHOW_CLUSTER].problem);
		return;
	}
	if (!cluster) {
		show_found(&d->f, SHOW_IS_NO, "cluster",
			"apply one (k8s/samples), or give its namespace with -n",
			"no TrustedExecutionCluster in namespace %s", d->t->ns);
		return;
	}
	tool_check_operator(d->t, &d->f, cluster, err);
	for (size_t i = 0; i < CLUSTER_N_CONDS; i++)
		show_found_condition(&d->f, cluster, model_cluster_cond_types[i]);
	for (size_t i = 0; i < ARRAY_LEN(secrets) && !d->t->interrupted; i++) {
		cleanup_strbuf struct strbuf pem = STRBUF_INIT;

		(void)tool_check_certificate(d->t, &d->f, json_get_str(cluster, secrets[i].field),
			secrets[i].what, &pem, err);
	}
	for (size_t i = 0; i < w->list[SHOW_IMAGE].n; i++)
		good += show_is_true(w->list[SHOW_IMAGE].v[i], "Committed");
	if (!w->list[SHOW_IMAGE].problem)
		show_found(&d->f, good ? SHOW_IS_OK : SHOW_IS_NO, "images",
			good ? NULL : "tecctl image approve; until then every boot is refused",
			"%zu of %zu approved images are in force", good, w->list[SHOW_IMAGE].n);
}

/* Stop at the first check without which the next ones cannot work. */
static int check_all(struct doctor *d, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	int rc = check_server(d, err);

	if (rc != 0)
		return rc < 0 ? -1 : 0;
	check_user(d, err);
	if (!check_kinds(d, err))
		return 0;
	check_rights(d, err);
	if (tool_load(d->t, 1u << SHOW_CLUSTER | 1u << SHOW_IMAGE, &w, err) < 0 &&
		d->t->interrupted)
		return -1;
	err_clear(err);
	check_cluster(d, &w, err);
	return d->t->interrupted ? err_set(err, ERR_TRANSIENT, "interrupted") : 0;
}

int tool_doctor(struct tool *t, struct err *err)
{
	struct doctor d = {.t = t};
	int rc;

	if (tool_findings_start(t, &d.f, err) < 0)
		return -1;
	rc = check_all(&d, err);
	return tool_findings_end(t, &d.f, rc);
}
