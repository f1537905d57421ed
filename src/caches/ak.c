/* SPDX-License-Identifier: MIT */
/* A key that is bound by a mark wins. Only without one, a key that another operator approved can be
 * inherited, if both are older than this operator: owner and condition alone prove nothing, because
 * clients can write them. */
#include "config.h"

#include "tec/caches/ak.h"

#include <string.h>

#include "tec/caches/adoption_cutoff.h"

/* bound_at means that this operator bound a key before, even if that key is gone: then nothing is
 * inherited any more. */
bool caches_ak_is_inherited(
	const struct caches *s, const struct model_ak *ak, const struct model_machine *m)
{
	return !m->bound_at && !ak->obj.deleting && ak->spki_sha256 &&
	       ak->cond[AK_APPROVED].status == KOBJ_COND_TRUE && model_ak_is_of(ak, m->obj.uid) &&
	       caches_adoption_cutoff_is_after(s, &ak->obj) &&
	       caches_adoption_cutoff_is_after(s, &m->obj);
}

/* The bound key must still have the SPKI of the mark: a key that was replaced under the same uid,
 * or is being deleted, is none. Of keys to be inherited the youngest counts, because it was approved
 * last. */
const struct model_ak *caches_ak_of_machine(const struct caches *s, const struct model_machine *m)
{
	const struct model_ak *best = NULL;

	for (const struct kobj *o = k8s_cache_first(s->aks, 0, m->id); o;
		o = k8s_cache_next(s->aks, 0, o)) {
		const struct model_ak *ak = model_ak(o);

		if (m->bound_key && str_eq(m->bound_key, o->uid))
			return o->deleting || !str_eq(m->bound_spki, ak->spki_sha256) ? NULL : ak;
		if (caches_ak_is_inherited(s, ak, m) &&
			(!best || o->created_s > best->obj.created_s ||
				(o->created_s == best->obj.created_s &&
					strcmp(o->name, best->obj.name) < 0)))
			best = ak;
	}
	return best;
}
