/* SPDX-License-Identifier: MIT */
/*
 * Conditions (metav1.Condition). For each known condition a compact object keeps only what is needed
 * to decide whether it must be written again; the message is kept as a hash. lastTransitionTime
 * changes only when the status changes; observedGeneration is always set.
 */
#ifndef TEC_KOBJ_CONDITION_H
#define TEC_KOBJ_CONDITION_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

enum kobj_cond_status { KOBJ_COND_ABSENT = 0, KOBJ_COND_TRUE, KOBJ_COND_FALSE, KOBJ_COND_UNKNOWN };

/* An observed condition. Small, because every cached object has some. */
struct kobj_cond {
	const char *reason; /* in the object's string blob; NULL when absent */
	uint64_t message_hash;
	int64_t transition_s;
	int32_t observed_generation; /* -1: out of range, equals no generation */
	enum kobj_cond_status status;
};

/* A desired condition. Embedded value; a longer message is truncated. */
struct kobj_cond_want {
	const char *type;             /* static */
	enum kobj_cond_status status; /* ABSENT: the condition must not exist */
	const char *reason;           /* static */
	char message[768];
};
void kobj_cond_want(struct kobj_cond_want *w, const char *type, enum kobj_cond_status status,
	const char *reason, const char *message_fmt, ...) PRINTF_LIKE(5, 6);

/* Read status.conditions for types[0..n) into fixed[0..n), the struct kobj_cond members that start at
 * field_offset of the packed struct. */
void kobj_cond_read(struct kobj_pack *p, struct json_object *o, const char *const *types, size_t n,
	struct kobj_cond *fixed, size_t field_offset);
/* True if status, reason, message and observedGeneration of all n conditions match: no write needed. */
bool kobj_cond_same(const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n,
	int64_t generation);
/* Build the "conditions" array to apply from all wants that are not ABSENT. lastTransitionTime is kept
 * where the status is unchanged. The caller puts the array. */
struct json_object *kobj_cond_json(const struct kobj_cond *have, const struct kobj_cond_want *want,
	size_t n, int64_t generation, int64_t now_s);
uint64_t kobj_message_hash(const char *message);

#endif
