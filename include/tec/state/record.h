/* SPDX-License-Identifier: MIT */
/* Deletions recorded in the ConfigMaps of model/record.h. */
#ifndef TEC_STATE_RECORD_H
#define TEC_STATE_RECORD_H

#include "tec/model/record.h"
#include "tec/state/state.h"

/* Borrowed until return to the loop; NULL: absent, unreadable, or without text. */
const struct model_record *state_record(const struct state *s, const char *configmap);
/* Tell whether the name is recorded with a time of since_s or later. */
bool state_record_has(
	const struct state *s, enum model_record_kind kind, const char *name, int64_t since_s);
/* Find the entry of a deleted Machine with this id; NULL: none. Borrowed. */
const struct model_record_entry *state_record_of_id(const struct state *s, const char *id);
/* Call fn for what was revoked from Trustee since then, in no order; a name may occur twice. */
void state_record_each(const struct state *s, int64_t since_s,
	void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg);
/* Revocations up to this time are missing, because there was no room; 0: none are missing. */
int64_t state_record_dropped_s(const struct state *s);

#endif
