/* SPDX-License-Identifier: MIT */
/* The requesting side: a queue of requests, and one child that handles the first of them. */
#include "config.h"

#include "tec/oci/compute.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/loop/child.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/net/httpc_proxy.h"

#include "oci_internal.h"

struct oci_computes {
	struct loop *loop;
	struct oci_computes_conf conf;
	struct op_scope ops; /* the child that empties the directory */
	TAILQ_HEAD(, call) waiting;
	bool busy;
	size_t n_calls;
	struct defer next;
};

struct call {
	struct op op; /* first */
	struct oci_computes *k;
	struct op_scope ops; /* the child */
	bool running;        /* otherwise it is in the queue */
	TAILQ_ENTRY(call) link;
	char *question; /* owned, wiped; NULL: passed to the child */
	size_t len;
	struct oci_lines lines;
	oci_said_fn said;
	oci_computed_fn done;
	void *arg;
};

static void on_next(void *arg);

/* Free a call, and let the next one start if this one was running. */
static void call_free(struct call *c)
{
	op_scope_cancel(&c->ops); /* kills the child */
	if (c->running) {
		c->k->busy = false;
		defer_call(&c->k->next, c->k->loop, on_next, c->k);
	} else {
		TAILQ_REMOVE(&c->k->waiting, c, link);
	}
	c->k->n_calls--;
	file_wipe(c->question, c->len);
	free(c);
}

static void empty(struct oci_computes *k);

/* Cancel a request. A killed child leaves files behind, so another one is started to
 * remove them. */
static void call_abort(struct op *op)
{
	struct call *c = (struct call *)op;
	struct oci_computes *k = c->k;
	bool left = c->running;

	call_free(c);
	if (left)
		empty(k);
}

/* ---- the child */

static void on_said(void *arg, const char *data, size_t len)
{
	struct call *c = arg;

	oci_lines_add(&c->lines, data, len, c->said, c->arg);
}

/* End a call. The child's last line is more useful than its exit status. */
static void on_child(void *arg, const struct err *err, const char *out, size_t len)
{
	struct call *c = arg;
	oci_computed_fn done = c->done;
	void *done_arg = c->arg;
	struct err e = ERR_INIT;

	if (err_is_set(err))
		err_set(&e, ERR_TRANSIENT, "%s", c->lines.last[0] ? c->lines.last : err->text);
	op_finish(&c->op);
	call_free(c);
	done(done_arg, &e, out, len);
}

/* Start the next request, unless a child is running. child_start() copies the question, so ours,
 * which may hold credentials, is wiped at once. */
static void on_next(void *arg)
{
	struct oci_computes *k = arg;
	struct call *c = TAILQ_FIRST(&k->waiting);
	const char *env[HTTPC_PROXY_VARIABLES + 1];
	struct child_spec spec = {
		.file = k->conf.file,
		.argv = k->conf.argv,
		.env = env,
		.bare_env = true,
		.max_out = OCI_COMPUTE_MESSAGE_MAX,
		.deadline_ms = OCI_COMPUTE_DEADLINE_MS,
		.said = on_said,
	};

	if (k->busy || !c)
		return;
	httpc_proxy_env(env);
	spec.input = c->question;
	spec.input_len = c->len;
	TAILQ_REMOVE(&k->waiting, c, link);
	c->running = k->busy = true;
	(void)child_start(k->loop, &c->ops, &spec, on_child, c);
	file_wipe(steal_ptr(&c->question), c->len);
}

/* ---- the question */

/* Write a request as JSON, which the caller wipes and frees. reference NULL: only empty the
 * directory. */
static char *question_text(
	const struct oci_computes_conf *conf, const struct oci_compute_question *q)
{
	struct json_object *o = json_obj(), *options = json_arr();
	char *text;

	json_add_str(json_add_str(o, "tool", conf->tool), "scratch", conf->scratch);
	json_add_str(json_add_str(o, "reference", q->reference), "nonce", q->nonce);
	for (size_t i = 0; q->options && q->options[i]; i++)
		json_push_str(options, q->options[i]);
	json_add_str(json_add(o, "options", options), "ca", q->ca);
	if (q->auth)
		json_add(o, "auth",
			json_object_new_string_len(
				(const char *)secret_peek(q->auth), (int)secret_len(q->auth)));
	if (q->platforms)
		json_add(o, "platforms", json_copy(q->platforms));
	text = json_text(o);
	json_wipe(o);
	json_object_put(o);
	return text;
}

/* ---- the interface */

/* Go on even after a failure: the next child empties the directory again. */
static void on_emptied(void *arg, const struct err *err, const char *out, size_t len)
{
	struct oci_computes *k = arg;

	if (err_is_set(err))
		log_err(LOG_WARN, NULL, "cannot remove the files of an image computation", err);
	k->busy = false;
	on_next(k);
}

/* Remove leftover files. Usually the directory does not exist, and no child is needed. */
static void empty(struct oci_computes *k)
{
	const struct oci_compute_question none = {.reference = NULL};
	cleanup_free char *text = NULL;
	struct child_spec spec = {.file = k->conf.file,
		.argv = k->conf.argv,
		.bare_env = true,
		.max_out = 1,
		.deadline_ms = OCI_COMPUTE_DEADLINE_MS};

	if (access(k->conf.scratch, F_OK) < 0)
		return;
	text = question_text(&k->conf, &none);
	spec.input = text;
	spec.input_len = strlen(text);
	k->busy = true;
	(void)child_start(k->loop, &k->ops, &spec, on_emptied, k);
}

struct oci_computes *oci_computes_new(struct loop *l, const struct oci_computes_conf *conf)
{
	struct oci_computes *k = xcalloc(1, sizeof(*k));

	loop_ignore_sigpipe(); /* a child may exit before it has read its request */
	k->loop = l;
	k->conf = *conf;
	TAILQ_INIT(&k->waiting);
	empty(k);
	return k;
}

void oci_computes_free(struct oci_computes *k)
{
	if (!k)
		return;
	assert(k->n_calls == 0);
	op_scope_cancel(&k->ops);
	defer_cancel(&k->next);
	free(k);
}

/* Queue a request. It starts from the loop, so `done` never runs before this returns. */
struct op *oci_compute(struct oci_computes *k, struct op_scope *scope,
	const struct oci_compute_question *q, oci_said_fn said, oci_computed_fn done, void *arg)
{
	struct call *c = xcalloc(1, sizeof(*c));

	c->k = k;
	c->said = said;
	c->done = done;
	c->arg = arg;
	c->question = question_text(&k->conf, q);
	c->len = strlen(c->question);
	k->n_calls++;
	op_begin(&c->op, scope, call_abort);
	TAILQ_INSERT_TAIL(&k->waiting, c, link);
	defer_call(&k->next, k->loop, on_next, k);
	return &c->op;
}
