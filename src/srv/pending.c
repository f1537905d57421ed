/* SPDX-License-Identifier: MIT */
/*
 * Two counters moved by cache changes: what a listener made and nothing matched. The number of
 * creates under way is added, so that a burst cannot pass a limit before the watch has told about
 * the first of them.
 */
#include "config.h"

#include "tec/srv/pending.h"

#include "tec/base/mem.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"

struct srv_pending {
	struct k8s_cache *machines, *aks; /* borrowed */
	size_t pending_machines, pending_aks, in_flight;
};

static bool machine_pending(const struct kobj *o)
{
	const struct model_machine *m = model_machine(o);

	return m && m->by_listener && !m->bound_at;
}

static bool ak_pending(const struct kobj *o)
{
	const struct model_ak *a = model_ak(o);

	return a && a->by_listener && !a->owner_uid;
}

static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_pending *p = arg;

	p->pending_machines += machine_pending(now);
	p->pending_machines -= machine_pending(was);
}

static void on_ak(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct srv_pending *p = arg;

	p->pending_aks += ak_pending(now);
	p->pending_aks -= ak_pending(was);
}

struct srv_pending *srv_pending_new(struct k8s_cache *machines, struct k8s_cache *aks)
{
	struct srv_pending *p = xcalloc(1, sizeof(*p));

	p->machines = machines;
	p->aks = aks;
	if (machines)
		k8s_cache_listen(machines, on_machine, p);
	if (aks)
		k8s_cache_listen(aks, on_ak, p);
	return p;
}

void srv_pending_free(struct srv_pending *p)
{
	free(p);
}

void srv_pending_begin(struct srv_pending *p)
{
	p->in_flight++;
}

void srv_pending_end(struct srv_pending *p)
{
	p->in_flight--;
}

size_t srv_pending_count(const struct srv_pending *p)
{
	return p->pending_machines + p->pending_aks + p->in_flight;
}

static bool pending_allowed(
	const struct srv_pending *p, const struct model_cluster *c, const char **why)
{
	*why = "Too many registrations wait for a match (registration.pendingLimit)";
	return srv_pending_count(p) < (size_t)c->pending_limit;
}

bool srv_pending_machine_allowed(
	const struct srv_pending *p, const struct model_cluster *c, const char **why)
{
	if (!pending_allowed(p, c, why))
		return false;
	*why = "The cluster has all the Machines it may have (registration.machineLimit)";
	return !p->machines ||
	       k8s_cache_count(p->machines) + p->in_flight < (size_t)c->machine_limit;
}

bool srv_pending_key_allowed(const struct srv_pending *p, const struct model_cluster *c,
	const char *uuid, const char **why)
{
	const struct kobj *o;
	int waiting = 0;

	if (!pending_allowed(p, c, why))
		return false;
	*why = "Too many keys wait for this Machine (registration.waitingKeysPerMachine)";
	if (!p->aks || !uuid)
		return true;
	/* At most waiting_keys + 1 steps: the walk ends as soon as the limit is met. */
	for (o = k8s_cache_first(p->aks, 0, uuid); o && waiting < c->waiting_keys;
		o = k8s_cache_next(p->aks, 0, o))
		waiting += ak_pending(o);
	return waiting < c->waiting_keys;
}
