/* SPDX-License-Identifier: MIT */
/*
 * A queue of requests and up to OCI_LOOKUP_MAX children. A child's standard error, signal and exit
 * status go to the log and never into an answer: they may contain what a registry sent.
 */
#include "config.h"

#include "tec/oci/lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/loop/child.h"
#include "tec/loop/signal.h"
#include "tec/loop/timer.h"
#include "tec/net/httpc_proxy.h"
#include "tec/oci/wire.h"

#include "oci_internal.h"

struct oci_lookup {
	struct loop *loop;
	const char *file;
	const char *const *argv;
	TAILQ_HEAD(, call) waiting;
	unsigned running;
	size_t n_calls;
	struct defer pump;
};

struct call {
	struct op op; /* first */
	struct oci_lookup *k;
	struct op_scope ops; /* the child */
	bool running;
	bool waiting;
	TAILQ_ENTRY(call) link; /* while waiting */
	struct timer wait;
	struct defer fail;
	struct err err; /* why the request could not be made */
	char *question; /* owned, wiped; NULL: none, or passed to the child */
	size_t len;
	oci_label_fn done;
	void *arg;
};

static void on_pump(void *arg);

/* Free a call: leave the queue, or kill the child and let the next call start. */
static void call_free(struct call *c)
{
	op_scope_cancel(&c->ops); /* kills the child */
	if (c->waiting)
		TAILQ_REMOVE(&c->k->waiting, c, link);
	if (c->running) {
		c->k->running--;
		defer_call(&c->k->pump, c->k->loop, on_pump, c->k);
	}
	c->k->n_calls--;
	timer_fini(&c->wait);
	defer_cancel(&c->fail);
	file_wipe(steal_ptr(&c->question), c->len);
	free(c);
}

static void on_abort(struct op *op)
{
	call_free((struct call *)op);
}

/* End the call. err and value must not point into c, which is freed. */
static void call_end(struct call *c, const struct err *err, const char *value, size_t len)
{
	oci_label_fn done = c->done;
	void *arg = c->arg;

	op_finish(&c->op);
	call_free(c);
	done(arg, err, value, len);
}

/* Report an error of the start from the loop, since no callback runs before the call returned. */
static void on_fail(void *arg)
{
	struct call *c = arg;
	struct err err = c->err;

	call_end(c, &err, NULL, 0);
}

/* Give up after OCI_LOOKUP_WAIT_MS in the queue. */
static void on_wait(void *arg)
{
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT, "other lookups are in progress: at most %u run at once",
		OCI_LOOKUP_MAX);
	call_end(arg, &err, NULL, 0);
}

/* ---- the child ---- */

/* Decode the answer. If the child failed, the caller gets only a fixed text. */
static void on_child(void *arg, const struct err *err, const char *out, size_t len)
{
	struct call *c = arg;
	struct oci_answer a = {.err = ERR_INIT};
	struct err e = *err;

	if (!err_is_set(&e))
		(void)!oci_answer_decode(out, len, &a, &e);
	for (size_t i = 0; i < a.n_warnings; i++)
		log_warn(NULL, "label lookup warning", "text=%s", log_esc(a.warnings[i]));
	if (err_is_set(&e)) {
		log_err(LOG_WARN, NULL, "label lookup failed", &e);
		err_set(&a.err, ERR_TRANSIENT,
			"the process that queries the registry did not answer");
	}
	call_end(c, &a.err, a.value, a.len);
	oci_answer_fini(&a);
}

/* Start the child. child_start() copies the request, so ours, which holds credentials, is wiped at
 * once. */
static void call_run(struct call *c)
{
	const char *env[HTTPC_PROXY_VARIABLES + 1];
	struct child_spec spec = {
		.file = c->k->file,
		.argv = c->k->argv,
		.env = env,
		.bare_env = true,
		.input = c->question,
		.input_len = c->len,
		.max_out = OCI_ANSWER_MAX,
		.deadline_ms = OCI_LOOKUP_DEADLINE_MS,
	};

	httpc_proxy_env(env);
	TAILQ_REMOVE(&c->k->waiting, c, link);
	c->waiting = false;
	timer_cancel(&c->wait);
	c->running = true;
	c->k->running++;
	(void)child_start(c->k->loop, &c->ops, &spec, on_child, c);
	file_wipe(steal_ptr(&c->question), c->len);
}

/* Start children until the limit is reached. Deferred, so that no child starts inside a caller. */
static void on_pump(void *arg)
{
	struct oci_lookup *k = arg;

	while (!TAILQ_EMPTY(&k->waiting) && k->running < OCI_LOOKUP_MAX)
		call_run(TAILQ_FIRST(&k->waiting));
}

/* ---- the request ---- */

/* Credentials of the hosts that may be asked, each as a separate configuration: a compromised child
 * has these only, not all that are configured. */
struct chosen {
	const struct secret *const *configs; /* borrowed */
	size_t n_configs;
	struct secret **own;
	size_t n_own;
};

/* Keep the credential of one host, if it has one. */
static int choose(
	void *arg, const char *name, const char *connect, const char *repository, struct err *err)
{
	struct chosen *c = arg;
	cleanup_oci_cred struct oci_cred *cred = NULL;
	struct secret *one;

	if (oci_cred_find(c->configs, c->n_configs, name, repository, &cred, err) != 0)
		return -1;
	if (!cred)
		return 0;
	one = oci_cred_config(cred, name, repository, err);
	if (!one)
		return -1;
	ARRAY_GROW(c->own, c->n_own);
	c->own[c->n_own++] = one;
	return 0;
}

/* Make the request with the credentials of all mirrors and of the registry. */
static int call_prepare(struct call *c, const struct oci_conf *conf, const char *reference,
	const char *label, const struct secret *const *configs, size_t n_configs, struct err *err)
{
	struct chosen chosen = {.configs = configs, .n_configs = n_configs};
	struct oci_ref ref;

	if (oci_ref_parse(reference, &ref, err) == 0 &&
		oci_each_source(conf, &ref, choose, &chosen, err) == 0)
		c->question = oci_question_encode(conf, reference, label,
			(const struct secret *const *)chosen.own, chosen.n_own, &c->len, err);
	for (size_t i = 0; i < chosen.n_own; i++)
		secret_free(chosen.own[i]);
	free(chosen.own);
	return c->question ? 0 : -1;
}

/* ---- the interface ---- */

struct oci_lookup *oci_lookup_new(struct loop *l, const char *file, const char *const *argv)
{
	struct oci_lookup *k = xcalloc(1, sizeof(*k));

	loop_ignore_sigpipe(); /* a child may exit before it has read its request */
	k->loop = l;
	k->file = file;
	k->argv = argv;
	TAILQ_INIT(&k->waiting);
	return k;
}

void oci_lookup_free(struct oci_lookup *k)
{
	if (!k)
		return;
	assert(k->n_calls == 0);
	defer_cancel(&k->pump);
	free(k);
}

/* Everything is copied into the request before this returns. */
struct op *oci_lookup_get(struct oci_lookup *k, struct op_scope *scope, const struct oci_conf *conf,
	const char *reference, const char *label, const struct secret *const *docker_configs,
	size_t n_configs, oci_label_fn done, void *arg)
{
	struct call *c = xcalloc(1, sizeof(*c));

	c->k = k;
	c->done = done;
	c->arg = arg;
	k->n_calls++;
	timer_init(&c->wait, k->loop, on_wait, c);
	op_begin(&c->op, scope, on_abort);
	if (call_prepare(c, conf, reference, label, docker_configs, n_configs, &c->err) != 0) {
		defer_call(&c->fail, k->loop, on_fail, c);
		return &c->op;
	}
	c->waiting = true;
	TAILQ_INSERT_TAIL(&k->waiting, c, link);
	timer_set(&c->wait, OCI_LOOKUP_WAIT_MS);
	defer_call(&k->pump, k->loop, on_pump, k);
	return &c->op;
}
