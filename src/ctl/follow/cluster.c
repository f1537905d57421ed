/* SPDX-License-Identifier: MIT */
/*
 * The TrustedExecutionCluster: remembers which one is followed, by the uid of the one there, before
 * anything is copied from it. Of the peer: what it means for this one that it decides, or never will again.
 */
#include "config.h"

#include "follow_internal.h"

#include "tec/base/json.h"

enum cluster_do {
	CLUSTER_NOTHING,
	CLUSTER_NOTE_UID,
	CLUSTER_FREEZE,
	CLUSTER_NOTE_RETIRED,
	CLUSTER_N_DO
};

struct cluster_look {
	struct ctl_look base;
	const struct model_cluster *there;
};

static enum cluster_do look_at_peer(const struct ctl_follow *f)
{
	struct ctl_follow_peer_view v;

	follow_peer_view(f, &v);
	if (v.read && v.self && ctl_follow_peer(&v, f->state->peer) == STATE_PEER_DECIDES)
		return CLUSTER_FREEZE;
	return v.read && v.retired ? CLUSTER_NOTE_RETIRED : CLUSTER_NOTHING;
}

static int look(struct ctl_kind *k, const char *name, struct ctl_act *a, struct ctl_look *out)
{
	struct cluster_look *l = (struct cluster_look *)out;
	struct ctl_follow *f = follow_kind(k)->f;
	const struct model_cluster *here = state_cluster_policy(k->state);

	l->base.o = k8s_cache_find(k->state->clusters, name);
	l->base.over = !l->base.o;
	l->there = state_cluster(&f->source.state);
	if (!here || l->base.o != &here->obj || !l->there)
		return CLUSTER_NOTHING;
	if (here->authority != MODEL_AUTHORITY_FOLLOWING)
		return look_at_peer(f);
	if (here->followed_uid ||
		state_cluster_authority(&f->source.state) == MODEL_AUTHORITY_FOLLOWING)
		return CLUSTER_NOTHING;
	return CLUSTER_NOTE_UID;
}

static struct op *note_uid(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	ctl_add_mark(marks, look->o, MODEL_CLUSTER_FOLLOWED_MARK, l->there->obj.uid);
	json_add(meta, "annotations", marks);
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

static struct op *freeze(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	json_add(patch, "spec", json_add_str(json_obj(), "authority", "Frozen"));
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

static struct op *note_retired(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct cluster_look *l = (const struct cluster_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	ctl_add_mark(marks, look->o, MODEL_CLUSTER_RETIRED_MARK, l->there->obj.uid);
	json_add(meta, "annotations", marks);
	return ctl_kind_patch(k, a, &kobj_cluster, a->name, patch);
}

static const struct ctl_do acts[CLUSTER_N_DO] = {
	[CLUSTER_NOTE_UID] = {"note which cluster is followed", "the cluster to follow was noted",
		CTL_DO_ANSWERS_SELF | CTL_DO_FOLLOWING, .start = note_uid},
	[CLUSTER_FREEZE] = {"set spec.authority to Frozen",
		"the peer decides, spec.authority was set to Frozen",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_WARNS, .start = freeze},
	[CLUSTER_NOTE_RETIRED] = {"note that the peer is Retired", "the peer is Retired",
		CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = note_retired},
};

static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	follow_check(follow_kind(k)->f);
	return false;
}

static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = self;

	ctl_runner_wake(k->runner, was ? was->name : now->name);
	follow_check(follow_kind(k)->f);
}

static void map_source_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	ctl_kind_wake_all(self);
}

struct ctl_kind *follow_cluster_new(struct ctl_follow *f)
{
	static const struct ctl_watch watches[] = {{STATE_CLUSTERS, map_cluster}, {.map = NULL}};
	static const struct ctl_kind_conf conf = {
		.name = "follow",
		.of = STATE_CLUSTERS,
		.size = sizeof(struct follow_kind),
		.look_size = sizeof(struct cluster_look),
		.acts = acts,
		.status = -1,
		.knows_cached = true,
		.watches = watches,
		.look = look,
		.ended = ended,
		.forget = follow_kind_forget,
	};
	struct ctl_kind *k = ctl_kind_new(f->env, &conf);

	follow_kind(k)->f = f;
	ctl_runner_watch(k->runner, f->source.state.clusters, map_source_cluster);
	return k;
}
