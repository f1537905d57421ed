/* SPDX-License-Identifier: MIT */
/* Deletions recorded in the ConfigMaps of model/record.h. */
#ifndef TEC_CACHES_RECORD_H
#define TEC_CACHES_RECORD_H

#include "tec/model/record.h"
#include "tec/caches/caches.h"

/* Borrowed until return to the loop; NULL: absent, unreadable, or without text. */
const struct model_record *caches_record(const struct caches *s, const char *configmap);
/* Tell whether the name is recorded with a time of since_s or later. */
bool caches_record_has(
	const struct caches *s, enum model_record_kind kind, const char *name, int64_t since_s);
/* Find the entry of a deleted Machine with this id; NULL: none. Borrowed. */
const struct model_record_entry *caches_record_of_id(const struct caches *s, const char *id);
/* Call fn for what was revoked from Trustee since then, in no order; a name may occur twice. */
void caches_record_each(const struct caches *s, int64_t since_s,
	void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg);
/* Return the time (wall clock) before which revocations are no longer kept. Those that a
 * lost server missed are kept until it is back. */
int64_t caches_record_oldest_s(const struct caches *s);
/* Revocations up to this time are missing, because there was no room; 0: none are missing. */
int64_t caches_record_dropped_s(const struct caches *s);

#endif
