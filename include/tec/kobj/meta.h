/* SPDX-License-Identifier: MIT */
/*
 * struct kobj: the compact, immutable form of one API object: fixed members and a string blob in
 * one allocation (about 200 bytes against 10 KB for a json_object). A model kind embeds it as FIRST
 * member. Reference counted, never changed after it was packed.
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
	uint16_t size;  /* of the fixed part: the struct that embeds this one */
	bool deleting;  /* deletionTimestamp is set */
	bool immutable; /* of a Secret or ConfigMap: its data cannot change any more */
	/* It is there and cannot be read (kobj_unreadable): everything behind this struct is zero.
	 */
	bool unreadable;
	int64_t generation; /* 0 for kinds that have none */
	int64_t created_s;  /* wall clock seconds */
	const char *name, *uid, *rv;
	void (*fini)(struct kobj
			*o); /* releases what is not in the allocation (a secret); NULL: nothing */
};

struct kobj *kobj_ref(const struct kobj *o);
void kobj_unref(const struct kobj *o); /* NULL is fine */

/*
 * Packing: kobj_pack_str(&p, offsetof(struct model_machine, id), text) notes a string for a `const
 * char *` member of the fixed part; kobj_pack_finish copies the fixed part and all strings into one
 * allocation with refs = 1. NULL text leaves the member NULL.
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
/* The same for a `const uint8_t *` member. */
void kobj_pack_bytes(struct kobj_pack *p, size_t field_offset, const uint8_t *bytes, size_t len);
struct kobj *kobj_pack_finish(struct kobj_pack *p, const void *fixed, size_t fixed_size);

/* Reads metadata into fixed->... and p. ERR_INVALID when name, uid or resourceVersion is missing or
 * absurd. */
int kobj_meta_read(
	struct kobj_pack *p, struct json_object *o, struct kobj *fixed, struct err *err) MUST_CHECK;

/*
 * Stands for an object that is there and cannot be read, in the place of a struct of this size; all
 * of it behind struct kobj is zero, and its age is unknown. NULL with ERR_INVALID: the three are
 * not such as kobj_meta_read() takes.
 */
struct kobj *kobj_unreadable(size_t size, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err) MUST_CHECK;

bool kobj_has_finalizer(struct json_object *o, const char *finalizer);
/* The finalizers but `ours` as the text of a JSON array, for kobj_finalizers(); NULL when there are
 * none. */
void kobj_pack_other_finalizers(
	struct kobj_pack *p, size_t field_offset, struct json_object *o, const char *ours);
/* The array that metadata.finalizers becomes: the others, and ours behind them (NULL: without). The
 * caller puts it. */
struct json_object *kobj_finalizers(const char *others, const char *ours);
const char *kobj_annotation(struct json_object *o, const char *name); /* borrowed */

DEFINE_CLEANUP(kobj_cleanup_, const struct kobj *, kobj_unref)
#define cleanup_kobj __attribute__((cleanup(kobj_cleanup_)))

#endif
