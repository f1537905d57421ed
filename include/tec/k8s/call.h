/* SPDX-License-Identifier: MIT */
/*
 * The API verbs that controllers use. Each call is one request; done gets the resulting object
 * (borrowed for the call, NULL on error or when there is none). The rules for writes are built in:
 * apply and apply_status carry the field manager (tec-operator, force) and, when `uid` is given,
 * metadata.uid, so that an absent object is not created; deletes carry a uid precondition, and a
 * resourceVersion where the caller must have seen the last version; merge patches carry a
 * resourceVersion. AlreadyExists is ERR_CONFLICT with http 409 and already_exists set.
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
	/* Borrowed; set instead of `object`: see k8s_call_unless_cached(). */
	const struct kobj *cached;
	/* Borrowed; UID of the object that create_only created, "" when the answer does not contain
	 * it; otherwise NULL. */
	const char *uid;
	bool already_exists; /* 409 AlreadyExists on a create */
	/* Borrowed; the whole message of the Status that refused the request (err has the beginning);
	 * NULL: none. */
	const char *message;
};
typedef void (*k8s_result_fn)(void *arg, const struct err *err, const struct k8s_result *result);

struct op *k8s_call_get(struct k8s_transport *t, struct op_scope *scope, const struct kobj_gvk *gvk,
	const char *ns, const char *name, k8s_result_fn done, void *arg);
/* All bodies are borrowed, and serialised before the call returns. deadline_ms 0: default. */
struct op *k8s_call_create(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg);
/* Create an object of which the caller needs only the uid: the answer must have a resourceVersion
 * and is not parsed further. */
struct op *k8s_call_create_only(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object,
	uint32_t deadline_ms, k8s_result_fn done, void *arg);
/* Create a Secret whose text the caller made (Secret data never passes through json-c strings). gvk
 * determines which parts of the answer are kept. */
struct op *k8s_call_create_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct secret *take_text, k8s_result_fn done,
	void *arg);
/* Server-side apply. The object carries apiVersion, kind and metadata.name, and metadata.uid when
 * it must already exist. */
struct op *k8s_call_apply(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg);
struct op *k8s_call_apply_status(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, struct json_object *object, k8s_result_fn done,
	void *arg);
/* Send a merge patch (RFC 7386). It must carry metadata.resourceVersion (asserted). */
struct op *k8s_call_merge_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *object,
	k8s_result_fn done, void *arg);
/* Send a JSON patch (RFC 6902), a list of operations. Like a merge patch, it must say for which
 * resourceVersion it was made. */
struct op *k8s_call_json_patch(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct json_object *list,
	k8s_result_fn done, void *arg);
/* Patch a Secret with a text the caller made, as in k8s_call_create_secret(). The text contains the
 * resourceVersion. */
struct op *k8s_call_patch_secret(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, struct secret *take_text,
	k8s_result_fn done, void *arg);
/* uid is required. An absent object and one with another uid are both reported as NOT_FOUND. rv
 * NULL: any version; a different version is ERR_CONFLICT. */
struct op *k8s_call_delete(struct k8s_transport *t, struct op_scope *scope,
	const struct kobj_gvk *gvk, const char *ns, const char *name, const char *uid,
	const char *rv, k8s_result_fn done, void *arg);

/*
 * For a call that was just started and returns its object (not create_only): if the cache already
 * holds this version, because the watch was faster, do not parse the answer. The cache must outlive
 * the call.
 */
void k8s_call_unless_cached(struct op *call, const struct k8s_cache *cache);

#endif
