/* SPDX-License-Identifier: MIT */
/* The controller of KbsConfig: which ones a change concerns. */
#include "config.h"

#include "kbsconfig_internal.h"

#include <string.h>

/* ---- which ones a change concerns */

/* Layout and guard come from annotations, which change without a new generation. */
static void map_kbsconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kbsconfig *c = self;
	bool moved = !was || !now || !str_eq(was->uid, now->uid) || was->deleting != now->deleting;

	ctl_runner_wake(c->kind.runner, was ? was->name : now->name);
	if (moved) /* another KbsConfig may count now */
		ctl_kind_wake_all(&c->kind);
	else if (!str_eq(model_kbsconfig(was)->layout, model_kbsconfig(now)->layout) ||
		 !str_eq(model_kbsconfig(was)->guard, model_kbsconfig(now)->guard))
		ctl_install_forget(/* the generation does not show this */
			&c->install, KBSCONFIG_INPUTS | KBSCONFIG_PORT);
}

/* Only a change of content matters. The Service depends on the port of kbs-config.toml alone, so
 * it is rendered again only if that changes. */
static void map_input(
	struct ctl_kbsconfig *c, bool secret, const struct kobj *was, const struct kobj *now)
{
	const struct model_input *a = (const struct model_input *)was,
				 *b = (const struct model_input *)now;
	const struct model_kbsconfig *holder = kbsconfig_view_holder(c->kind.state);

	if (a && b && !a->obj.unreadable && !b->obj.unreadable && str_eq(was->uid, now->uid) &&
		memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0)
		return; /* only labels or annotations changed */
	if (!holder || !model_kbsconfig_names(holder, secret, was ? was->name : now->name))
		return;
	ctl_install_forget(&c->install,
		KBSCONFIG_INPUTS | (a && b && a->file.port == b->file.port ? 0 : KBSCONFIG_PORT));
	ctl_runner_wake(c->kind.runner, holder->obj.name);
}

static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	map_input(self, false, was, now);
}

static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	map_input(self, true, was, now);
}

static const char *owner_of(const struct kobj *o)
{
	return o && !o->unreadable ? ((const struct model_plain *)o)->owner_uid : NULL;
}

/* A change of owner may change which KbsConfig counts. */
static void map_object(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kbsconfig *c = self;
	const char *name = was ? was->name : now->name;

	if (!str_eq(name, RENDER_KBSCONFIG_DEPLOYMENT) && !str_eq(name, RENDER_KBSCONFIG_SERVICE))
		return;
	if (was && now && str_eq(owner_of(was), owner_of(now)))
		ctl_kind_wake_index(&c->kind, c->kind.state->kbsconfigs, 1, owner_of(now));
	else
		ctl_kind_wake_all(&c->kind);
}

/* What was compared while leading may be outdated at the next start. */
static void forget(struct ctl_kind *k)
{
	ctl_install_follow(&((struct ctl_kbsconfig *)k)->install, NULL);
}

struct ctl_kind *ctl_kbsconfig_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{STATE_KBSCONFIGS, map_kbsconfig},
		{STATE_INPUT_CONFIGMAPS, map_configmap},
		{STATE_INPUT_SECRETS, map_secret},
		{STATE_DEPLOYMENTS, map_object},
		{STATE_SERVICES, map_object},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "kbsconfig",
		.of = STATE_KBSCONFIGS,
		.size = sizeof(struct ctl_kbsconfig),
		.look_size = sizeof(struct kbsconfig_look),
		.n_conds = KBSCONFIG_N_CONDS,
		.acts = kbsconfig_acts,
		.status = CTL_KBSCONFIG_APPLY_STATUS,
		.watches = watches,
		.look = kbsconfig_view_look,
		.ended = kbsconfig_act_ended,
		.tell = kbsconfig_act_tell,
		.add_status = kbsconfig_act_add_status,
		.forget = forget,
	};
	struct ctl_kind *k = ctl_kind_new(env, &conf);
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;

	ctl_install_init(&c->install, env, &kbsconfig_install, c, &k->acts.ops);
	return k;
}
