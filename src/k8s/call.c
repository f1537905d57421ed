/* SPDX-License-Identifier: MIT */
/*
 * One function per verb; all do the same: path, query, body, one request, one object in the answer.
 * The rules for writes (call.h) are in the query strings and bodies made here and nowhere else. The
 * answer is parsed while it arrives, so its cost is only what is kept of it. Objects that are
 * Secrets are wiped before json-c frees them.
 */
#include "config.h"

#include "tec/k8s/call.h"

#include <assert.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/k8s/split.h"

#define DEADLINE_MS 15000

struct verb {
	const char *method, *name, *content_type, *subresource, *query;
	bool creates, deletes;
	bool unread; /* the caller does not need the object, but the answer must be one */
};
#define APPLY                                                                                      \
	.method = "PATCH", .name = "apply", .content_type = "application/apply-patch+yaml",        \
	.query = "?fieldManager=" K8S_FIELD_MANAGER "&force=true"
static const struct verb get = {.method = "GET", .name = "get"};
#define CREATE                                                                                     \
	.method = "POST", .name = "create", .content_type = "application/json", .creates = true
static const struct verb create = {CREATE}, create_only = {CREATE, .unread = true};
/* JSON is valid YAML; the content type makes it an apply */
static const struct verb apply = {APPLY}, apply_status = {APPLY, .subresource = "status"};
static const struct verb patch = {
	.method = "PATCH", .name = "patch", .content_type = "application/merge-patch+json"};
/* The move of fields is ours, so no field may become ours by the request itself. */
static const struct verb json_patch = {
	.method = "PATCH", .name = "patch", .content_type = "application/json-patch+json"};
static const struct verb delete = {
	.method = "DELETE", .name = "delete", .content_type = "application/json", .deletes = true};

/* The state of reading one answer; lives in the exchange. */
struct reader {
	const struct verb *verb;
	const struct kobj_gvk *gvk;    /* static */
	struct k8s_split *split;       /* owned; NULL: no byte received yet */
	struct json_object *object;    /* owned */
	const struct k8s_cache *cache; /* borrowed; NULL: none */
	const struct kobj *cached;     /* owned: a reference */
	char *uid;                     /* owned; UID of an object that is not parsed */
	struct err bad;                /* the first error in the body */
	k8s_result_fn done;
	void *arg;
};

static bool is_secret(const struct reader *r)
{
	return strcmp(r->gvk->plural, "secrets") == 0;
}

/* Runs after done and after a cancel; key material is wiped in both cases. */
static void reader_fini(void *arg)
{
	struct reader *r = arg;

	k8s_split_free(r->split);
	kobj_unref(r->cached);
	free(r->uid);
	if (r->object && is_secret(r)) {
		json_wipe(json_get_obj(r->object, "data"));
		json_wipe(json_get_obj(r->object, "stringData"));
	}
	json_object_put(r->object);
}

/* HTTP 409 has two meanings: an object of this name exists, or it is not the one named in the
 * precondition, because it was replaced by another one of the same name. The two texts of the latter
 * come from the server's registry and from its storage layer. */
static void read_conflict(const struct reader *r, struct json_object *status,
	struct k8s_result *result, struct err *err)
{
	const char *message = result->message;

	if (r->verb->creates && str_eq(json_get_str(status, "reason"), "AlreadyExists"))
		result->already_exists = true;
	if (r->verb->deletes && message &&
		(strstr(message, "UID in precondition") ||
			strstr(message, "UID in the precondition")))
		err->kind = ERR_NOT_FOUND;
}

/* Keep the object, unless nobody needs it or the cache already has this version. */
static int on_item(void *arg, const char *item, size_t len, struct err *err)
{
	struct reader *r = arg;
	struct k8s_split_item seen = k8s_split_item(r->split);
	const struct kobj *o = NULL;

	/* A resourceVersion proves that the object exists: any other 2xx did not come from the API
	 * server. */
	if (r->verb->unread) {
		r->uid = xstrdup(seen.uid);
		return *seen.rv ? 0 : err_set(err, ERR_INVALID, "no metadata.resourceVersion");
	}
	if (r->cache)
		o = k8s_cache_find(r->cache, seen.name);
	if (o && !o->unreadable && str_eq(o->uid, seen.uid) && str_eq(o->rv, seen.rv)) {
		r->cached = kobj_ref(o); /* the watch may replace it before the answer ends */
		return 0;
	}
	if (!item)
		return err_set(
			err, ERR_INVALID, "%s is larger than 2 MiB and cannot be read", seen.name);
	r->object = json_parse(item, len, &json_limits_api, err);
	return r->object ? 0 : -1;
}

/* Keep a parse error until the end of the answer: the server has already done its part, and an
 * early return would look like a failed transfer. */
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct reader *r = arg;

	if (!r->split)
		r->split = k8s_split_new(K8S_SPLIT_OBJECT, r->gvk->keep, is_secret(r), on_item, r);
	if (!err_is_set(&r->bad))
		(void)!k8s_split_feed(r->split, data, len, &r->bad);
	return 0;
}

/* Decide the result of the call. On a 409 the caller learns whether the name is taken or the object
 * was replaced. */
static void on_answer(void *arg, const struct err *transport_err, const struct k8s_answer *answer)
{
	struct reader *r = arg;
	struct k8s_result result = {0};
	struct err err = ERR_INIT, ignored = ERR_INIT;
	cleanup_json struct json_object *status = NULL;

	if (k8s_answer_check(transport_err, answer, &err) != 0) {
		if (err.http && answer->body_len)
			status = json_parse(
				answer->body, answer->body_len, &json_limits_object, &ignored);
		result.message = json_get_str(status, "message");
		if (err.http == 409)
			read_conflict(r, status, &result, &err);
		r->done(r->arg, &err, &result);
		return;
	}
	if (!r->split && r->verb->unread)
		err_set(&r->bad, ERR_INVALID, "the body is empty");
	if (r->split && !err_is_set(&r->bad))
		(void)!k8s_split_end(r->split, &r->bad);
	if (err_is_set(&r->bad)) {
		err = r->bad;
		err.kind = ERR_INVALID; /* also for a truncated text: the HTTP length was right */
		err_wrap(&err, "answer for %s", r->gvk->plural);
	} else {
		result.object = r->object;
		result.cached = r->cached;
		result.uid = r->uid;
	}
	r->done(r->arg, &err, &result);
}

static const struct k8s_receiver receiver = {on_data, on_answer, reader_fini};

/* The arguments common to all verbs. */
struct target {
	struct k8s_transport *t;
	struct op_scope *scope;
	const struct kobj_gvk *gvk;
	const char *ns, *name;
	k8s_result_fn done;
	void *arg;
};

/* The body is copied into the request before this returns, so the caller may free its object. */
static struct op *send(
	const struct verb *v, const struct target *to, struct body take_body, uint32_t deadline_ms)
{
	struct reader r = {.verb = v, .gvk = to->gvk, .done = to->done, .arg = to->arg};
	struct strbuf path = STRBUF_INIT;
	struct k8s_request req = {
		.method = v->method,
		.content_type = v->content_type,
		.verb = v->name,
		.resource = to->gvk->plural,
		.body = take_body,
		.deadline_ms = deadline_ms ? deadline_ms : DEADLINE_MS,
	};

	kobj_path(to->gvk, to->ns, to->name, v->subresource, &path);
	if (v->query)
		strbuf_adds(&path, v->query);
	req.path = strbuf_steal(&path);
	return k8s_transport_start_own(to->t, to->scope, &req, &receiver, &r, sizeof(r));
}

static struct op *send_json(
	const struct verb *v, const struct target *to, struct json_object *o, uint32_t deadline_ms)
{
	return send(v, to, body_of_text(json_text(o)), deadline_ms);
}

struct op *k8s_call_get(struct k8s_transport *t, struct op_scope *scope, const struct kobj_gvk *gvk,
	const char *ns, const char *name, k8s_result_fn done, void *arg)
{
	return send(&get, &(struct target){t, scope, gvk, ns, name, done, arg},
		(struct body)BODY_INIT, 0);
}

struct op *k8s_call_create(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg)
{
	return send_json(
		&create, &(struct target){t, scope, gvk, ns, NULL, done, arg}, object, deadline_ms);
}

struct op *k8s_call_create_only(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg)
{
	return send_json(&create_only, &(struct target){t, scope, gvk, ns, NULL, done, arg}, object,
		deadline_ms);
}

struct op *k8s_call_create_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct secret *take_text, k8s_result_fn done,
	void *arg)
{
	return send(&create, &(struct target){t, scope, gvk, ns, NULL, done, arg},
		body_of_secret(take_text), 0);
}

/* The server takes the identity of an applied object from its body. */
static struct op *send_applied(const struct verb *v, struct target to, struct json_object *object)
{
	to.name = json_get_str(object, "metadata/name");
	assert(to.name && json_get_str(object, "apiVersion") && json_get_str(object, "kind"));
	return send_json(v, &to, object, 0);
}

struct op *k8s_call_apply(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg)
{
	return send_applied(&apply, (struct target){t, scope, gvk, ns, NULL, done, arg}, object);
}

struct op *k8s_call_apply_status(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg)
{
	return send_applied(
		&apply_status, (struct target){t, scope, gvk, ns, NULL, done, arg}, object);
}

struct op *k8s_call_merge_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *object,
	k8s_result_fn done, void *arg)
{
	assert(json_get_str(
		object, "metadata/resourceVersion")); /* else it overwrites unseen changes */
	return send_json(&patch, &(struct target){t, scope, gvk, ns, name, done, arg}, object, 0);
}

struct op *k8s_call_json_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *list,
	k8s_result_fn done, void *arg)
{
	return send_json(
		&json_patch, &(struct target){t, scope, gvk, ns, name, done, arg}, list, 0);
}

struct op *k8s_call_patch_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct secret *take_text,
	k8s_result_fn done, void *arg)
{
	return send(&patch, &(struct target){t, scope, gvk, ns, name, done, arg},
		body_of_secret(take_text), 0);
}

/* Background propagation: dependents are removed by the garbage collector, and the call does not
 * wait for them. */
struct op *k8s_call_delete(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, const char *uid,
	const char *rv, k8s_result_fn done, void *arg)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *preconditions = json_add_str(json_obj(), "uid", uid);

	assert(uid && *uid);
	if (rv)
		json_add_str(preconditions, "resourceVersion", rv);
	json_add_str(o, "apiVersion", "v1");
	json_add_str(o, "kind", "DeleteOptions");
	json_add(o, "preconditions", preconditions);
	json_add_str(o, "propagationPolicy", "Background");
	return send_json(&delete, &(struct target){t, scope, gvk, ns, name, done, arg}, o, 0);
}

/* The op is the first member of the exchange, whose arg is our reader. */
void k8s_call_unless_cached(struct op *call, const struct k8s_cache *cache)
{
	struct k8s_exchange *x = (struct k8s_exchange *)call;

	((struct reader *)x->arg)->cache = cache;
}
