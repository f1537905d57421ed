/* SPDX-License-Identifier: MIT */
/*
 * Records deletions (model/record.h) before the finalizer that remembers them is removed:
 * revocations that every Trustee confirmed, and IDs of deleted Machines that a listener would
 * still accept. Controllers add names and wait; all waiting names go into one write, and one write
 * is in flight at a time. A key that added a name is woken when the ConfigMap with it is in the
 * cache, and when writing starts or stops failing.
 *
 * The cache tells whether a name is recorded. Only waiting names are in memory; after a restart,
 * the controllers add them again. Revocations are kept for MODEL_RECORD_DAYS. When every ConfigMap
 * is full, the one with the oldest revocations is overwritten and keeps the time of the newest of
 * them. IDs have one ConfigMap; when it is full, further IDs wait until recorded ones have become
 * invalid.
 */
#ifndef TEC_CTL_RECORD_H
#define TEC_CTL_RECORD_H

#include "tec/ctl/env.h"
#include "tec/ctl/runner.h"
#include "tec/caches/record.h"

enum ctl_recorded {
	CTL_RECORDED, /* or no record is needed */
	CTL_RECORD_WAITS,
	CTL_RECORD_FAILS,   /* waiting, and the last write failed */
	CTL_RECORD_MISSING, /* not added yet */
	CTL_RECORDED_N,
};

struct ctl_record;
struct ctl_record *ctl_record_new(const struct ctl_env *env);
void ctl_record_free(struct ctl_record *r);
void ctl_record_off(struct ctl_record *r); /* forgets waiting names, cancels the write */

/* Revocations must be recorded: some administered Trustee has its own store, which may be
 * restored from a backup. The store of the embedded broker is restored together with the API,
 * and a Trustee with files has no store. */
bool ctl_record_is_wanted(const struct ctl_record *r);
/* The state of a revoked name, or of the ID of a Machine that was deleted at at_s. */
enum ctl_recorded ctl_record_state(
	const struct ctl_record *r, enum model_record_kind kind, const char *name, int64_t at_s);
void ctl_record_add(struct ctl_record *r, enum model_record_kind kind, const char *name,
	int64_t at_s, struct ctl_runner *waker, const char *key);
/* Why the last write failed, of revocations before IDs; "": it did not. */
const char *ctl_record_problem(const struct ctl_record *r);

/* The ID may have been issued recently, and proves it (rats/ticket.h). */
bool ctl_record_id_counts(const struct ctl_record *r, const char *id);
/* IDs issued before this time are no longer valid, so Machines deleted before it need no record. */
void ctl_record_end_ids(struct ctl_record *r, int64_t before_s);
/* The record of IDs is full, and all of them may still be valid. */
bool ctl_record_ids_full(const struct ctl_record *r);

#endif
