/* SPDX-License-Identifier: MIT */
/* One listener per cache; an Event is posted once for each object that becomes unreadable. */
#include "config.h"

#include "tec/ctl/unreadable.h"

#include "tec/base/mem.h"

struct ctl_unreadable {
	struct listened {
		struct k8s_events *events;
		const struct kobj_gvk *gvk;
	} listened[CACHES_N_KINDS];
};

/* A later version of the same object, still unreadable, is not reported again. */
static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	const struct listened *l = arg;

	if (!now || !now->unreadable || (was && was->unreadable && str_eq(was->uid, now->uid)))
		return;
	k8s_events_post(l->events, l->gvk, now, K8S_EVENT_WARNING, "Unreadable", "Read",
		"%s %s is larger than 2 MiB and cannot be read; reduce its size. It is ignored until then.",
		l->gvk->kind, now->name);
}

/* One listener for each kind of object, for the life of the caches. */
struct ctl_unreadable *ctl_unreadable_new(const struct caches *s, struct k8s_events *events)
{
	struct ctl_unreadable *u = xcalloc(1, sizeof(*u));

	for (int i = 0; i < CACHES_N_KINDS; i++) {
		u->listened[i] = (struct listened){events, caches_kinds[i].gvk};
		k8s_cache_listen(s->cache[i], on_change, &u->listened[i]);
	}
	return u;
}

void ctl_unreadable_free(struct ctl_unreadable *u)
{
	free(u);
}
