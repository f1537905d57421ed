/* SPDX-License-Identifier: MIT */
/* What the administered Trustees may hold of ours. */
#ifndef TEC_STATE_TRUSTEE_H
#define TEC_STATE_TRUSTEE_H

#include "tec/state/state.h"

#define STATE_TRUSTEE_MEMORY "tec-trustees" /* ConfigMap: servers that may still hold something */

/* trustee-deployment is there, and has an owner or is rendered by us; or it is not known. */
bool state_trustee_is_left(const struct state *s);
/* A Trustee is administered, as the API shows it: kbs_sync does not know of it yet right after a
 * start. */
bool state_trustee_is_administered(const struct state *s);
/* kbs_sync_observed(), but NONE only when really no Trustee is administered. */
enum kbs_observed state_trustee_observed(
	const struct state *s, enum kbs_kind kind, const char *name);
static inline bool state_trustee_gone(enum kbs_observed observed)
{
	return observed == KBS_OBSERVED_ABSENT || observed == KBS_OBSERVED_NONE;
}
/* The same of one key: several may share an identity's name. ak: the AttestationKey's name. */
enum kbs_observed state_trustee_observed_key(
	const struct state *s, const char *identity, const char *ak);
/* This key is not declared under that name, and what is declared, or a tombstone, replaces it. */
bool state_trustee_withdrawn(const struct state *s, const char *identity, const char *ak);
/* What Trustee holds is being read, as after every start: a condition that says that something
 * is there is not taken back before the answer. */
bool state_trustee_is_probing(const struct state *s);
/*
 * Trustee is being filled, and this is on its way or there: every object looks again when that has
 * ended, and writing statuses one by one would take the time that keys need. What is being removed
 * is not waited for.
 */
bool state_trustee_is_filling(const struct state *s, enum kbs_kind kind, const char *name);

#endif
