/* SPDX-License-Identifier: MIT */
/*
 * Each namespace is a struct place. The first two kinds are watched in every namespace of the
 * option; the other kinds, which include Secrets, only once a KbsConfig or TrusteeConfig exists
 * there.
 */
#include "config.h"

#include "trustees.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/ctl/unwatched.h"
#include "tec/ctl/kbsconfig.h"
#include "tec/ctl/trusteeconfig.h"
#include "tec/k8s/watch.h"
#include "tec/srv/metrics.h"

static const enum caches_of watched[] = {CACHES_KBSCONFIGS, CACHES_TRUSTEECONFIGS, CACHES_SERVICES,
	CACHES_DEPLOYMENTS, CACHES_INPUT_CONFIGMAPS, CACHES_INPUT_SECRETS, CACHES_CLAIMS};
#define N_WATCHED ARRAY_LEN(watched)
#define N_ALWAYS  2 /* of the list above, the kinds that are always watched */

struct place {
	const char *ns; /* borrowed from the options */
	struct trustees *all;
	struct caches caches; /* owns its caches */
	struct k8s_watch *watch[N_WATCHED];
	struct k8s_events *events;
	struct ctl_env env;
	struct ctl_kind *kbsconfig, *trusteeconfig;
	bool reads, on, makes; /* all kinds are watched; each controller runs */
};

struct trustees {
	void (*changed)(void *arg);
	void *arg;
	struct place *places; /* owned; never moved */
	size_t n;
	/* KbsConfigs and TrusteeConfigs of all namespaces, to mark those that nobody serves. */
	struct k8s_cache *all[2];
	struct k8s_watch *all_watch[2];
	struct ctl_unwatched *unwatched;
};

static void on_watch(void *arg)
{
	const struct place *p = arg;

	p->all->changed(p->all->arg);
}

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	on_watch(arg);
}

/* Create caches, watches and controllers of one namespace; nothing starts yet. */
static void place_init(
	struct place *p, struct loop *l, struct k8s_transport *api, struct k8s_transport *gate)
{
	const struct render_kbsconfig_images *d = &render_kbsconfig_images_default;

	p->caches = (struct caches)CACHES_INIT;
	for (size_t i = 0; i < N_WATCHED; i++) {
		const struct caches_kind *kind = &caches_kinds[watched[i]];
		const struct k8s_watch_conf conf = {.gvk = kind->gvk,
			.ns = p->ns,
			.secret = watched[i] == CACHES_INPUT_SECRETS};
		struct k8s_cache *cache = k8s_cache_new(&kind->cache);

		p->caches.cache[watched[i]] = cache;
		p->watch[i] = k8s_watch_new(l, api, cache, &conf);
		k8s_watch_on_state(p->watch[i], on_watch, p);
	}
	p->events = k8s_events_new(
		gate, p->ns, "kbsconfig-controller", env_or("POD_NAME", PACKAGE_NAME));
	p->env = (struct ctl_env){.loop = l,
		.api = gate,
		.ns = p->ns,
		.caches = &p->caches,
		.events = p->events,
		/* The environment variables of the Trustee operator's Deployment, and our own image. */
		.kbsconfig_images = {.kbs = env_or("KBS_IMAGE_NAME", d->kbs),
			.kbs_microservices =
				env_or("KBS_IMAGE_NAME_MICROSERVICES", d->kbs_microservices),
			.kbs_legacy = env_or("KBS_IMAGE_NAME_LEGACY", d->kbs_legacy),
			.kbs_v0_18 = env_or("KBS_IMAGE_NAME_V0_18", d->kbs_v0_18),
			.kbs_v0_20 = env_or("KBS_IMAGE_NAME_V0_20", d->kbs_v0_20),
			.as = env_or("AS_IMAGE_NAME", d->as),
			.rvps = env_or("RVPS_IMAGE_NAME", d->rvps),
			.operator_ = env_or("RELATED_IMAGE_OPERATOR", d->operator_)}};
	p->kbsconfig = ctl_kbsconfig_new(&p->env);
	p->trusteeconfig = ctl_trusteeconfig_new(&p->env);
	srv_metrics_count_trustees(&p->caches, p->ns);
	k8s_cache_listen(p->caches.kbsconfigs, on_change, p);
	k8s_cache_listen(p->caches.trusteeconfigs, on_change, p);
}

/* Whether --trustee-namespaces includes the namespace. */
static bool is_watched(void *arg, const char *ns)
{
	const struct trustees *t = arg;

	for (size_t i = 0; i < t->n; i++)
		if (str_eq(t->places[i].ns, ns))
			return true;
	return false;
}

/* Places are never moved: controllers keep pointers to their state. */
struct trustees *trustees_new(struct loop *l, struct k8s_transport *api, struct k8s_transport *gate,
	const struct options *o, const char *ns, void (*changed)(void *arg), void *arg)
{
	struct trustees *t = xcalloc(1, sizeof(*t));

	t->changed = changed;
	t->arg = arg;
	t->n = o->trustee_namespaces.n ? o->trustee_namespaces.n : 1;
	t->places = xcalloc(t->n, sizeof(*t->places));
	for (size_t i = 0; i < t->n; i++) {
		t->places[i].all = t;
		t->places[i].ns = o->trustee_namespaces.n ? o->trustee_namespaces.items[i] : ns;
		place_init(&t->places[i], l, api, gate);
	}
	/* Watch all namespaces for objects outside --trustee-namespaces. */
	for (size_t i = 0; i < N_ALWAYS; i++) {
		const struct k8s_watch_conf conf = {.gvk = caches_kinds[watched[i]].gvk};

		t->all[i] = k8s_cache_new(&ctl_unwatched_type);
		t->all_watch[i] = k8s_watch_new(l, api, t->all[i], &conf);
	}
	t->unwatched = ctl_unwatched_new(l, gate, t->all[0], t->all[1], is_watched, t);
	return t;
}

/* Controllers before watches, watches before caches, as in parts_fini(). */
void trustees_free(struct trustees *t)
{
	if (!t)
		return;
	for (size_t k = 0; k < t->n; k++) {
		struct place *p = &t->places[k];

		ctl_kind_free(p->trusteeconfig);
		ctl_kind_free(p->kbsconfig);
		for (size_t i = 0; i < N_WATCHED; i++)
			k8s_watch_free(p->watch[i]);
		k8s_events_free(p->events);
		for (size_t i = 0; i < N_WATCHED; i++)
			k8s_cache_free(p->caches.cache[watched[i]]);
	}
	ctl_unwatched_free(t->unwatched);
	for (size_t i = 0; i < N_ALWAYS; i++) {
		k8s_watch_free(t->all_watch[i]);
		k8s_cache_free(t->all[i]);
	}
	free(t->places);
	free(t);
}

/* The kinds that are always watched; the others follow in place_check(). */
void trustees_start(struct trustees *t)
{
	for (size_t k = 0; k < t->n; k++)
		for (size_t i = 0; i < N_ALWAYS; i++)
			k8s_watch_start(t->places[k].watch[i]);
	for (size_t i = 0; i < N_ALWAYS; i++)
		k8s_watch_start(t->all_watch[i]);
}

/* Stop, and forget what was read: a process that does not lead keeps no Secrets. */
static void place_forget(struct place *p)
{
	if (p->on)
		log_info(NULL, "controllers stop", "ns=%s", p->ns);
	if (p->makes)
		ctl_kind_off(p->trusteeconfig);
	if (p->on)
		ctl_kind_off(p->kbsconfig);
	p->reads = p->on = p->makes = false;
	for (size_t i = N_ALWAYS; i < N_WATCHED; i++) {
		k8s_watch_stop(p->watch[i]);
		k8s_cache_clear(p->caches.cache[watched[i]]);
	}
}

/* Start or stop what this namespace needs now. TrusteeConfigs need more lists than KbsConfigs,
 * so their controller may start later. */
static void place_check(struct place *p, bool leads)
{
	size_t kbs = k8s_cache_count(p->caches.kbsconfigs),
	       trustee = k8s_cache_count(p->caches.trusteeconfigs);
	bool want = leads && k8s_cache_filled(p->caches.kbsconfigs) && kbs + trustee;

	if (p->reads && !want)
		place_forget(p);
	if (!p->reads && want) {
		p->reads = true;
		for (size_t i = N_ALWAYS; i < N_WATCHED; i++)
			k8s_watch_start(p->watch[i]);
	}
	if (!p->reads || !caches_filled(&p->caches, CACHES_FOR_ALL))
		return;
	if (!p->on) {
		log_info(NULL, "controller of KbsConfigs starts", "ns=%s count=%zu", p->ns, kbs);
		p->on = true;
		ctl_kind_on(p->kbsconfig);
	}
	if (trustee && !p->makes && caches_filled(&p->caches, CACHES_FOR_TRUSTEECONFIGS)) {
		log_info(NULL, "controller of TrusteeConfigs starts", "ns=%s count=%zu", p->ns,
			trustee);
		p->makes = true;
		ctl_kind_on(p->trusteeconfig);
	}
}

void trustees_check(struct trustees *t, bool leads)
{
	for (size_t k = 0; k < t->n; k++)
		place_check(&t->places[k], leads);
	ctl_unwatched_set(t->unwatched, leads);
}
