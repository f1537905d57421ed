/* SPDX-License-Identifier: MIT */
/*
 * struct kobj: the compact, immutable form of one API object. Fixed members and a string blob share
 * one allocation (about 200 bytes instead of 10 KB for a json_object). A model kind embeds it as its
 * FIRST member. It is reference counted and never modified after packing.
 */
#ifndef TEC_KOBJ_META_H
#define TEC_KOBJ_META_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

struct kobj {
	uint32_t refs;
	uint16_t size;  /* bytes of the fixed part: the struct that embeds this one */
	bool deleting;  /* deletionTimestamp is set */
	bool immutable; /* Secret or ConfigMap whose data can no longer change */
	/* The object exists but cannot be read (kobj_unreadable): all members after this struct are
	 * zero. */
	bool unreadable;
	int64_t generation; /* 0 for kinds that have none */
	int64_t created_s;  /* wall clock seconds */
	const char *name, *uid, *rv;
	void (*fini)(struct kobj
			*o); /* releases memory outside the allocation (a secret); may be NULL */
};

struct kobj *kobj_ref(const struct kobj *o);
void kobj_unref(const struct kobj *o); /* NULL is fine */

/*
 * Packing: kobj_pack_str(&p, offsetof(struct model_machine, id), text) records a string for a `const
 * char *` member of the fixed part; kobj_pack_finish copies the fixed part and all strings into one
 * allocation with refs = 1. A NULL text leaves the member NULL.
 */
#define KOBJ_PACK_MAX 80
struct kobj_pack {
	struct strbuf blob;
	size_t n;
	struct {
		size_t field, blob;
	} slot[KOBJ_PACK_MAX];
};
#define KOBJ_PACK_INIT                                                                             \
	{                                                                                          \
		.blob = STRBUF_INIT, .n = 0                                                        \
	}
void kobj_pack_fini(struct kobj_pack *p);
#define cleanup_kobj_pack __attribute__((cleanup(kobj_pack_fini)))
void kobj_pack_str(struct kobj_pack *p, size_t field_offset, const char *text);
/* Record bytes for a `const uint8_t *` member. */
void kobj_pack_bytes(struct kobj_pack *p, size_t field_offset, const uint8_t *bytes, size_t len);
struct kobj *kobj_pack_finish(struct kobj_pack *p, const void *fixed, size_t fixed_size);

/* Read metadata into *fixed and p. Fails with ERR_INVALID if name, uid or resourceVersion is missing
 * or malformed. */
int kobj_meta_read(
	struct kobj_pack *p, struct json_object *o, struct kobj *fixed, struct err *err) MUST_CHECK;

/*
 * Make a placeholder of this size for an object that exists but cannot be read: all members after
 * struct kobj are zero and its age is unknown. NULL with ERR_INVALID if kobj_meta_read() would not
 * accept name, uid or rv.
 */
struct kobj *kobj_unreadable(size_t size, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err) MUST_CHECK;

bool kobj_has_finalizer(struct json_object *o, const char *finalizer);
/* Record all finalizers except `ours` as the text of a JSON array, for kobj_finalizers(); the member
 * stays NULL if there are none. */
void kobj_pack_other_finalizers(
	struct kobj_pack *p, size_t field_offset, struct json_object *o, const char *ours);
/* Build metadata.finalizers: the others, then ours unless it is NULL. The caller puts the array. */
struct json_object *kobj_finalizers(const char *others, const char *ours);
const char *kobj_annotation(struct json_object *o, const char *name); /* borrowed */

DEFINE_CLEANUP(kobj_cleanup_, const struct kobj *, kobj_unref)
#define cleanup_kobj __attribute__((cleanup(kobj_cleanup_)))

#endif
