/* SPDX-License-Identifier: MIT */
/*
 * What the kinds share that are copied: an object and its original, and the notes on keys that are
 * not in step. Nothing is decided here. A change of a note schedules the check of follow.c.
 */
#include "config.h"

#include "follow_internal.h"

#define SOON_MS 500 /* delay of a check after changes that concern every key */

/* ---- the check */

/* Deferred, so that many changes in one turn of the loop cause one check. */
void follow_kind_check(void *arg)
{
	struct ctl_follow *f = arg;

	if (f->on)
		defer_call(&f->check, f->env->loop, f->check_fn, f);
}

/* For events that come in large numbers: the tick is only moved forward. */
void follow_kind_check_soon(struct ctl_follow *f)
{
	if (f->on)
		timer_set_earlier(&f->tick, SOON_MS);
}

/* ---- looks */

/* Find both objects of a key. An unreadable one counts as neither present nor absent: nothing is
 * done. */
struct follow_pair follow_kind_look(struct ctl_kind *k, const char *name, struct ctl_look *l)
{
	struct follow_kind *fk = follow_kind(k);
	const struct kobj *there = k8s_cache_find(fk->f->source.state.cache[k->conf->of], name);
	const struct kobj *here = k8s_cache_find(k->state->cache[k->conf->of], name);
	bool may_copy =
		fk->f->may_copy && !(there && there->unreadable) && !(here && here->unreadable);

	l->o = here;
	l->over = !there && !here;
	if (!here)
		follow_note_set_deleted(&fk->notes, name, false);
	return (struct follow_pair){
		.there = there && !there->unreadable && !there->deleting ? there : NULL,
		.here = here && !here->unreadable ? here : NULL,
		.may_copy = may_copy,
		.may_take = may_copy && !fk->f->went_back,
		.deleted = (there && there->deleting) || follow_note_deleted(&fk->notes, name),
	};
}

/* Called at the end of each look; only a change schedules a check. */
void follow_kind_lags(struct ctl_kind *k, const char *name, enum follow_lag lag)
{
	struct follow_kind *fk = follow_kind(k);

	if (follow_note_set_lag(&fk->notes, name, lag))
		follow_kind_check(fk->f);
}

/* ---- acts */

struct op *follow_kind_start_delete(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_delete(k, a, state_kinds[k->conf->of].gvk, l->o);
}

/* ---- which keys a change concerns */

void follow_kind_wake(void *kind, const struct kobj *o)
{
	ctl_runner_wake(((struct ctl_kind *)kind)->runner, o->name);
}

/* The same names exist on both sides, so names of the source are keys here. */
void follow_kind_wake_source(
	struct ctl_kind *k, enum state_of of, unsigned index, const char *value)
{
	const struct k8s_cache *cache = follow_kind(k)->f->source.state.cache[of];

	for (const struct kobj *o = value ? k8s_cache_first(cache, index, value) : NULL; o;
		o = k8s_cache_next(cache, index, o))
		ctl_runner_wake(k->runner, o->name);
}

void follow_kind_map(void *kind, const struct kobj *was, const struct kobj *now)
{
	follow_kind_wake(kind, was ? was : now);
}

/* Note a deletion when it is seen, since later the object is only missing: either a watch event, or
 * another UID under the same name. An object that a new list merely lacks is not known to be
 * deleted. */
void follow_kind_map_source(void *kind, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kind *k = kind;
	struct follow_kind *fk = follow_kind(k);
	struct k8s_cache *cache = fk->f->source.state.cache[k->conf->of];

	if (k->on && was && (now ? !str_eq(was->uid, now->uid) : k8s_cache_saw_delete(cache)))
		follow_note_set_deleted(&fk->notes, was->name, true);
	follow_kind_map(kind, was, now);
}

/* ---- life */

/* The watches of the source are added here, because ctl_kind_conf knows only our own caches. */
struct ctl_kind *follow_kind_new(
	struct ctl_follow *f, const struct ctl_kind_conf *conf, const struct ctl_watch *of_source)
{
	struct ctl_kind *k = ctl_kind_new(f->env, conf);

	follow_kind(k)->f = f;
	for (const struct ctl_watch *w = of_source; w->map; w++)
		ctl_runner_watch(k->runner, f->source.state.cache[w->of], w->map);
	return k;
}

void follow_kind_forget(struct ctl_kind *k)
{
	follow_notes_clear(&follow_kind(k)->notes);
}
