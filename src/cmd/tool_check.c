/* SPDX-License-Identifier: MIT */
/* Checks that tecctl doctor, tecctl bootstrap check and the commands of a handover share. */
#include "config.h"

#include "tool_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/k8s/call.h"
#include "tec/pki/cert.h"

/* ---- one member of a Secret */

struct reading {
	struct tool *t;
	const char *member;
	struct strbuf *out;
	struct err *err;
};

/* k8s/call hands out the object and wipes the answer's text afterwards, which may hold a private
 * key. Member names contain dots ("tls.crt"), so they are not read by a path. */
static void on_secret(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct reading *r = arg;
	struct json_object *text = NULL;
	uint8_t *bytes = NULL;
	size_t len;

	tool_done(r->t);
	if (err && err_is_set(err)) {
		*r->err = *err;
		return;
	}
	json_object_object_get_ex(json_get_obj(result->object, "data"), r->member, &text);
	if (!json_object_is_type(text, json_type_string) || !json_object_get_string_len(text))
		err_set(r->err, ERR_NOT_FOUND, "member %s is missing or empty", r->member);
	else if (bytes_from_b64(json_object_get_string(text), strlen(json_object_get_string(text)),
			 &bytes, &len) < 0)
		err_set(r->err, ERR_INVALID, "member %s is not base64", r->member);
	else
		strbuf_add(r->out, bytes, len);
	free(bytes);
}

/* kobj_input_secret keeps every member of data; kobj_secret only those that the operator needs. */
int tool_secret_member(
	struct tool *t, const char *name, const char *member, struct strbuf *out, struct err *err)
{
	struct reading r = {t, member, out, err};

	(void)k8s_call_get(t->api, &t->ops, &kobj_input_secret, t->ns, name, on_secret, &r);
	if (tool_run(t, err) < 0)
		return -1;
	return err_is_set(err) ? err_wrap(err, "Secret %.80s", name) : 0;
}

/* The same check as the operator's: whoever can write the Secret must not choose the CA of new
 * nodes. */
int tool_secret_ca(struct tool *t, const struct model_cluster *c, const char *secret,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT, sha256 = STRBUF_INIT;
	const char *unlisted;

	if (tool_secret_member(t, secret, "ca.crt", &pem, err) < 0)
		return -1;
	if (pki_cert_read_bundle(strbuf_str(&pem), pem.len, out, &sha256, err) < 0)
		return err_wrap(err, "ca.crt of Secret %.63s", secret);
	unlisted = model_cluster_unlisted_ca(c->ca_sha256, strbuf_str(&sha256));
	if (unlisted)
		return err_set(err, ERR_INVALID,
			"ca.crt of Secret %.63s has a certificate that spec.tls.caSHA256 does not list: SHA-256 %.64s; next step: "
			"list it if it belongs to your CA, else delete the Secret",
			secret, unlisted);
	return 0;
}

/* ---- findings */

/* Printed at once: a check of an unreachable server can take long. */
static void print(void *arg, struct json_object *finding)
{
	const struct tool *t = arg;
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	report_finding_line(finding, t->colours, &line);
	puts(strbuf_str(&line));
	fflush(stdout);
}

int tool_findings_start(struct tool *t, struct report_findings *f, struct err *err)
{
	if (tool_refuse_name(t, err) < 0)
		return -1;
	report_findings_init(f);
	f->said = t->output == TOOL_TEXT ? print : NULL;
	f->arg = t;
	return 0;
}

/* Exit status 1 if any finding is "no"; notes do not count. */
int tool_findings_end(struct tool *t, struct report_findings *f, int rc)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	if (rc == 0 && t->output != TOOL_TEXT)
		tool_document(t, f->all, &out);
	fputs(strbuf_str(&out), stdout);
	report_findings_fini(f);
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
	struct tool *t, struct report_findings *f, struct json_object *cluster, struct err *err)
{
	cleanup_json struct json_object *lease = tool_get(t, &kobj_lease, "tec-operator", err),
					*deployment = NULL;

	report_found_leader(f, lease, err, clock_wall_s());
	err_clear(err);
	deployment = tool_get(t, &kobj_deployment, "tec-operator", err);
	err_clear(err);
	if (deployment)
		report_found_pods(f, deployment);
	report_found_observed(f, cluster);
}

struct judging {
	struct tool *t;
	const struct kobj *secret; /* owned */
	struct err *err;
};

/* The private key is judged with the certificate and not kept. */
static void on_judged(void *arg, const struct err *err, const struct k8s_result *result)
{
	struct judging *j = arg;

	tool_done(j->t);
	if (err && err_is_set(err))
		*j->err = *err;
	else
		j->secret = model_secret_extract(result->object, j->err);
}

/* The operator's judgement of the same Secret. true: s is set, and may be good or not. A Secret that
 * may not be read is a note, as the operator may well read it. */
static bool judge(struct tool *t, struct report_findings *f, const struct model_tls_use *use,
	const char *what, const struct kobj **s, struct err *err)
{
	struct judging j = {t, NULL, err};
	bool good;

	(void)k8s_call_get(t->api, &t->ops, &kobj_secret, t->ns, use->secret, on_judged, &j);
	good = tool_run(t, err) == 0 && j.secret &&
	       model_tls_usable(use, model_secret(j.secret), clock_wall_s(), err);
	*s = j.secret;
	if (!good) {
		bool denied = err->kind == ERR_DENIED;

		report_found(f, denied ? REPORT_IS_NOTE : REPORT_IS_NO, what,
			denied ? NULL : "correct the Secret", "Secret %s (%s)%s: %s", use->secret,
			use->field, j.secret ? " cannot be used" : "", err->text);
	}
	err_clear(err);
	return good;
}

bool tool_check_certificate(struct tool *t, struct report_findings *f,
	const struct model_tls_use *use, const char *what, struct strbuf *pem, struct err *err)
{
	cleanup_kobj const struct kobj *o = NULL;
	const struct model_secret *s;
	int64_t end;

	if (!use->secret) {
		report_found(f, REPORT_IS_NOTE, what,
			"for TLS, name a Secret with a certificate in spec",
			"plain HTTP: spec names no Secret");
		return false;
	}
	if (!judge(t, f, use, what, &o, err))
		return false;
	s = model_secret(o);
	strbuf_adds(pem, s->tls_crt ? s->tls_crt : s->ca);
	if (pki_cert_not_after(strbuf_str(pem), pem->len, &end, err) == 0)
		report_found_end(f, what, use->secret, end, clock_wall_s());
	err_clear(err);
	return s->tls_crt;
}
