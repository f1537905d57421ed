/* SPDX-License-Identifier: MIT */
/* Checks that tecctl doctor, tecctl bootstrap check and the commands of a handover share. */
#include "config.h"

#include "tool_check.h"
#include "tool_secret.h"

#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/pki/cert.h"

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
	if (tool_refuse_name(t, err) < 0)
		return -1;
	show_findings_init(f);
	f->said = t->output == TOOL_TEXT ? print : NULL;
	f->arg = t;
	return 0;
}

/* Exit status 1 if any finding is "no"; notes do not count. */
int tool_findings_end(struct tool *t, struct show_findings *f, int rc)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (rc == 0 && t->output != TOOL_TEXT)
		tool_document(t, f->all, &out);
	fputs(strbuf_str(&out), stdout);
	show_findings_fini(f);
	return rc < 0 ? -1 : f->n_no ? TOOL_FAILED : 0;
}

/* ---- checks */

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

/* The Deployment is optional: the operator may run elsewhere, or standalone. */
void tool_check_operator(
	struct tool *t, struct show_findings *f, struct json_object *cluster, struct err *err)
{
	cleanup_json struct json_object *lease = tool_get(t, &kobj_lease, "tec-operator", err),
					*deployment = NULL;

	show_found_leader(f, lease, err, clock_wall_s());
	err_clear(err);
	deployment = tool_get(t, &kobj_deployment, "tec-operator", err);
	err_clear(err);
	if (deployment)
		show_found_pods(f, deployment);
	show_found_observed(f, cluster);
}

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
