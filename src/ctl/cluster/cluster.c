/* SPDX-License-Identifier: MIT */
/*
 * TrustedExecutionCluster: look, decide one thing, do it, return.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/pod.h"

#define DO(code)     ((enum ctl_cluster_do)((code)&0xff))
#define OBJECT(code) ((unsigned)(code) >> 8 & 0xff)
#define NUMBER(code) ((unsigned)(code) >> 16)
#define CALM_MS      1000

/* ---- the step */

static void post_event(struct ctl_cluster *c, const struct ctl_act *a, const struct kobj *o,
	enum model_cluster_cond t, const char *action)
{
	const struct kobj_cond_want *w = &a->want[t];
	bool good = w->status == KOBJ_COND_TRUE;

	if (a->event_mask & 1u << t)
		k8s_events_post(c->env->events, &kobj_cluster, o,
			good ? K8S_EVENT_NORMAL : K8S_EVENT_WARNING, w->reason, action, "%s",
			w->message);
}

static void post_events(struct ctl_cluster *c, struct ctl_act *a, const struct kobj *o)
{
	const struct kobj_cond_want *reg = &a->want[CLUSTER_REGISTRATION_OPEN];
	struct log_ctx lc = {"TrustedExecutionCluster", c->env->ns, a->name, NULL};

	if (!str_eq(a->want[CLUSTER_INSTALLED].reason, model_cluster_reason(CLUSTER_INSTALLING)))
		post_event(c, a, o, CLUSTER_INSTALLED, "Install");
	post_event(c, a, o, CLUSTER_REGISTRATION_OPEN, "Register");
	if (a->event_mask & 1u << CLUSTER_REGISTRATION_OPEN)
		log_at(reg->status == KOBJ_COND_TRUE ? LOG_INFO : LOG_WARN, &lc,
			reg->status == KOBJ_COND_TRUE ? "registration is open"
						      : "registration is closed",
			"reason=%s", reg->reason);
}

/* Another object is in the way than before. */
static bool is_another_conflict(const struct kobj_cond *have, const struct kobj_cond_want *want)
{
	return str_eq(want->reason, model_cluster_reason(CLUSTER_CONFLICT)) &&
	       have->message_hash != kobj_message_hash(want->message);
}

/* That registration is open when a cluster is new is what everybody expects; that an administrator
 * closed it is what he knows. */
static unsigned events_of(const struct cluster_look *l)
{
	const struct kobj_cond *have = &l->c->cond[CLUSTER_REGISTRATION_OPEN];
	const struct kobj_cond_want *want = &l->want[CLUSTER_REGISTRATION_OPEN];
	unsigned mask = ctl_cond_changes(l->c->cond, l->want, CLUSTER_N_CONDS);
	bool expected = have->status == KOBJ_COND_ABSENT && want->status == KOBJ_COND_TRUE;

	if (is_another_conflict(&l->c->cond[CLUSTER_INSTALLED], &l->want[CLUSTER_INSTALLED]))
		mask |= 1u << CLUSTER_INSTALLED;
	if (expected || str_eq(want->reason, model_cluster_reason(CLUSTER_NOT_SERVED)) ||
		str_eq(want->reason, model_cluster_reason(CLUSTER_MODE_MANUAL)))
		mask &= ~(1u << CLUSTER_REGISTRATION_OPEN);
	return mask;
}

/* Of the cluster object itself. */
static bool is_own(enum ctl_cluster_do d)
{
	return d == CTL_CLUSTER_APPLY_STATUS || d == CTL_CLUSTER_MIRROR ||
	       d == CTL_CLUSTER_ANNOUNCE || d == CTL_CLUSTER_TIDY;
}

/* For people: what an act is about. */
static const char *what_of(struct ctl_cluster *c, int doing)
{
	const struct cluster_own *secret;

	if (is_own(DO(doing)))
		return "TrustedExecutionCluster";
	if (OBJECT(doing) == CLUSTER_TLS)
		return "trusteeSecret";
	secret = cluster_own_of(c, OBJECT(doing), NUMBER(doing));
	return secret ? secret->name : cluster_objects[OBJECT(doing)].name;
}

static bool object_done(struct ctl_cluster *c, const struct kobj *cluster, int doing,
	const struct err *err, const struct k8s_result *r)
{
	unsigned object = OBJECT(doing), number = NUMBER(doing);

	if (object == CLUSTER_TLS)
		return cluster_tls_done(c, cluster, err, r);
	if (cluster_own_of(c, object, number))
		return cluster_own_done(c, cluster, DO(doing), object, number, err, r);
	return cluster_object_done(c, cluster, DO(doing), object, err, r);
}

static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_cluster *c = a->table->self;
	const struct kobj *cluster = k8s_cache_find(c->env->state->clusters, a->name);
	struct log_ctx lc = {"TrustedExecutionCluster", c->env->ns, a->name, NULL};
	enum ctl_cluster_do d = DO(a->doing);
	struct err none = ERR_INIT;
	bool fine = !err_is_set(err);

	if (!is_own(d)) {
		fine = object_done(c, cluster, a->doing, err, r);
	} else if (fine) {
		ctl_take_answer(c->env->state->clusters, r->object, false);
		if (d == CTL_CLUSTER_APPLY_STATUS)
			c->status_ms = clock_boot_ms();
		cluster = k8s_cache_find(c->env->state->clusters, a->name);
		if (d == CTL_CLUSTER_APPLY_STATUS && cluster)
			post_events(c, a, cluster);
	}
	if (!fine) {
		struct err told = *err;

		err_wrap(&told, "%s", what_of(c, a->doing));
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "act failed", &told);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, fine ? &none : err);
}

static struct op *start_cluster(
	struct ctl_cluster *c, struct ctl_act *a, const struct cluster_look *l, bool mirror)
{
	const struct ctl_env *env = c->env;
	cleanup_json struct json_object *o = NULL;
	struct json_object *meta, *v;

	if (mirror) {
		o = ctl_patch_new(l->c->obj.rv, &meta);
		v = l->c->extended_spec ? json_object_new_string(l->c->extended_spec) : NULL;
		json_add(meta, "annotations", json_add(json_obj(), MODEL_EXTENDED_ANNOTATION, v));
		return k8s_call_merge_patch(
			env->api, &c->acts.ops, &kobj_cluster, env->ns, a->name, o, on_done, a);
	}
	o = ctl_status_json(&kobj_cluster, &l->c->obj, l->c->cond, l->want, CLUSTER_N_CONDS);
	a->event_mask = events_of(l);
	free(a->want);
	a->want = xmemdup(l->want, sizeof(l->want));
	return k8s_call_apply_status(env->api, &c->acts.ops, &kobj_cluster, env->ns, o, on_done, a);
}

static struct queue_next start(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d)
{
	bool whole = d == CTL_CLUSTER_MIRROR || d == CTL_CLUSTER_APPLY_STATUS;
	struct err err = ERR_INIT;
	struct op *op;

	if (!ctl_act_begin(a, (int)d | (whole ? 0 : (int)(l->object << 8 | l->number << 16))))
		return ctl_retry(0, "an act had no visible effect yet");
	if (whole)
		op = start_cluster(c, a, l, d == CTL_CLUSTER_MIRROR);
	else if (is_own(d))
		op = cluster_start_marks(c, a, l, d, on_done, &err);
	else if (l->object == CLUSTER_TLS)
		op = cluster_start_tls(c, a, l, on_done);
	else if (cluster_own_of(c, l->object, l->number))
		op = cluster_start_own(c, a, l, d, on_done);
	else
		op = cluster_start_object(c, a, l, d, on_done, &err);
	if (!op) {
		log_err(LOG_ERROR, NULL, "an object cannot be made", &err);
		return ctl_retry(0, err_kind_name(err.kind));
	}
	op_hold(&a->op, op);
	return ctl_in_flight();
}

struct queue_next ctl_cluster_step(struct ctl_cluster *c, const struct kobj_key *key)
{
	struct ctl_act *a = ctl_act_find(&c->acts, key->name);
	const struct model_cluster *served = state_cluster(c->env->state);
	bool failed = a && !a->op && a->err != ERR_NONE;
	uint32_t wait_ms = 0;
	struct queue_next next;
	struct cluster_look l;
	enum ctl_cluster_do d;

	if (!failed && ctl_act_busy(a, &next))
		return next;
	if (!served || str_eq(served->obj.name, key->name))
		wait_ms = cluster_volumes_step(c, served);
	cluster_look(c, key->name, &l);
	d = ctl_cluster_decide(&l.v);
	if (failed) {
		/* Why it failed is told before it is tried again. */
		if (!l.v.found || l.v.status_ok || !c->problem[0] ||
			DO(a->doing) == CTL_CLUSTER_APPLY_STATUS) {
			ctl_act_busy(a, &next);
			return next;
		}
		a->err = ERR_NONE;
		d = CTL_CLUSTER_APPLY_STATUS;
	}
	if (d != CTL_CLUSTER_NOTHING)
		return start(c, a ? a : ctl_act_get(&c->acts, key->name), &l, d);
	ctl_act_drop(a);
	if (!l.v.found)
		ctl_runner_forget(c->runner, key->name);
	if (wait_ms)
		cluster_recheck(&l, wait_ms);
	return l.recheck_ms ? ctl_retry(l.recheck_ms, "something is due by time alone")
			    : ctl_settled();
}

static struct queue_next step(void *self, const struct kobj_key *key)
{
	return ctl_cluster_step(self, key);
}

/* ---- which clusters a change concerns */

static void wake_one(void *arg, const struct kobj *o)
{
	struct ctl_cluster *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

static void wake_served(struct ctl_cluster *c)
{
	const struct model_cluster *served = state_cluster(c->env->state);

	if (served)
		ctl_runner_wake(c->runner, served->obj.name);
}

static void map_cluster(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;

	ctl_runner_wake(c->runner, was ? was->name : now->name);
	if (!was || !now || !str_eq(was->uid, now->uid) ||
		was->deleting != now->deleting) /* another one may be served */
		k8s_cache_each(c->env->state->clusters, wake_one, c);
}

static void map_object(struct ctl_cluster *c, const struct kobj_gvk *gvk, const struct kobj *o)
{
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++)
		if (cluster_objects[i].gvk == gvk && str_eq(cluster_objects[i].name, o->name))
			wake_served(c);
}

static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;

	if (str_eq((was ? was : now)->name, MODEL_RV_CONFIGMAP))
		c->volumes.dirty = true;
	map_object(self, &kobj_configmap, was ? was : now);
}

static void map_service(void *self, const struct kobj *was, const struct kobj *now)
{
	map_object(self, &kobj_service, was ? was : now);
}

static void map_deployment(void *self, const struct kobj *was, const struct kobj *now)
{
	map_object(self, &kobj_deployment, was ? was : now);
}

/* Which of Trustee's Pods are left, and what they were started with. */
static void map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;

	if (!c->volumes.uid || !str_eq(((const struct model_pod *)(was ? was : now))->app, "kbs"))
		return;
	c->volumes.dirty = true;
	wake_served(c);
}

/* A file of Trustee's. */
static void map_file(struct ctl_cluster *c, const struct model_secret *s)
{
	const struct model_cluster *served = state_cluster(c->env->state);

	if (!c->volumes.uid || !served || s->shape == MODEL_SECRET_OTHER)
		return;
	c->volumes.dirty = true;
	ctl_runner_wake_after(c->runner, served->obj.name, CALM_MS);
}

/* Ours, or one that spec names: its absence is told. */
static void map_secret(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_cluster *c = self;
	const struct kobj *o = was ? was : now;
	const struct model_cluster *s;

	map_object(c, &kobj_secret, o);
	map_file(c, model_secret(now ? now : was));
	if (cluster_regkey_is_name(o->name))
		wake_served(c);
	if (render_token_number(o->name)) {
		cluster_inputs_saw_secret(c, o->name);
		wake_served(c);
	}
	s = state_cluster(c->env->state);
	if (s && str_eq(s->trustee_secret, o->name))
		wake_served(c); /* its content counts as well */
	if ((was && now) || !s)
		return;
	for (unsigned i = 0; i < s->n_servers; i++)
		if (str_eq(s->server_ca[i], o->name))
			wake_served(c);
	if (str_eq(s->register_secret, o->name) || str_eq(s->ak_secret, o->name))
		wake_served(c);
}

/* Counts may wait a second, and what is declared: more comes along with it. */
static void on_sync(void *arg, enum kbs_sort sort, const char *name)
{
	struct ctl_cluster *c = arg;
	const struct model_cluster *served = c->on ? state_cluster(c->env->state) : NULL;

	if (!served)
		return;
	ctl_runner_wake_after(c->runner, served->obj.name, CALM_MS);
	if (cluster_volumes_on_sync(c, sort, name))
		ctl_runner_wake(c->runner, served->obj.name);
}

/* ---- life */

struct ctl_cluster *ctl_cluster_new(const struct ctl_env *env)
{
	struct ctl_cluster *c = xcalloc(1, sizeof(*c));

	c->env = env;
	cluster_own_init(&c->auth, CLUSTER_AUTH, "private.key", "public.pub");
	cluster_regkey_init(c);
	cluster_registration_watch(c);
	c->runner = ctl_runner_new(env->loop, "cluster", env->ns, step, c);
	ctl_acts_init(&c->acts, c, c->runner);
	ctl_runner_watch(c->runner, env->state->clusters, map_cluster);
	ctl_runner_watch(c->runner, env->state->configmaps, map_configmap);
	ctl_runner_watch(c->runner, env->state->services, map_service);
	ctl_runner_watch(c->runner, env->state->deployments, map_deployment);
	ctl_runner_watch(c->runner, env->state->secrets, map_secret);
	ctl_runner_watch(c->runner, env->state->pods, map_pod);
	kbs_sync_listen(env->state->sync, on_sync, c);
	return c;
}

static void forget_all(struct ctl_cluster *c)
{
	ctl_acts_clear(&c->acts);
	cluster_known_reset(c, NULL);
	cluster_inputs_fini(c);
	cluster_volumes_fini(c);
}

void ctl_cluster_free(struct ctl_cluster *c)
{
	if (!c)
		return;
	c->on = false;
	forget_all(c);
	ctl_runner_free(c->runner);
	free(c);
}

void ctl_cluster_on(struct ctl_cluster *c)
{
	if (c->on)
		return;
	c->on = true;
	c->status_ms = clock_boot_ms();
	ctl_runner_on(c->runner);
}

void ctl_cluster_off(struct ctl_cluster *c)
{
	c->on = false;
	ctl_runner_off(c->runner);
	forget_all(c);
}
