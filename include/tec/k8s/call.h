/* SPDX-License-Identifier: MIT */
/*
 * The verbs controllers use, over the seam. Each is one request; done gets the resulting object
 * (borrowed for the call, NULL on error or when there is none). The rules of writing are
 * built in: apply and apply_status carry the field manager (tec-operator, force) and,
 * when `uid` is given, metadata.uid, so that an absent object is not made; deletes carry a uid
 * precondition, and a resourceVersion where the caller must have seen the last version; merge
 * patches carry a resourceVersion. AlreadyExists is ERR_CONFLICT with http 409 and already_exists
 * set.
 */
#ifndef TEC_K8S_CALL_H
#define TEC_K8S_CALL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/k8s/cache.h"
#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"

#define K8S_FIELD_MANAGER "tec-operator"

struct k8s_result {
	struct json_object *object; /* borrowed, may be NULL */
	/* Borrowed; set in the place of `object`: k8s_call_unless_cached(). */
	const struct kobj *cached;
	/* Borrowed; of what create_only made, "" when the answer does not say; else NULL. */
	const char *uid;
	bool already_exists; /* 409 AlreadyExists on a create */
};
typedef void (*k8s_result_fn)(void *arg, const struct err *err, const struct k8s_result *result);

struct op *k8s_call_get(struct k8s_transport *t, struct op_scope *scope, const struct kobj_gvk *gvk,
	const char *ns, const char *name, k8s_result_fn done, void *arg);
/* All bodies: borrowed, serialised before the call returns. deadline_ms 0: default. */
struct op *k8s_call_create(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg);
/* The same for a caller that needs nothing of the object but its uid: the answer must be one with a
 * resourceVersion, and is not read any further. */
struct op *k8s_call_create_only(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg);
/* A create of a Secret whose text the caller made (Secret data never passes through json-c
 * strings). gvk says what is read of the answer. */
struct op *k8s_call_create_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct secret *take_text, k8s_result_fn done,
	void *arg);
/* Server-side apply; the object carries apiVersion, kind, metadata.name (and metadata.uid when it
 * must exist already). */
struct op *k8s_call_apply(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg);
struct op *k8s_call_apply_status(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg);
/* RFC 7386 merge patch; it carries metadata.resourceVersion (asserted). */
struct op *k8s_call_merge_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *object,
	k8s_result_fn done, void *arg);
/* The same of a Secret, as k8s_call_create_secret(); the caller's text has the resourceVersion. */
struct op *k8s_call_patch_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct secret *take_text,
	k8s_result_fn done, void *arg);
/* uid is required. NOT_FOUND and a uid that differs are both reported as NOT_FOUND. rv NULL: any
 * version; one that differs is ERR_CONFLICT. */
struct op *k8s_call_delete(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, const char *uid,
	const char *rv, k8s_result_fn done, void *arg);

/*
 * For a call that was just started and shows its object (not create_only): if the cache holds the
 * version of it that comes, because the watch was faster, the answer is not read a second time.
 * The cache must outlive the call.
 */
void k8s_call_unless_cached(struct op *call, const struct k8s_cache *cache);

#endif
