/* SPDX-License-Identifier: MIT */
/* Shared by sync.c (entries and questions) and target.c (targets, their work, the sum) only. */
#ifndef TEC_KBS_SYNC_INTERNAL_H
#define TEC_KBS_SYNC_INTERNAL_H

#include <stdbool.h>
#include <string.h>

#include "kbs_internal.h"
#include "tec/base/mem.h"

#define LISTENERS_MAX 8

struct kbs_target {
	char *name; /* owned */
	enum kbs_target_state state;
	char *why;               /* owned */
	void (*wake)(void *arg); /* NULL: nobody works for it */
	void *arg;
	struct kbs_todo todo[2], urgent[2]; /* by sort; urgent: what was revoked */
};

struct kbs_sync {
	struct kbs_entry **buckets; /* owned; a power of two */
	size_t n_buckets, n_entries;
	struct kbs_target target[KBS_TARGETS_MAX];
	uint32_t targets; /* bit by slot in use */
	struct {
		void (*fn)(void *arg, enum kbs_sort sort, const char *name);
		void *arg;
	} listener[LISTENERS_MAX];
	size_t n_listeners;
	size_t n_declared, n_confirmed, n_revoking; /* kept by tally() */
	struct kbs_policies policies;
	struct kbs_sum sum; /* of what is declared, policies left out */
	uint64_t changed_ms;
	struct strbuf why, lacking;
};

#define EACH_TARGET(s, i)                                                                          \
	for (unsigned i = 0; i < KBS_TARGETS_MAX; i++)                                             \
		if ((s)->targets & 1u << i)

/* sync.c */
void kbs_tally_all(struct kbs_sync *s);
void kbs_drop_entries(struct kbs_sync *s, bool tombstones_only);
void kbs_tell(struct kbs_sync *s, enum kbs_sort sort, const char *name);
struct kbs_entry *kbs_entry_find(const struct kbs_sync *s, enum kbs_sort sort, const char *name);
void kbs_entry_unpin(struct kbs_entry *e);
void kbs_set_seen(struct kbs_sync *s, struct kbs_entry *e, unsigned t, enum kbs_seen seen);

/* target.c */
enum kbs_far kbs_entry_far(const struct kbs_sync *s, const struct kbs_entry *e);
void kbs_sum_add(struct kbs_sum *sum, const struct kbs_entry *e);
void kbs_sum_sub(struct kbs_sum *sum, const struct kbs_entry *e);
void kbs_todo_spread(struct kbs_sync *s, struct kbs_entry *e); /* to every target that differs */

#endif
