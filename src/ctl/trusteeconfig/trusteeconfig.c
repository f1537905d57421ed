/* SPDX-License-Identifier: MIT */
/* The controller of TrusteeConfig: which ones a change concerns. */
#include "config.h"

#include "trusteeconfig_internal.h"

#include "tec/base/mem.h"

/* ---- which ones a change concerns */

/* A new spec may solve what the last write failed for. */
static void map_trusteeconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trusteeconfig *c = self;
	const char *name = was ? was->name : now->name;

	if (!was || !now || was->generation != now->generation)
		trusteeconfig_act_unstick(c, name);
	ctl_runner_wake(c->kind.runner, name);
}

struct concerned {
	struct ctl_kind *kind;
	const char *name;
};

/* Names of children begin with that of their TrusteeConfig; the others are named by spec or
 * shared. */
static void wake_if_concerned(void *arg, const struct kobj *o)
{
	const struct concerned *c = arg;
	const struct model_trusteeconfig *m = model_trusteeconfig(o);
	cleanup_free char *sample = render_child_name(m, RENDER_CHILD_SAMPLE);

	if (!o->unreadable && (str_starts(c->name, o->name) || str_eq(c->name, m->https_secret) ||
				      str_eq(c->name, m->token_secret) || str_eq(c->name, sample)))
		ctl_runner_wake(c->kind->runner, o->name);
}

/* Any object may be a child or a source by its name; there are few TrusteeConfigs, so all are
 * asked. */
static void map_child(void *self, const struct kobj *was, const struct kobj *now)
{
	struct concerned c = {self, was ? was->name : now->name};

	k8s_cache_each(c.kind->state->trusteeconfigs, wake_if_concerned, &c);
}

/* A new leader tries every write again. */
static void forget(struct ctl_kind *k)
{
	struct ctl_trusteeconfig *c = (struct ctl_trusteeconfig *)k;

	while (!LIST_EMPTY(&c->stuck))
		trusteeconfig_act_unstick(c, LIST_FIRST(&c->stuck)->of);
}

struct ctl_kind *ctl_trusteeconfig_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{STATE_TRUSTEECONFIGS, map_trusteeconfig},
		{STATE_KBSCONFIGS, map_child},
		{STATE_INPUT_CONFIGMAPS, map_child},
		{STATE_INPUT_SECRETS, map_child},
		{STATE_CLAIMS, map_child},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "trusteeconfig",
		.of = STATE_TRUSTEECONFIGS,
		.size = sizeof(struct ctl_trusteeconfig),
		.look_size = sizeof(struct trusteeconfig_look),
		.n_conds = TRUSTEECONFIG_N_CONDS,
		.acts = trusteeconfig_acts,
		.status = CTL_TRUSTEECONFIG_APPLY_STATUS,
		.watches = watches,
		.look = trusteeconfig_view_look,
		.ended = trusteeconfig_act_ended,
		.tell = trusteeconfig_act_tell,
		.add_status = trusteeconfig_act_add_status,
		.forget = forget,
	};

	return ctl_kind_new(env, &conf);
}
