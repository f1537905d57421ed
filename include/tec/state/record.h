/* SPDX-License-Identifier: MIT */
/* What the ConfigMaps of model/record.h say was deleted. */
#ifndef TEC_STATE_RECORD_H
#define TEC_STATE_RECORD_H

#include "tec/model/record.h"
#include "tec/state/state.h"

/* Borrowed for the turn; NULL: it is not there, cannot be read, or has no text. */
const struct model_record *state_record(const struct state *s, const char *configmap);
/* The name is recorded, at since_s or later. */
bool state_record_has(
	const struct state *s, enum model_record_kind kind, const char *name, int64_t since_s);
/* Of the Machine with this id, which somebody deleted; NULL: there was none. Borrowed. */
const struct model_record_entry *state_record_of_id(const struct state *s, const char *id);
/* What was revoked from Trustee since then, in no order; a name may come twice. */
void state_record_each(const struct state *s, int64_t since_s,
	void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg);
/* Revocations up to this time had no place any more; 0: all of them are there. */
int64_t state_record_dropped_s(const struct state *s);

#endif
