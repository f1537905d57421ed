/* SPDX-License-Identifier: MIT */
/* Times are compared with creationTimestamps, which the API server sets; the marker is created by
 * it as well, so one clock counts. */
#include "config.h"

#include "tec/caches/adoption_cutoff.h"

#include "tec/base/clock.h"
#include "tec/caches/cluster.h"

bool caches_adoption_cutoff_known(const struct caches *s)
{
	return s->marker_s != INT64_MIN;
}

/* adopt-before in the future is ignored: it would adopt objects that clients create meanwhile. */
int64_t caches_adoption_cutoff_s(const struct caches *s)
{
	int64_t since_s = s->marker_s;
	const struct model_cluster *c = caches_cluster(s);

	if (!caches_adoption_cutoff_known(s) || !c || c->adopt_before_s > clock_wall_s())
		return since_s;
	return c->adopt_before_s > since_s ? c->adopt_before_s : since_s;
}

/* An object of the same second is not older: it may be newer, and must not be adopted. */
bool caches_adoption_cutoff_is_after(const struct caches *s, const struct kobj *o)
{
	return o->created_s < caches_adoption_cutoff_s(s);
}

/* An object of the same second counts as restored: creationTimestamps have no fractions. */
bool caches_adoption_cutoff_was_restored(const struct caches *s, const struct kobj *o)
{
	return s->restored_s != 0 && o->created_s <= s->restored_s;
}
