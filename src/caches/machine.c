/* SPDX-License-Identifier: MIT */
/* Which Machine holds an id, and what its Secret is. Marks with the Machine's uid decide; age and
 * ownership, which clients can influence, come last. */
#include "config.h"

#include "tec/caches/machine.h"

#include "tec/base/clock.h"
#include "tec/model/mark.h"
#include "tec/caches/cluster.h"
#include "tec/caches/adoption_cutoff.h"

/* Iteration is by age, so of equal rank the oldest wins. */
const struct model_machine *caches_machine_of_id(const struct caches *s, const char *id)
{
	const struct model_machine *best = NULL;
	int best_rank = -1;

	for (const struct kobj *o = k8s_cache_first(s->machines, 0, id); o;
		o = k8s_cache_next(s->machines, 0, o)) {
		const struct model_machine *m = model_machine(o);
		int rank = model_machine_delivered(m) ? 2 : m->announced ? 1 : 0;

		if (rank > best_rank) {
			best = m;
			best_rank = rank;
		}
	}
	return best;
}

/* Machines from before the marks began are unknown, not "never". */
bool caches_machine_never_attested(const struct caches *s, const struct model_machine *m)
{
	return m && m->by_listener && !m->attested_s && s->marks_since_s != 0 &&
	       m->obj.created_s > s->marks_since_s;
}

/* A listener's Machine first waits for a key; bound_at starts the wait for its node. */
int64_t caches_machine_waits_since_s(const struct model_machine *m)
{
	int64_t us;

	return m->bound_at && clock_parse(m->bound_at, &us) == 0 ? us / 1000000 : m->obj.created_s;
}

/* A restored Machine without a key may have had one since the backup was made, and its node's disk
 * may be encrypted with its disk key. */
bool caches_machine_may_expire(const struct caches *s, const struct model_machine *m)
{
	return m->by_listener &&
	       (caches_machine_never_attested(s, m) ||
		       (!m->bound_at && !caches_adoption_cutoff_was_restored(s, &m->obj)));
}

/* A deletion at that age is taken for the operator's own; a user's looks the same. */
bool caches_machine_is_expired(const struct caches *s, const struct model_machine *m)
{
	const struct model_cluster *policy = caches_cluster_policy(s);

	return caches_machine_may_expire(s, m) && policy && policy->pending_ttl_ms > 0 &&
	       (m->deleted_s - caches_machine_waits_since_s(m)) * 1000 >= policy->pending_ttl_ms;
}

/* Foreign comes before malformed: the content of somebody else's Secret is not judged. */
enum caches_luks caches_machine_luks(const struct caches *s, const struct model_machine *m)
{
	const struct model_secret *secret = m->id_valid ? caches_secret(s, m->id) : NULL;

	if (!secret)
		return CACHES_LUKS_ABSENT;
	if (secret->obj.unreadable)
		return CACHES_LUKS_UNREADABLE;
	if (secret->n_owners != 1 || !str_eq(secret->owner_uid, m->obj.uid) ||
		(secret->shape != MODEL_SECRET_LUKS && secret->shape != MODEL_SECRET_LUKS_BAD))
		return CACHES_LUKS_FOREIGN;
	if (secret->shape == MODEL_SECRET_LUKS_BAD)
		return CACHES_LUKS_MALFORMED;
	return secret->obj.deleting ? CACHES_LUKS_DELETING : CACHES_LUKS_OK;
}

/* Without a well-formed key there is no hash, and nothing is announced. */
bool caches_machine_announces(const struct model_machine *m, const struct model_secret *s)
{
	char hex[SHA256_HEX_LEN + 1];

	return s && model_mark_announces(m->announced, model_secret_key_sha256(s, hex));
}

/* The hash of version 0.1.0 proves nothing, but if present it must not contradict the key. */
bool caches_machine_inherits(
	const struct caches *s, const struct model_machine *m, const struct model_secret *secret)
{
	char hex[SHA256_HEX_LEN + 1];

	return caches_machine_luks(s, m) == CACHES_LUKS_OK && !m->announced &&
	       !model_machine_delivered(m) && caches_adoption_cutoff_is_after(s, &m->obj) &&
	       caches_adoption_cutoff_is_after(s, &secret->obj) &&
	       (!m->old_key_sha256 ||
		       str_eq(m->old_key_sha256, model_secret_key_sha256(secret, hex)));
}

/* A finalizer without any mark is the trace of another operator, which may have generated a key. */
bool caches_machine_lost_key(const struct caches *s, const struct model_machine *m)
{
	return m->has_finalizer && !m->announced && !model_machine_delivered(m) &&
	       caches_adoption_cutoff_is_after(s, &m->obj);
}
