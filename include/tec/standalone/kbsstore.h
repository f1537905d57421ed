/* SPDX-License-Identifier: MIT */
/*
 * Where an embedded broker keeps things: values by namespace and key (trustee-protocol.md section
 * 5). Resources are key material, and every maker treats them so. Keys follow the rule of the real
 * one's LocalFs backend, whoever keeps them: [A-Za-z0-9._/-], and at most 255 bytes as a file name,
 * in which a slash takes four; what is stored here can be moved there.
 *
 * Bytes given are copied. Bytes answered are borrowed until the next call of the same store. No
 * call blocks longer than one commit. Errors: ERR_INVALID (key, or a resource above
 * SECRET_MAX_LEN), ERR_NOT_FOUND.
 */
#ifndef TEC_STANDALONE_KBSSTORE_H
#define TEC_STANDALONE_KBSSTORE_H

#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"

#define KBSSTORE_KEY_MAX 255 /* bytes of the file name LocalFs would make of it */

enum kbsstore_ns {
	KBSSTORE_KBS,                /* the resource policy */
	KBSSTORE_REPOSITORY,         /* resources: "repository/type/tag" */
	KBSSTORE_REFERENCE_VALUE,    /* entries by name */
	KBSSTORE_ATTESTATION_POLICY, /* "<id>.rego" */
	KBSSTORE_N
};

struct kbsstore_value {
	const void *data; /* never NULL */
	size_t len;
};

typedef void (*kbsstore_key_fn)(void *arg, const char *key);

struct kbsstore;
struct kbsstore_ops {
	int (*set)(struct kbsstore *s, enum kbsstore_ns ns, const char *key, const void *data,
		size_t len, struct err *err);
	int (*get)(struct kbsstore *s, enum kbsstore_ns ns, const char *key,
		struct kbsstore_value *out, struct err *err);
	int (*remove)(struct kbsstore *s, enum kbsstore_ns ns, const char *key, struct err *err);
	int (*list)(struct kbsstore *s, enum kbsstore_ns ns, kbsstore_key_fn fn, void *arg,
		struct err *err);
	void (*free)(struct kbsstore *s);
};
/* First member of every maker's struct. */
struct kbsstore {
	const struct kbsstore_ops *ops;
};

/* In memory, gone with the process; each call is O(1), a list O(n). */
struct kbsstore *kbsstore_memory_new(void);
void kbsstore_free(struct kbsstore *s); /* NULL is fine */

/* "kbs", "repository", ... as the real one names them. */
const char *kbsstore_ns_name(enum kbsstore_ns ns);
int kbsstore_key_check(const char *key, struct err *err) MUST_CHECK;

/* Makes or replaces. */
int kbsstore_set(struct kbsstore *s, enum kbsstore_ns ns, const char *key, const void *data,
	size_t len, struct err *err) MUST_CHECK;
int kbsstore_get(struct kbsstore *s, enum kbsstore_ns ns, const char *key,
	struct kbsstore_value *out, struct err *err) MUST_CHECK;
int kbsstore_remove(
	struct kbsstore *s, enum kbsstore_ns ns, const char *key, struct err *err) MUST_CHECK;
/* Every key once, in no order; fn must not change the store. */
int kbsstore_list(struct kbsstore *s, enum kbsstore_ns ns, kbsstore_key_fn fn, void *arg,
	struct err *err) MUST_CHECK;

DEFINE_CLEANUP(kbsstore_cleanup_, struct kbsstore *, kbsstore_free)
#define cleanup_kbsstore __attribute__((cleanup(kbsstore_cleanup_)))

#endif
