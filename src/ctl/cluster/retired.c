/* SPDX-License-Identifier: MIT */
/*
 * Finds what is left to do before an operator is retired. The other controllers revoke again after
 * each start, and a name that they have not handled yet counts as left. Once every Trustee has
 * confirmed, the condition keeps that fact: a restart while a Trustee is unreachable does not undo
 * it.
 */
#include "config.h"

#include "cluster_internal.h"

#include "tec/model/image.h"

struct left {
	const struct state *state;
	bool any;
	bool was_confirmed; /* the condition was Retired: only objects with our finalizer count */
};

/* A Machine is left while it has our finalizer, or a Trustee may still hold its disk key. */
static void machine(void *arg, const struct kobj *o)
{
	struct left *l = arg;
	const struct model_machine *m = model_machine(o);
	char path[RATS_RESOURCE_PATH_MAX];

	l->any |= o->unreadable || m->has_finalizer;
	if (l->any || l->was_confirmed || !m->id_valid)
		return;
	rats_resource_path(m->id, path);
	l->any = !state_trustee_gone(state_trustee_observed(l->state, KBS_RESOURCE, path));
}

/* An AttestationKey is left while a Trustee may still hold its identity. */
static void ak(void *arg, const struct kobj *o)
{
	struct left *l = arg;
	char name[RATS_IDENTITY_NAME_LEN + 1];

	l->any |= o->unreadable;
	if (!l->any && !l->was_confirmed && model_ak_identity(model_ak(o), name))
		l->any = !state_trustee_gone(state_trustee_observed_key(l->state, name, o->name));
}

/* Only Secrets of attestation keys have a finalizer of this operator. */
static void secret(void *arg, const struct kobj *o)
{
	struct left *l = arg;

	l->any |= !o->unreadable && model_secret(o)->has_ak_finalizer;
}

static void image(void *arg, const struct kobj *o)
{
	struct left *l = arg;

	l->any |= o->unreadable || model_image(o)->has_finalizer;
}

/* The cheap counts come first: the walk over all objects happens only near the end. */
bool cluster_retired(const struct ctl_cluster *c, const struct model_cluster *served)
{
	const struct state *s = c->env->state;
	bool was = str_eq(
		served->cond[CLUSTER_AUTHORITY].reason, model_cluster_reason(CLUSTER_RETIRED));
	struct left l = {.state = s, .was_confirmed = was};
	size_t declared, confirmed, revoking;

	kbs_sync_counts(s->sync, &declared, &confirmed, &revoking);
	if (declared > 0 || (revoking > 0 && !was))
		return false;
	k8s_cache_each(s->images, image, &l);
	k8s_cache_each(s->machines, machine, &l);
	if (!l.any)
		k8s_cache_each(s->secrets, secret, &l);
	if (!l.any)
		k8s_cache_each(s->aks, ak, &l);
	return !l.any;
}
