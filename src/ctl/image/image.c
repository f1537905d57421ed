/* SPDX-License-Identifier: MIT */
/*
 * The controller of ApprovedImage: which images a change concerns. A change that affects the
 * combinations of all images only marks them as outdated and wakes the one key that computes them.
 */
#include "config.h"

#include "image_internal.h"

#include <string.h>

#include "tec/ctl/adoption_cutoff.h"

/* The combinations depend on these members only; a status write must not compute them again. */
static void map_image(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;

	ctl_runner_wake(c->kind.runner, was ? was->name : now->name);
	if (!was || !now || !str_eq(was->uid, now->uid) || was->deleting != now->deleting ||
		was->generation != now->generation ||
		model_image(was)->has_finalizer != model_image(now)->has_finalizer ||
		!str_eq(model_image(was)->pcrs_sha256, model_image(now)->pcrs_sha256))
		image_values_changed(c);
}

/* The record of reference values concerns the key "*" alone; entries, the age of this operator
 * and platforms concern every image. */
static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;
	const struct model_configmap *a = (const struct model_configmap *)was,
				     *b = (const struct model_configmap *)now;
	bool same = a && b && a->is_platform == b->is_platform &&
		    memcmp(a->variables, b->variables, SHA256_LEN) == 0;
	const char *name = was ? was->name : now->name;

	if (str_eq(name, MODEL_RV_CONFIGMAP)) {
		ctl_runner_wake(c->kind.runner, CTL_IMAGE_ALL);
	} else if (str_eq(name, MODEL_PCRS_CONFIGMAP) ||
		   str_eq(name, CTL_ADOPTION_CUTOFF_CONFIGMAP) ||
		   (image_platforms_name(c->kind.caches, name) && !same)) {
		image_values_changed(c);
		ctl_kind_wake_all(&c->kind);
	}
}

/* Platforms, PCR 7 and authority all come from the cluster. */
static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;

	if (model_cluster_means_the_same(was, now))
		return;
	image_values_changed(c);
	ctl_kind_wake_all(&c->kind);
}

/* Only boot sets and arrays are of interest; a single key handles all of them. */
static void on_sync(struct ctl_kind *k, enum kbs_kind kind, const char *name)
{
	struct ctl_image *c = (struct ctl_image *)k;

	if (kind != KBS_REFVALUE)
		return;
	if (!name) /* the set of Trustees changed: what a new one holds is unknown */
		c->values.was_gone = false;
	else if (!str_starts(name, RENDER_BOOT_PREFIX) && !str_starts(name, "tpm_"))
		return;
	ctl_runner_wake(c->kind.runner, CTL_IMAGE_ALL);
}

/* What was computed before this replica led is outdated. */
static void started(struct ctl_kind *k)
{
	image_values_changed((struct ctl_image *)k);
}

static void forget(struct ctl_kind *k)
{
	struct ctl_image *c = (struct ctl_image *)k;

	while (c->infos)
		image_info_drop(c, c->infos->name);
	image_info_forget_pcrs(c);
	image_values_fini(&c->values);
}

/* How values are computed is decided once, by what cmd provides: a child process or Jobs. */
struct ctl_kind *ctl_image_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{CACHES_IMAGES, map_image},
		{CACHES_CONFIGMAPS, map_configmap},
		{CACHES_JOBS, image_job_map},
		{CACHES_PODS, image_job_map_pod},
		{CACHES_CLUSTERS, map_cluster},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "image",
		.of = CACHES_IMAGES,
		.size = sizeof(struct ctl_image),
		.look_size = sizeof(struct image_look),
		.n_conds = IMAGE_N_CONDS,
		.acts = image_acts,
		.status = CTL_IMAGE_APPLY_STATUS,
		.watches = watches,
		.look = image_view_look,
		.ended = image_act_ended,
		.tell = image_act_tell,
		.on_sync = on_sync,
		.started = started,
		.forget = forget,
	};

	struct ctl_kind *k = ctl_kind_new(env, &conf);

	((struct ctl_image *)k)->way = env->image_compute ? &image_by_child : &image_by_job;
	return k;
}
