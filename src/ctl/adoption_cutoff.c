/* SPDX-License-Identifier: MIT */
/*
 * One GET by name, and one POST if nothing exists: independent of the cache of ConfigMaps, which
 * need not be filled yet. Every replica also listens to the cache, so that a later leader still
 * knows the time of a ConfigMap that was deleted in the meantime. While the time is known, nothing
 * is overwritten or created again.
 */
#include "config.h"

#include "tec/ctl/adoption_cutoff.h"

#include "ctl_internal.h"
#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"
#include "tec/caches/adoption_cutoff.h"

struct ctl_adoption_cutoff {
	const struct ctl_env *env; /* borrowed */
	void (*known)(void *arg);
	void *arg;
	struct op_scope ops;
	struct op *call; /* in flight */
	struct timer retry;
	struct backoff backoff;
	struct caches *caches; /* borrowed; its marker_s is written here only */
	bool on, absent;       /* absent: the API returned NOT_FOUND */
};

static void look(void *arg);

/* The earliest time wins: a later one would adopt objects that were planted in between. */
static void learn(struct ctl_adoption_cutoff *s, int64_t created_s)
{
	bool first = !caches_adoption_cutoff_known(s->caches);

	if (!first && created_s >= s->caches->marker_s)
		return;
	s->caches->marker_s = created_s;
	if (!first)
		return;
	op_cancel(&s->call);
	timer_cancel(&s->retry);
	s->known(s->arg);
}

/* ---- the ConfigMap, by name */

/* Handles the GET and the POST: either returns the object, or leads to the other request. */
static void on_answer(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_adoption_cutoff *s = arg;
	const char *text = r->object ? json_get_str(r->object, "metadata/creationTimestamp") : NULL;
	int64_t us;

	if (text && clock_parse(text, &us) == 0) {
		if (s->absent)
			log_info(NULL, "first start in this namespace, its time is recorded",
				"name=%s", CTL_ADOPTION_CUTOFF_CONFIGMAP);
		learn(s, us / 1000000);
		return;
	}
	if (err->kind == ERR_NOT_FOUND || r->already_exists) {
		s->absent = !r->already_exists;
		timer_set(&s->retry, s->absent ? 0 : BACKOFF_MIN_MS);
		return;
	}
	if (err_is_set(err))
		log_err(LOG_WARN, NULL,
			"ConfigMap " CTL_ADOPTION_CUTOFF_CONFIGMAP
			" can be neither read nor created; no controller starts until then",
			err);
	timer_set(&s->retry, backoff_next(&s->backoff, BACKOFF_MIN_MS, BACKOFF_MAX_MS));
}

/* GET first; POST only after NOT_FOUND, so that an existing marker is never replaced. */
static void look(void *arg)
{
	struct ctl_adoption_cutoff *s = arg;
	cleanup_json struct json_object *o = NULL;
	struct op *op;

	if (!s->on || s->call || caches_adoption_cutoff_known(s->caches))
		return;
	if (s->absent) {
		o = ctl_configmap_new(CTL_ADOPTION_CUTOFF_CONFIGMAP, s->env->ns);
		/* Immutable, so that nobody changes it by accident; only its creationTimestamp
		 * matters. */
		json_add_bool(o, "immutable", true);
		json_add(o, "data",
			json_add_str(json_obj(), "README",
				"tec-operator takes over what is older than this ConfigMap. Keep it: if it is deleted, the next "
				"start takes over everything that exists by then."));
		op = k8s_call_create(
			s->env->api, &s->ops, &kobj_configmap, s->env->ns, o, 0, on_answer, s);
	} else {
		op = k8s_call_get(s->env->api, &s->ops, &kobj_configmap, s->env->ns,
			CTL_ADOPTION_CUTOFF_CONFIGMAP, on_answer, s);
	}
	op_hold(&s->call, op);
}

/* ---- the cache */

/* A deleted marker is reported, because the next start would adopt whatever exists by then. */
static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_adoption_cutoff *s = arg;

	if (!str_eq((was ? was : now)->name, CTL_ADOPTION_CUTOFF_CONFIGMAP))
		return;
	if (now)
		learn(s, now->created_s);
	else if (s->on)
		log_warn(NULL,
			"ConfigMap " CTL_ADOPTION_CUTOFF_CONFIGMAP
			" was deleted. Its time stays valid until this process ends; the next start creates another one and takes over what "
			"is older",
			NULL);
}

/* ---- life */

struct ctl_adoption_cutoff *ctl_adoption_cutoff_new(
	const struct ctl_env *env, struct caches *caches, void (*known)(void *arg), void *arg)
{
	struct ctl_adoption_cutoff *s = xcalloc(1, sizeof(*s));

	s->env = env;
	s->known = known;
	s->arg = arg;
	s->caches = caches;
	caches->marker_s = INT64_MIN;
	timer_init(&s->retry, env->loop, look, s);
	k8s_cache_listen(env->caches->configmaps, on_change, s);
	return s;
}

void ctl_adoption_cutoff_free(struct ctl_adoption_cutoff *s)
{
	if (!s)
		return;
	op_scope_cancel(&s->ops);
	timer_fini(&s->retry);
	free(s);
}

/* `absent` may be outdated: another leader may have created the marker. */
void ctl_adoption_cutoff_on(struct ctl_adoption_cutoff *s)
{
	if (s->on)
		return;
	s->on = true;
	s->absent = false;
	backoff_reset(&s->backoff);
	look(s);
}

void ctl_adoption_cutoff_off(struct ctl_adoption_cutoff *s)
{
	s->on = false;
	op_scope_cancel(&s->ops);
	timer_cancel(&s->retry);
}
