/* SPDX-License-Identifier: MIT */
/*
 * Reference values (trustee-protocol.md section 4): a message carries many names, each with any
 * JSON value. There is no delete: null is the tombstone. A message is not atomic; the far side sets
 * its names one by one.
 */
#ifndef TEC_KBS_REFVALUE_H
#define TEC_KBS_REFVALUE_H

#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/kbs/resource.h"

/* A message being built. Embedded; zero is empty. */
struct kbs_refvalues {
	struct strbuf payload; /* {"name":value,... without the last brace */
	size_t n;
};
#define KBS_REFVALUES_INIT                                                                         \
	{                                                                                          \
		STRBUF_INIT, 0                                                                     \
	}
void kbs_refvalues_fini(struct kbs_refvalues *m);
#define cleanup_refvalues __attribute__((cleanup(kbs_refvalues_fini)))
/* json: the value as JSON text; NULL: null. A name is added once only (the caller's duty). */
void kbs_refvalues_add(struct kbs_refvalues *m, const char *name, const char *json, size_t len);
/* Bytes of the request's body with one more value of this size. */
size_t kbs_refvalues_body_len(const struct kbs_refvalues *m, size_t name_len, size_t json_len);
struct op *kbs_refvalues_put(struct kbs_transport *t, struct op_scope *scope,
	const struct kbs_refvalues *m, kbs_done_fn done, void *arg);

/* The stored value as JSON text, borrowed for the call. ERR_NOT_FOUND: there is none. */
typedef void (*kbs_value_fn)(void *arg, const struct err *err, const char *json, size_t len);
struct op *kbs_refvalue_get(struct kbs_transport *t, struct op_scope *scope, const char *name,
	kbs_value_fn done, void *arg);

#endif
