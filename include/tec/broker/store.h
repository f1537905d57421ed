/* SPDX-License-Identifier: MIT */
/*
 * The storage of an embedded broker: values by namespace and key. Resources are key material, and
 * every implementation treats them so. Keys follow the rule of Trustee's LocalFs backend:
 * [A-Za-z0-9._/-], at most 255 bytes as a file name, in which a slash takes four; so the content
 * can be moved to Trustee.
 *
 * Bytes passed in are copied. Bytes returned are borrowed until the next call on the same store. No
 * call blocks; a write is visible at once, and durable when broker_store_settle() reports it.
 * Errors: ERR_INVALID (key, or a resource above SECRET_MAX_LEN), ERR_NOT_FOUND.
 */
#ifndef TEC_BROKER_STORE_H
#define TEC_BROKER_STORE_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"
#include "tec/loop/op.h"

#define BROKER_STORE_KEY_MAX 255 /* bytes of the file name in LocalFs */

enum broker_store_ns {
	BROKER_STORE_KBS,                /* the resource policy */
	BROKER_STORE_REPOSITORY,         /* resources: "repository/type/tag" */
	BROKER_STORE_REFERENCE_VALUE,    /* entries by name */
	BROKER_STORE_ATTESTATION_POLICY, /* "<id>.rego" */
	BROKER_STORE_N
};

struct broker_store_value {
	const void *data; /* never NULL */
	size_t len;
};

typedef void (*broker_store_key_fn)(void *arg, const char *key);
/* err not set: durable. Otherwise nothing was stored. */
typedef void (*broker_store_settled_fn)(void *arg, const struct err *err);

struct broker_store;
struct broker_store_ops {
	int (*set)(struct broker_store *s, enum broker_store_ns ns, const char *key,
		const void *data, size_t len, struct err *err);
	int (*get)(struct broker_store *s, enum broker_store_ns ns, const char *key,
		struct broker_store_value *out, struct err *err);
	int (*remove)(
		struct broker_store *s, enum broker_store_ns ns, const char *key, struct err *err);
	int (*list)(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
		broker_store_key_fn fn, void *arg, struct err *err);
	/* See broker_store_settle(); NULL: set and remove are final when they return. */
	struct op *(*settle)(struct broker_store *s, struct op_scope *scope,
		broker_store_settled_fn fn, void *arg);
	void (*free)(struct broker_store *s);
};
/* First member of each implementation's struct. */
struct broker_store {
	const struct broker_store_ops *ops;
};

void broker_store_free(struct broker_store *s); /* NULL is fine */

int broker_store_key_check(const char *key, struct err *err) MUST_CHECK;

/* Create or replace. */
int broker_store_set(struct broker_store *s, enum broker_store_ns ns, const char *key,
	const void *data, size_t len, struct err *err) MUST_CHECK;
int broker_store_get(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct broker_store_value *out, struct err *err) MUST_CHECK;
int broker_store_remove(struct broker_store *s, enum broker_store_ns ns, const char *key,
	struct err *err) MUST_CHECK;
/* Call fn for each key that starts with prefix ("": all), in no order; fn must not change the
 * store. */
int broker_store_list(struct broker_store *s, enum broker_store_ns ns, const char *prefix,
	broker_store_key_fn fn, void *arg, struct err *err) MUST_CHECK;
/* Completes when everything written before is durable or has failed. NULL: already durable, and
 * fn does not run. */
struct op *broker_store_settle(
	struct broker_store *s, struct op_scope *scope, broker_store_settled_fn fn, void *arg);

DEFINE_CLEANUP(broker_store_cleanup_, struct broker_store *, broker_store_free)
#define cleanup_broker_store __attribute__((cleanup(broker_store_cleanup_)))

#endif
