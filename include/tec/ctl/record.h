/* SPDX-License-Identifier: MIT */
/*
 * Writes down what was deleted (model/record.h) before the finalizer that remembers it goes: what
 * every Trustee confirmed to be revoked, and ids of deleted Machines that a listener would still
 * take. Controllers add names and wait; everything that waits goes into one write, one write at a
 * time. A key that added a name is woken when the ConfigMap with it is in the cache, and when the
 * write fails or works again.
 *
 * Whether a name is written down is read from the cache; only what still waits is in memory, and is
 * added again by those who need it after a restart. Revocations are kept for MODEL_RECORD_DAYS. When
 * every ConfigMap is full, the one with the oldest revocations is overwritten, and keeps the time of
 * the newest of them. Ids have one ConfigMap; when it is full, further ids wait until those in it
 * have ended.
 */
#ifndef TEC_CTL_RECORD_H
#define TEC_CTL_RECORD_H

#include "tec/ctl/env.h"
#include "tec/ctl/runner.h"
#include "tec/state/record.h"

enum ctl_recorded {
	CTL_RECORDED, /* or it need not be */
	CTL_RECORD_WAITS,
	CTL_RECORD_FAILS, /* it waits, and the last write failed */
	CTL_RECORD_MISSING,
	CTL_RECORDED_N,
};

struct ctl_record;
struct ctl_record *ctl_record_new(const struct ctl_env *env);
void ctl_record_free(struct ctl_record *r);
void ctl_record_off(struct ctl_record *r); /* forgets what waits, cancels the write */

/* A Trustee with a store of its own is administered: it may be set back. The embedded broker's store
 * is the API's, which is set back with it, and a Trustee with files has none. */
bool ctl_record_is_wanted(const struct ctl_record *r);
/* Of a name that was revoked, or of the id of a Machine that was deleted at at_s. */
enum ctl_recorded ctl_record_state(
	const struct ctl_record *r, enum model_record_kind kind, const char *name, int64_t at_s);
void ctl_record_add(struct ctl_record *r, enum model_record_kind kind, const char *name,
	int64_t at_s, struct ctl_runner *waker, const char *key);
const char *ctl_record_problem(const struct ctl_record *r); /* of the last write; "": none */

/* The id may be one that was handed out lately, and proves it (rats/ticket.h). */
bool ctl_record_id_counts(const struct ctl_record *r, const char *id);
/* No id that was handed out before this time is valid any more: of Machines deleted before it none
 * has to be known. */
void ctl_record_end_ids(struct ctl_record *r, int64_t before_s);
/* As many ids are recorded as there is place for, and all may still be valid. */
bool ctl_record_ids_full(const struct ctl_record *r);

#endif
