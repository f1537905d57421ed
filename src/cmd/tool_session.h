/* SPDX-License-Identifier: MIT */
/*
 * What the commands of tecctl share: one connection, calls that wait for their answer by running
 * the loop, so that Ctrl-C ends each of them, and questions at the terminal. No server uses it.
 */
#ifndef TEC_CMD_TOOL_SESSION_H
#define TEC_CMD_TOOL_SESSION_H

#include <json-c/json.h>
#include <stdio.h>

#include "tool_options.h"

#include "tec/k8s/kubeconfig.h"
#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/loop/loop.h"
#include "tec/loop/signal.h"
#include "tec/net/httpc.h"
#include "tec/report/world.h"

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
	bool done; /* see tool_run() */
};

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
/* Runs the loop until a callback of what was started calls tool_done(). On an interrupt it cancels
 * what is in flight and returns -1 with err set. */
int tool_run(struct tool *t, struct err *err) MUST_CHECK;
void tool_done(struct tool *t);
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
/* Applies a merge patch to exactly the version that was read; ERR_CONFLICT if it has changed. Either
 * part may be NULL. */
int tool_patch(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct json_object *take_annotations, struct json_object *take_spec,
	struct err *err) MUST_CHECK;
/* The name that the server has for these credentials; the caller frees. NULL with err set:
 * ERR_NOT_FOUND of servers before Kubernetes 1.28. "?": the answer has no name. */
char *tool_whoami(struct tool *t, struct err *err) MUST_CHECK;
/* Deletes exactly this object (by UID), not a later one of the same name. */
int tool_delete(struct tool *t, const struct kobj_gvk *gvk, struct json_object *o,
	struct err *err) MUST_CHECK;

#define TOOL_SYSTEM                                                                                \
	(1u << REPORT_CLUSTER | 1u << REPORT_MACHINE | 1u << REPORT_KEY | 1u << REPORT_IMAGE)
#define TOOL_ALL ((1u << REPORT_N_KINDS) - 1)
/* Reads the lists of these kinds into w. A list that may not be read gets a problem in w; an
 * error only if none can be read. */
int tool_load(struct tool *t, unsigned kinds, struct report_world *w, struct err *err) MUST_CHECK;

/* Refuses a reading that lacks a list: what it lacks must not look as if it did not exist. */
int tool_all_read(const struct report_world *w, unsigned kinds, struct err *err) MUST_CHECK;
/* Both; an earlier reading in w is released. */
int tool_load_all(
	struct tool *t, unsigned kinds, struct report_world *w, struct err *err) MUST_CHECK;
/* As tool_load(), and returns the TrustedExecutionCluster that is served as a struct model_cluster,
 * which the caller unrefs. NULL: ERR_NOT_FOUND names the next step if there is none. */
const struct kobj *tool_load_cluster(
	struct tool *t, unsigned kinds, struct report_world *w, struct err *err) MUST_CHECK;

/* ---- the person at the terminal */

/* Prints one line for people; text of other programs in it is escaped, see report_safe(). */
void tool_say(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends a document as JSON, or as YAML with -o yaml. */
void tool_document(const struct tool *t, struct json_object *o, struct strbuf *out);
/* Refuses -o name, which prints names of objects: a document has none. */
int tool_refuse_name(const struct tool *t, struct err *err) MUST_CHECK;
/* Asks at the terminal; only "yes" continues, or --yes. 0: continue. */
int tool_confirm(struct tool *t, const char *question, struct err *err) MUST_CHECK;
/* The same, but this word must be typed; --yes does not count. */
int tool_confirm_word(
	struct tool *t, const char *question, const char *word, struct err *err) MUST_CHECK;

#endif
