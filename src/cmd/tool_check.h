/* SPDX-License-Identifier: MIT */
/* What several commands check, and how they report it: as findings, one line each. */
#ifndef TEC_CMD_TOOL_CHECK_H
#define TEC_CMD_TOOL_CHECK_H

#include "tool_session.h"

#include "tec/model/tlsuse.h"
#include "tec/report/finding.h"

/* Prepares f: findings are printed as they are added, or at the end as one document with
 * --output. */
int tool_findings_start(struct tool *t, struct report_findings *f, struct err *err) MUST_CHECK;
/* Ends f. rc is the result of the checks; returns what the command must return. */
int tool_findings_end(struct tool *t, struct report_findings *f, int rc) MUST_CHECK;
/* Checks the leader, the Pods, and whether the operator has observed the cluster. err stays
 * clear. */
void tool_check_operator(
	struct tool *t, struct report_findings *f, struct json_object *cluster, struct err *err);
/* Whether these credentials allow the verb in the namespace. false with err set: the question
 * was refused. */
bool tool_may(struct tool *t, const struct kobj_gvk *gvk, const char *verb, struct err *err);
/* Judges a Secret as the operator does (no Secret: plain HTTP), and its expiry. true: pem has the
 * server's certificate. err stays clear. */
bool tool_check_certificate(struct tool *t, struct report_findings *f,
	const struct model_tls_use *use, const char *what, struct strbuf *pem, struct err *err);

/* ---- what is read from a Secret and kept: certificates, never a key */

/* Appends data.MEMBER ("ca.crt"). */
int tool_secret_member(struct tool *t, const char *name, const char *member, struct strbuf *out,
	struct err *err) MUST_CHECK;

/* Appends ca.crt as nodes are told to trust it: certificates only, and only those that
 * spec.tls.caSHA256 lists, if it lists any. */
int tool_secret_ca(struct tool *t, const struct model_cluster *c, const char *secret,
	struct strbuf *out, struct err *err) MUST_CHECK;

#endif
