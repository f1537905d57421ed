/* SPDX-License-Identifier: MIT */
/*
 * One function per verb, all of them: path, query, body, one request, one object back. The writing
 * rules of operator.md section 2 are in the query strings and bodies made here and nowhere else.
 * Objects that are Secrets are wiped before json-c frees them.
 */
#include "config.h"

#include "tec/k8s/call.h"

#include <assert.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/k8s/split.h"

#define DEADLINE_MS 15000
#define APPLY_QUERY "?fieldManager=" K8S_FIELD_MANAGER "&force=true"

struct call {
	struct op op; /* first */
	struct op_scope inner;
	const struct kobj_gvk *gvk; /* static */
	bool is_create, is_delete;
	bool unread;             /* nobody wants the object in the answer, but it has to be one */
	struct k8s_split *split; /* owned; NULL: no byte has come */
	struct json_object *object; /* owned */
	struct err bad;             /* what is wrong with what came */
	k8s_result_fn done;
	void *arg;
};

static bool is_secret(const struct call *k)
{
	return strcmp(k->gvk->plural, "secrets") == 0;
}

static void put_object(const struct call *k, struct json_object *o)
{
	if (o && is_secret(k)) {
		json_wipe(json_get_obj(o, "data"));
		json_wipe(json_get_obj(o, "stringData"));
	}
	json_object_put(o);
}

static void call_free(struct call *k)
{
	op_scope_cancel(&k->inner);
	k8s_split_free(k->split);
	put_object(k, k->object);
	free(k);
}

static void call_abort(struct op *op)
{
	call_free((struct call *)op);
}

/* The API says both with 409: an object of this name exists, or it is not the one we mean. */
static void look_at_conflict(
	struct call *k, const struct k8s_answer *answer, struct k8s_result *r, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct json_object *status =
		json_parse(answer->body, answer->body_len, &json_limits_object, &ignored);
	const char *reason = status ? json_get_str(status, "reason") : NULL;
	const char *message = status ? json_get_str(status, "message") : NULL;

	if (k->is_create && str_eq(reason, "AlreadyExists"))
		r->already_exists = true;
	/* Ours is gone, another has its name: the server's two ways to say so (the registry's and
	 * the storage's). */
	if (k->is_delete && message &&
		(strstr(message, "UID in precondition") ||
			strstr(message, "UID in the precondition")))
		err->kind = ERR_NOT_FOUND;
	json_object_put(status);
}

static int on_item(void *arg, const char *item, size_t len, struct err *err)
{
	struct call *k = arg;

	if (k->unread) /* enough to know that it is there: any other 2xx is somebody else's answer
			*/
		return *k8s_split_item_rv(k->split)
			       ? 0
			       : err_set(err, ERR_INVALID, "no metadata.resourceVersion");
	if (!item)
		return err_set(err, ERR_INVALID, "%s is larger than 2 MiB and cannot be read",
			k8s_split_item_name(k->split));
	k->object = json_parse(item, len, &json_limits_api, err);
	return k->object ? 0 : -1;
}

/* The bytes of a 2xx are read as they come, so that an answer costs what is kept of it. What is
 * wrong with them is told at the end: the server has done its part. */
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct call *k = arg;

	if (!k->split) {
		k->split = k8s_split_object_new(on_item, k);
		k8s_split_set_keep(k->split, k->gvk->keep);
		if (is_secret(k))
			k8s_split_set_secret(k->split);
	}
	if (!err_is_set(&k->bad))
		(void)!k8s_split_feed(k->split, data, len, &k->bad);
	return 0;
}

static void look_at_object(struct call *k, struct k8s_result *r, struct err *err)
{
	if (!k->split && k->unread)
		err_set(&k->bad, ERR_INVALID, "it is empty");
	if (k->split && !err_is_set(&k->bad))
		(void)!k8s_split_end(k->split, &k->bad);
	if (!err_is_set(&k->bad)) {
		r->object = k->object;
		return;
	}
	*err = k->bad;
	err->kind = ERR_INVALID; /* also when cut short: the length was right */
	err_wrap(err, "answer for %s", k->gvk->plural);
}

static void on_answer(void *arg, const struct err *transport_err, const struct k8s_answer *answer)
{
	struct call *k = arg;
	struct k8s_result r = {0};
	struct err err = ERR_INIT;

	if (k8s_answer_check(transport_err, answer, &err) != 0) {
		if (err.http == 409 && answer && answer->body_len)
			look_at_conflict(k, answer, &r, &err);
	} else {
		look_at_object(k, &r, &err);
	}
	op_finish(&k->op);
	k->done(k->arg, &err, &r);
	call_free(k);
}

static struct call *call_new(
	struct op_scope *scope, const struct kobj_gvk *gvk, k8s_result_fn done, void *arg)
{
	struct call *k = xcalloc(1, sizeof(*k));

	k->gvk = gvk;
	k->done = done;
	k->arg = arg;
	op_begin(&k->op, scope, call_abort);
	return k;
}

struct place {
	const char *ns, *name, *sub, *query;
};

static struct op *send(
	struct call *k, struct k8s_transport *t, struct k8s_request *req, const struct place *at)
{
	struct strbuf path = STRBUF_INIT;

	kobj_path(k->gvk, at->ns, at->name, at->sub, &path);
	if (at->query)
		strbuf_adds(&path, at->query);
	req->path = strbuf_str(&path);
	req->resource = k->gvk->plural;
	if (!req->deadline_ms)
		req->deadline_ms = DEADLINE_MS;
	(void)k8s_transport_start(t, &k->inner, req, on_data, on_answer, k);
	strbuf_fini(&path);
	return &k->op;
}

/* The same with a body made from json. */
static struct op *send_json(struct call *k, struct k8s_transport *t, struct k8s_request *req,
	const struct place *at, struct json_object *body)
{
	char *text = json_text(body);
	struct op *op;

	req->body = text;
	req->body_len = strlen(text);
	op = send(k, t, req, at);
	secret_wipe(text, req->body_len);
	free(text);
	return op;
}

struct op *k8s_call_get(struct k8s_transport *t, struct op_scope *scope, const struct kobj_gvk *gvk,
	const char *ns, const char *name, k8s_result_fn done, void *arg)
{
	struct k8s_request req = {.method = "GET", .verb = "get"};

	return send(
		call_new(scope, gvk, done, arg), t, &req, &(struct place){ns, name, NULL, NULL});
}

static struct op *create(struct k8s_transport *t, struct call *k, const char *ns,
	struct json_object *object, uint32_t deadline_ms)
{
	struct k8s_request req = {.method = "POST",
		.verb = "create",
		.content_type = "application/json",
		.deadline_ms = deadline_ms};

	k->is_create = true;
	return send_json(k, t, &req, &(struct place){ns, NULL, NULL, NULL}, object);
}

struct op *k8s_call_create(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg)
{
	return create(t, call_new(scope, gvk, done, arg), ns, object, deadline_ms);
}

struct op *k8s_call_create_only(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg)
{
	struct call *k = call_new(scope, gvk, done, arg);

	k->unread = true;
	return create(t, k, ns, object, deadline_ms);
}

struct op *k8s_call_create_text(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *text, size_t len,
	k8s_result_fn done, void *arg)
{
	struct k8s_request req = {.method = "POST",
		.verb = "create",
		.content_type = "application/json",
		.body = text,
		.body_len = len};
	struct call *k = call_new(scope, gvk, done, arg);

	k->is_create = true;
	return send(k, t, &req, &(struct place){ns, NULL, NULL, NULL});
}

static struct op *apply(struct k8s_transport *t, struct op_scope *scope, const struct kobj_gvk *gvk,
	const char *ns, struct json_object *object, const char *sub, k8s_result_fn done, void *arg)
{
	/* JSON is YAML; the content type is what makes it an apply. */
	struct k8s_request req = {
		.method = "PATCH", .verb = "apply", .content_type = "application/apply-patch+yaml"};
	const char *name = json_get_str(object, "metadata/name");

	assert(name && json_get_str(object, "apiVersion") && json_get_str(object, "kind"));
	return send_json(call_new(scope, gvk, done, arg), t, &req,
		&(struct place){ns, name, sub, APPLY_QUERY}, object);
}

struct op *k8s_call_apply(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg)
{
	return apply(t, scope, gvk, ns, object, NULL, done, arg);
}

struct op *k8s_call_apply_status(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg)
{
	return apply(t, scope, gvk, ns, object, "status", done, arg);
}

struct op *k8s_call_merge_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *patch,
	k8s_result_fn done, void *arg)
{
	struct k8s_request req = {
		.method = "PATCH", .verb = "patch", .content_type = "application/merge-patch+json"};

	assert(json_get_str(
		patch, "metadata/resourceVersion")); /* or it overwrites what it has not seen */
	return send_json(call_new(scope, gvk, done, arg), t, &req,
		&(struct place){ns, name, NULL, NULL}, patch);
}

struct op *k8s_call_delete(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, const char *uid,
	k8s_result_fn done, void *arg)
{
	struct k8s_request req = {
		.method = "DELETE", .verb = "delete", .content_type = "application/json"};
	struct call *k = call_new(scope, gvk, done, arg);
	cleanup_json struct json_object *o = json_obj();

	assert(uid && *uid);
	k->is_delete = true;
	json_add_str(o, "apiVersion", "v1");
	json_add_str(o, "kind", "DeleteOptions");
	json_add(o, "preconditions", json_add_str(json_obj(), "uid", uid));
	json_add_str(o, "propagationPolicy", "Background");
	return send_json(k, t, &req, &(struct place){ns, name, NULL, NULL}, o);
}
