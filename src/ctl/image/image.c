/* SPDX-License-Identifier: MIT */
/*
 * ApprovedImage: look, decide one thing, do it, return; and which images a change concerns. What
 * touches the combinations of all images only marks them, and wakes the one key that computes them.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/since.h"

/* ---- what is remembered of an image */

static void info_drop(struct ctl_image *c, const char *name)
{
	for (struct image_info **pp = &c->infos, *i; (i = *pp); pp = &i->next) {
		if (!str_eq(i->name, name))
			continue;
		*pp = i->next;
		model_pcrs_free(i->kept);
		free(i->name);
		free(i->uid);
		free(i);
		return;
	}
}

/* Nothing is left to be had: what was tried for it counts no more. */
static void info_rest(const struct ctl_image *c, struct image_info *i)
{
	i->label = c->env->image_label ? CTL_IMAGE_LABEL_ASK : CTL_IMAGE_LABEL_NONE;
	i->tries = i->attempts = 0;
	i->nonce[0] = i->note[0] = i->problem[0] = i->result_why[0] = '\0';
}

struct image_info *image_info_get(struct ctl_image *c, const struct kobj *o)
{
	struct image_info *i = c->infos;

	while (i && !str_eq(i->name, o->name))
		i = i->next;
	if (i && str_eq(i->uid, o->uid))
		return i;
	info_drop(c, o->name);
	i = xcalloc(1, sizeof(*i));
	i->name = xstrdup(o->name);
	i->uid = xstrdup(o->uid);
	info_rest(c, i);
	i->next = c->infos;
	c->infos = i;
	return i;
}

/* ---- the step */

/* A look, after which what a Job said is at hand. */
static void look(struct ctl_image *c, const struct kobj *o, struct ctl_act *a, struct image_look *l)
{
	struct log_ctx lc = {"ApprovedImage", c->env->ns, o->name, o->uid};
	struct image_info *i = image_info_get(c, o);
	struct err err = ERR_INIT;

	image_look(c, o->name, a, l);
	if (l->v.entry == CTL_IMAGE_ENTRY_GOOD)
		image_keep_good(i, l->entry);
	if (!l->result || l->v.made)
		return;
	if (image_take_result(i, l, &err))
		log_info(&lc, "values taken from the Job's message", NULL);
	snprintf(i->result_why, sizeof(i->result_why), "%s", err.text);
	image_look(c, o->name, a, l);
}

static struct queue_next step_image(struct ctl_image *c, const char *name)
{
	struct ctl_act *a = ctl_act_find(&c->acts, name);
	const struct kobj *o = k8s_cache_find(c->env->state->images, name);
	struct queue_next next;
	struct image_look l;
	enum ctl_image_do d;

	if (ctl_act_busy(a, &next))
		return next;
	if (!o) {
		ctl_act_drop(a);
		info_drop(c, name);
		ctl_runner_forget(c->runner, name);
		return ctl_settled();
	}
	look(c, o, a, &l);
	d = ctl_image_decide(&l.v);
	if (d == CTL_IMAGE_NOTHING) {
		ctl_act_rest(a);
		if (l.v.entry == CTL_IMAGE_ENTRY_GOOD && !l.v.incomplete)
			info_rest(c, image_info_get(c, o));
		return l.recheck_ms ? ctl_retry(l.recheck_ms, "the label or the Job is tried again")
				    : ctl_settled();
	}
	a = a ? a : ctl_act_get(&c->acts, name);
	if (d == CTL_IMAGE_APPLY_STATUS && !ctl_act_calm(a, &next))
		return next;
	if (!ctl_act_begin(a, (int)d))
		return ctl_retry(0, "an act had no visible effect yet");
	if (!image_start(c, a, &l, d))
		return ctl_retry(0, "image-pcrs is no JSON object");
	return ctl_in_flight();
}

struct queue_next ctl_image_step(struct ctl_image *c, const struct kobj_key *key)
{
	return str_eq(key->name, CTL_IMAGE_ALL) ? values_step(c) : step_image(c, key->name);
}

static struct queue_next step(void *self, const struct kobj_key *key)
{
	return ctl_image_step(self, key);
}

/* ---- which keys a change concerns */

static void wake_one(void *arg, const struct kobj *o)
{
	struct ctl_image *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

static void map_image(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;

	ctl_runner_wake(c->runner, was ? was->name : now->name);
	if (!was || !now || !str_eq(was->uid, now->uid) || was->deleting != now->deleting ||
		was->generation != now->generation ||
		model_image(was)->has_finalizer != model_image(now)->has_finalizer ||
		!str_eq(model_image(was)->pcrs_sha256, model_image(now)->pcrs_sha256))
		values_changed(c);
}

static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;
	const char *name = was ? was->name : now->name;

	if (str_eq(name, MODEL_RV_CONFIGMAP)) {
		ctl_runner_wake(c->runner, CTL_IMAGE_ALL);
	} else if (str_eq(name, MODEL_PCRS_CONFIGMAP) || str_eq(name, CTL_SINCE_CONFIGMAP)) {
		values_changed(c);
		k8s_cache_each(c->env->state->images, wake_one, c);
	} else if (image_platform_named(c->env, name) &&
		   !image_platform_same((const struct model_configmap *)was,
			   (const struct model_configmap *)now)) {
		values_changed(c);
		k8s_cache_each(c->env->state->images, wake_one, c);
	}
}

static void wake_job(struct ctl_image *c, const struct kobj *o)
{
	const struct model_job *j = (const struct model_job *)o;

	if (j && j->image)
		ctl_runner_wake(c->runner, j->image);
}

static void map_job(void *self, const struct kobj *was, const struct kobj *now)
{
	wake_job(self, was);
	wake_job(self, now);
}

static void map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;
	const struct model_pod *p = (const struct model_pod *)(now ? now : was);

	if (p->job)
		wake_job(c, k8s_cache_find(c->env->state->jobs, p->job));
}

static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;

	if (model_cluster_means_the_same(was, now))
		return;
	values_changed(c);
	k8s_cache_each(c->env->state->images, wake_one, c);
}

static void on_sync(void *arg, enum kbs_sort sort, const char *name)
{
	struct ctl_image *c = arg;

	if (!c->on || sort != KBS_REFVALUE)
		return;
	if (!name) /* another Trustee: what it holds is not known yet */
		c->values.was_gone = false;
	else if (!str_starts(name, RENDER_BOOT_PREFIX) && !str_starts(name, "tpm_"))
		return;
	ctl_runner_wake(c->runner, CTL_IMAGE_ALL);
}

/* ---- life */

struct ctl_image *ctl_image_new(const struct ctl_env *env)
{
	struct ctl_image *c = xcalloc(1, sizeof(*c));

	c->env = env;
	c->runner = ctl_runner_new(env->loop, "image", env->ns, step, c);
	ctl_acts_init(&c->acts, c, c->runner);
	ctl_runner_watch(c->runner, env->state->images, map_image);
	ctl_runner_watch(c->runner, env->state->configmaps, map_configmap);
	ctl_runner_watch(c->runner, env->state->jobs, map_job);
	ctl_runner_watch(c->runner, env->state->pods, map_pod);
	ctl_runner_watch(c->runner, env->state->clusters, map_cluster);
	kbs_sync_listen(env->state->sync, on_sync, c);
	return c;
}

static void forget_all(struct ctl_image *c)
{
	ctl_acts_clear(&c->acts);
	while (c->infos)
		info_drop(c, c->infos->name);
	image_pcrs_forget(c);
	values_fini(&c->values);
}

void ctl_image_free(struct ctl_image *c)
{
	if (!c)
		return;
	c->on = false;
	forget_all(c);
	ctl_acts_clear(&c->acts);
	ctl_runner_free(c->runner);
	free(c);
}

void ctl_image_on(struct ctl_image *c)
{
	if (c->on)
		return;
	c->on = true;
	ctl_runner_on(c->runner);
	values_changed(c);
}

void ctl_image_off(struct ctl_image *c)
{
	c->on = false;
	ctl_runner_off(c->runner);
	forget_all(c);
}
