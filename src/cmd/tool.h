/* SPDX-License-Identifier: MIT */
/*
 * What the commands of tecctl share: one connection, and calls that wait for their answer by
 * running the loop, so that Ctrl-C ends each of them. No server uses it.
 */
#ifndef TEC_CMD_TOOL_H
#define TEC_CMD_TOOL_H

#include <json-c/json.h>
#include <stdio.h>

#include "tool_options.h"

#include "tec/k8s/kubeconfig.h"
#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/loop/loop.h"
#include "tec/loop/signal.h"
#include "tec/net/httpc.h"
#include "tec/show/finding.h"
#include "tec/show/world.h"

struct tool {
	struct conf *conf; /* owned */
	struct loop *loop;
	struct httpc *http;
	struct k8s_transport *api;
	struct loop_signal *intr, *term;
	struct op_scope ops;
	char *from, *server, *ns; /* owned; from: kubeconfig file, or the Pod's account directory */
	uint32_t timeout_ms;
	uint64_t wait_ms;
	enum tool_output output;
	bool yes, colours, interrupted;
};

/* ---- tool.c */

/* Prints one line for people; text of other programs in it is escaped, see show_safe(). */
void tool_say(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- tool_client.c */

/* Reads the kubeconfig; sends nothing. Call tool_close() in any case. place: "KUBECONFIG[:NS]"
 * from an option, or NULL: the options that every command has. */
int tool_connect(struct tool *t, const char *place, struct err *err) MUST_CHECK;
void tool_close(struct tool *t);
/* For a command with two servers: the one that is not in use; zeroed before the first swap. */
struct tool_server {
	struct k8s_transport *api;
	char *from, *server, *ns; /* owned, as in struct tool */
};
void tool_swap(struct tool *t, struct tool_server *other);
void tool_server_fini(struct tool_server *s); /* before tool_close() */
/* Runs the loop until *done. On an interrupt it cancels what is in flight and returns -1 with
 * err set. */
int tool_run(struct tool *t, const bool *done, struct err *err) MUST_CHECK;
/* Waits; returns -1 with err set on an interrupt. */
int tool_sleep(struct tool *t, uint64_t ms, struct err *err) MUST_CHECK;

/*
 * Sends one request and waits for the answer. body may be NULL. *out (may be NULL) is the answer,
 * which the caller releases. An answer other than 2xx is an error as in k8s_answer_check().
 */
int tool_ask(struct tool *t, const char *method, const char *path, const char *type,
	struct json_object *body, struct json_object **out, struct err *err) MUST_CHECK;
/* The same with a body that may contain a key: it is wiped. */
int tool_ask_text(struct tool *t, const char *method, const char *path, const char *type,
	char *take_body, struct json_object **out, struct err *err) MUST_CHECK;
/* Reads one object; NULL with ERR_NOT_FOUND: it does not exist. */
struct json_object *tool_get(
	struct tool *t, const struct kobj_gvk *gvk, const char *name, struct err *err) MUST_CHECK;
/* Applies a merge patch to exactly the version that was read; ERR_CONFLICT if it has changed. */
int tool_patch(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct json_object *take_annotations, struct json_object *take_spec,
	struct err *err) MUST_CHECK;
/* The same for annotations only. */
int tool_annotate(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct json_object *take_annotations, struct err *err) MUST_CHECK;
/* Deletes exactly this object (by UID), not a later one of the same name. */
int tool_delete(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct err *err) MUST_CHECK;

#define TOOL_SYSTEM (1u << SHOW_CLUSTER | 1u << SHOW_MACHINE | 1u << SHOW_KEY | 1u << SHOW_IMAGE)
#define TOOL_ALL    ((1u << SHOW_N_KINDS) - 1)
/* Reads the lists of these kinds into w. A list that may not be read gets a problem in w; an
 * error only if none can be read. */
int tool_load(struct tool *t, unsigned kinds, struct show_world *w, struct err *err) MUST_CHECK;

/* The same, and returns the TrustedExecutionCluster that is served as a struct model_cluster,
 * which the caller unrefs. NULL: ERR_NOT_FOUND names the next step if there is none. */
const struct kobj *tool_load_cluster(
	struct tool *t, unsigned kinds, struct show_world *w, struct err *err) MUST_CHECK;

/* ---- tool_change.c */

/* Asks at the terminal; only "yes" continues, or --yes. 0: continue. */
int tool_confirm(struct tool *t, const char *question, struct err *err) MUST_CHECK;
/* The same, but this word must be typed; --yes does not count. */
int tool_confirm_word(
	struct tool *t, const char *question, const char *word, struct err *err) MUST_CHECK;

/* ---- tool_doctor.c: for commands that check the system */

/* Prepares f: findings are printed as they are added, or at the end as one document with
 * --output. */
int tool_findings_start(struct tool *t, struct show_findings *f, struct err *err) MUST_CHECK;
/* Ends f. rc is the result of the checks; returns what the command must return. */
int tool_findings_end(struct tool *t, struct show_findings *f, int rc) MUST_CHECK;
/* Checks the leader, the Pods, and whether the operator has observed the cluster. err stays
 * clear. */
void tool_check_operator(
	struct tool *t, struct show_findings *f, struct json_object *cluster, struct err *err);
/* Whether these credentials allow the verb in the namespace. false with err set: the question
 * was refused. */
bool tool_may(struct tool *t, const struct kobj_gvk *gvk, const char *verb, struct err *err);
/* Checks tls.crt of a Secret (NULL: plain HTTP) and its expiry. true: pem has the certificate.
 * err stays clear. */
bool tool_check_certificate(struct tool *t, struct show_findings *f, const char *secret,
	const char *what, struct strbuf *pem, struct err *err);

/* ---- the commands: each returns 0, a positive exit status, or -1 with err set */
int tool_status(struct tool *t, struct err *err);
int tool_why(struct tool *t, struct err *err);
int tool_list(struct tool *t, struct err *err); /* machine, key and image list */
int tool_machine_show(struct tool *t, struct err *err);
int tool_machine_delete(struct tool *t, struct err *err);
int tool_approve(struct tool *t, struct err *err);
int tool_deny(struct tool *t, struct err *err);
int tool_rebind(struct tool *t, struct err *err);
int tool_image_approve(struct tool *t, struct err *err);
int tool_image_verify(struct tool *t, struct err *err);
int tool_image_explain(struct tool *t, struct err *err);
int tool_ignition(struct tool *t, struct err *err);
int tool_backup(struct tool *t, struct err *err);
int tool_doctor(struct tool *t, struct err *err);
int tool_bootstrap_check(struct tool *t, struct err *err);
int tool_bootstrap_servers(struct tool *t, struct err *err);
/* These use no server or several, so they are called without tool_connect(). */
int tool_follow(struct tool *t, struct err *err);
/* tool_deletes.c: --confirm-deletes or --accept-source instead of following. */
int tool_follow_deletes(struct tool *t, bool accept, struct err *err);
int tool_promote(struct tool *t, struct err *err);
int tool_retire(struct tool *t, struct err *err);
int tool_bootstrap_ca(struct tool *t, struct err *err);
int tool_bootstrap_cert(struct tool *t, struct err *err);

#endif
