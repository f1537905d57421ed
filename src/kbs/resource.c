/* SPDX-License-Identifier: MIT */
/*
 * A put is one request. A delete is one too, as a rule; when the far side cannot tell missing from
 * failing, the resource is made (empty) and deleted, so that the confirmation means something. The
 * empty object opens no disk.
 */
#include "config.h"

#include "tec/kbs/resource.h"

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "kbs_internal.h"

#define PREFIX "/kbs/v0/resource/"

/* ---- requests that are confirmed by a 200 */

struct simple {
	struct op op; /* first */
	struct op_scope inner;
	kbs_done_fn done;
	void *arg;
};

static void simple_abort(struct op *op)
{
	struct simple *k = (struct simple *)op;

	op_scope_cancel(&k->inner);
	free(k);
}

static void on_simple(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct simple *k = arg;
	struct err why = ERR_INIT;

	(void)!kbs_answer_check(err, answer, false, &why);
	op_finish(&k->op);
	k->done(k->arg, &why);
	free(k);
}

struct op *kbs_simple(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_request *req, kbs_done_fn done, void *arg)
{
	struct simple *k = xcalloc(1, sizeof(*k));

	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, simple_abort);
	(void)kbs_transport_start(t, &k->inner, req, on_simple, k);
	return &k->op;
}

struct op *kbs_resource_put(struct kbs_transport *t, struct op_scope *scope, const char *path,
	const struct secret *value, kbs_done_fn done, void *arg)
{
	cleanup_free char *full = xasprintf(PREFIX "%s", path);
	const struct kbs_request req = {.method = "POST",
		.path = full,
		.content_type = "application/octet-stream",
		.body = secret_peek(value),
		.body_len = secret_len(value),
		.verb = "resource-put"};

	return kbs_simple(t, scope, &req, done, arg);
}

/* ---- delete */

enum step { DELETE_FIRST, MAKE_EMPTY, DELETE_AGAIN };

struct removal {
	struct op op; /* first */
	struct op_scope inner;
	struct kbs_transport *t; /* borrowed */
	enum step step;
	char *path; /* owned */
	kbs_done_fn done;
	void *arg;
};

static void removal_free(struct removal *k)
{
	op_scope_cancel(&k->inner);
	free(k->path);
	free(k);
}

static void removal_abort(struct op *op)
{
	removal_free((struct removal *)op);
}

static void removal_go(struct removal *k);

static void on_removal(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct removal *k = arg;
	struct err why = ERR_INIT;
	bool ok = kbs_answer_check(err, answer, false, &why) == 0;
	bool unclear = k->step == DELETE_FIRST && !ok && !err_is_set(err) &&
		       (str_eq(answer->type, "PluginInternalError") || answer->status == 404);

	if (unclear || (ok && k->step == MAKE_EMPTY)) {
		k->step++;
		removal_go(k);
		return;
	}
	op_finish(&k->op);
	k->done(k->arg, &why);
	removal_free(k);
}

static void removal_go(struct removal *k)
{
	bool make = k->step == MAKE_EMPTY;
	const struct kbs_request req = {.method = make ? "POST" : "DELETE",
		.path = k->path,
		.content_type = make ? "application/octet-stream" : NULL,
		.body = make ? "{}" : NULL,
		.body_len = make ? 2 : 0,
		.verb = make ? "resource-empty" : "resource-delete"};

	(void)kbs_transport_start(k->t, &k->inner, &req, on_removal, k);
}

struct op *kbs_resource_delete(struct kbs_transport *t, struct op_scope *scope, const char *path,
	kbs_done_fn done, void *arg)
{
	struct removal *k = xcalloc(1, sizeof(*k));

	k->t = t;
	k->path = xasprintf(PREFIX "%s", path);
	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, removal_abort);
	removal_go(k);
	return &k->op;
}
