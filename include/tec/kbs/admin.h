/* SPDX-License-Identifier: MIT */
/* Trustee's admin API, one function per request: resources (the LUKS keys), the two policies,
 * and reference values. Only a 200 confirms. Policies and keys cannot be read back. */
#ifndef TEC_KBS_ADMIN_H
#define TEC_KBS_ADMIN_H

#include "tec/base/secret.h"
#include "tec/base/str.h"
#include "tec/kbs/transport.h"

/* path: "default/<uuid>/root". */
struct op *kbs_admin_put_resource(struct kbs_transport *t, struct op_scope *scope, const char *path,
	struct secret *take_value, kbs_done_fn done, void *arg);
/* DELETE cannot distinguish a missing resource from a failure: if the answer is
 * PluginInternalError, it is repeated after a POST of `{}`, which unlocks no disk. */
struct op *kbs_admin_delete_resource(struct kbs_transport *t, struct op_scope *scope,
	const char *path, kbs_done_fn done, void *arg);
/* A JSON array of all paths. Older servers do not support it. */
struct op *kbs_admin_list_resources(struct kbs_transport *t, struct op_scope *scope,
	size_t max_answer, kbs_done_fn done, void *arg);

/* rego: the source. The attestation policy is stored under the id default_cpu. */
struct op *kbs_admin_put_policy(struct kbs_transport *t, struct op_scope *scope, bool resource,
	const char *rego, kbs_done_fn done, void *arg);

/* A message of reference values: many names, each with any JSON value. There is no delete: null
 * is the tombstone. A message is not atomic; the server stores the names one by one. Embedded;
 * zero is empty. */
struct kbs_values {
	struct strbuf payload; /* {"name":value,... without the last brace */
	size_t n;
};
#define KBS_VALUES_INIT                                                                            \
	{                                                                                          \
		STRBUF_INIT, 0                                                                     \
	}
void kbs_values_fini(struct kbs_values *m);
#define cleanup_values __attribute__((cleanup(kbs_values_fini)))
/* json: the value as JSON text; NULL: null. The caller must not add a name twice. */
void kbs_values_add(struct kbs_values *m, const char *name, const char *json, size_t len);
/* The length of the request's body with one more value of this size. */
size_t kbs_values_body_len(const struct kbs_values *m, size_t name_len, size_t json_len);
struct op *kbs_admin_put_values(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_values *m, kbs_done_fn done, void *arg);
/* The answer's body is the value as JSON text. ERR_NOT_FOUND: no such value. */
struct op *kbs_admin_get_value(struct kbs_transport *t, struct op_scope *scope, const char *name,
	kbs_done_fn done, void *arg);

#endif
