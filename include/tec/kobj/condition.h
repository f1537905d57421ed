/* SPDX-License-Identifier: MIT */
/*
 * Conditions (metav1.Condition). A compact object keeps of each known condition what is needed to
 * decide whether it must be written again; the message only as a hash. lastTransitionTime moves
 * only when the status flips; observedGeneration is always set.
 */
#ifndef TEC_KOBJ_CONDITION_H
#define TEC_KOBJ_CONDITION_H

#include <json-c/json.h>

#include "tec/kobj/meta.h"

enum kobj_cond_status { KOBJ_COND_ABSENT = 0, KOBJ_COND_TRUE, KOBJ_COND_FALSE, KOBJ_COND_UNKNOWN };

/* What is there. Small: every object has some. */
struct kobj_cond {
	const char *reason; /* in the blob; NULL when absent */
	uint64_t message_hash;
	int64_t transition_s;
	int32_t observed_generation; /* -1: a number that no generation reaches */
	enum kobj_cond_status status;
};

/* What should be there. Embedded value; message is cut at its size. */
struct kobj_cond_want {
	const char *type;             /* static */
	enum kobj_cond_status status; /* ABSENT: should not be there */
	const char *reason;           /* static */
	char message[768];
};
void kobj_cond_want(struct kobj_cond_want *w, const char *type, enum kobj_cond_status status,
	const char *reason, const char *message_fmt, ...) PRINTF_LIKE(5, 6);

/* Fills fixed[0..n) (n members of type struct kobj_cond at field_offset of the packed struct) from
 * status.conditions for types[0..n). */
void kobj_cond_read(struct kobj_pack *p, struct json_object *o, const char *const *types, size_t n,
	struct kobj_cond *fixed, size_t field_offset);
bool kobj_cond_same(const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n,
	int64_t generation);
/* The "conditions" array to apply: all wants but ABSENT ones, lastTransitionTime kept where the
 * status stays. The caller puts it. */
struct json_object *kobj_cond_json(const struct kobj_cond *have, const struct kobj_cond_want *want,
	size_t n, int64_t generation, int64_t now_s);
uint64_t kobj_message_hash(const char *message);

#endif
