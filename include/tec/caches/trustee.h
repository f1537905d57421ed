/* SPDX-License-Identifier: MIT */
/* What of ours the administered Trustees may hold. */
#ifndef TEC_CACHES_TRUSTEE_H
#define TEC_CACHES_TRUSTEE_H

#include "tec/caches/caches.h"
#include "tec/model/lost.h"

#define CACHES_TRUSTEE_MEMORY MODEL_SERVERS_CONFIGMAP /* servers that may hold ours */

/* trustee-deployment exists and has an owner or was rendered by us; or this is unknown. */
bool caches_trustee_is_left(const struct caches *s);
/* Another cluster administers the primary Trustee, and this one never did or gave it away:
 * model_cluster_leaves_trustee(). */
bool caches_trustee_is_followed(const struct caches *s);
/* A Trustee is administered according to the API: kbs_sync does not know about it yet right after a
 * start. */
bool caches_trustee_is_administered(const struct caches *s);
/* kbs_sync_observed(), but NONE only when certainly no Trustee is administered. */
enum kbs_observed caches_trustee_observed(
	const struct caches *s, enum kbs_kind kind, const char *name);
static inline bool caches_trustee_gone(enum kbs_observed observed)
{
	return observed == KBS_OBSERVED_ABSENT || observed == KBS_OBSERVED_NONE;
}
/* The same for one key: several keys may share an identity's name. ak: the AttestationKey's
 * name. */
enum kbs_observed caches_trustee_observed_key(
	const struct caches *s, const char *identity, const char *ak);
/* This key is not declared under that name, and is replaced by what is declared, or by a
 * tombstone. */
bool caches_trustee_withdrawn(const struct caches *s, const char *identity, const char *ak);
/* The content of Trustee is being read, as after every start: until the answer, a condition that
 * claims something to be there is not withdrawn. */
bool caches_trustee_is_probing(const struct caches *s);
/* The same for a condition of one of many objects, until everything was sent to Trustee again: most
 * of it is still there, and the others would change twice within seconds. */
bool caches_trustee_is_catching_up(const struct caches *s);
/*
 * Trustee is being filled, and this object is on its way or already there: every object is looked
 * at again when that has ended, and writing statuses one by one would take the time that keys need.
 * Removals are not waited for.
 */
bool caches_trustee_is_filling(const struct caches *s, enum kbs_kind kind, const char *name);

#endif
