/* SPDX-License-Identifier: MIT */
/* The controller of TrusteeConfig: where its objects are, and which TrusteeConfigs a change
 * concerns. */
#include "config.h"

#include "trusteeconfig_internal.h"

#include <stdlib.h>

#include "tec/base/mem.h"

/* ---- objects */

/* Children are of four kinds, each with its own cache. */
struct k8s_cache *trusteeconfig_cache(const struct state *s, int child)
{
	enum render_trusteeconfig_child i = (enum render_trusteeconfig_child)child;

	return render_child_is_configmap(i)  ? s->input_configmaps
	       : render_child_is_secret(i)   ? s->input_secrets
	       : i == RENDER_CHILD_KBSCONFIG ? s->kbsconfigs
					     : s->claims;
}

/* Names of children are fixed, so a child is found by name; its owner is checked by the look. */
const struct kobj *trusteeconfig_child(
	const struct state *s, const struct model_trusteeconfig *m, int child)
{
	cleanup_free char *name = render_child_name(m, (enum render_trusteeconfig_child)child);

	return k8s_cache_find(trusteeconfig_cache(s, child), name);
}

/* NULL also if the child is not a copy of anything. */
const struct model_input *trusteeconfig_source(
	const struct state *s, const struct model_trusteeconfig *m, int child)
{
	const char *name = render_child_source(m, (enum render_trusteeconfig_child)child);

	return name ? model_input(k8s_cache_find(s->input_secrets, name)) : NULL;
}

struct trusteeconfig_stuck *trusteeconfig_stuck(const struct ctl_trusteeconfig *c, const char *name)
{
	struct trusteeconfig_stuck *s;

	LIST_FOREACH (s, &c->stuck, link)
		if (str_eq(s->of, name))
			return s;
	return NULL;
}

static void drop(struct trusteeconfig_stuck *s)
{
	LIST_REMOVE(s, link);
	free(s->of);
	free(s->rv);
	free(s);
}

void trusteeconfig_unstick(struct ctl_trusteeconfig *c, const char *name)
{
	struct trusteeconfig_stuck *s = trusteeconfig_stuck(c, name);

	if (s)
		drop(s);
}

/* ---- which ones a change concerns */

/* A new spec may solve what the last write failed for. */
static void map_trusteeconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_trusteeconfig *c = self;
	const char *name = was ? was->name : now->name;

	if (!was || !now || was->generation != now->generation)
		trusteeconfig_unstick(c, name);
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
		drop(LIST_FIRST(&c->stuck));
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
