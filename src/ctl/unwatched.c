/* SPDX-License-Identifier: MIT */
/*
 * Writes the status of one object at a time, in rounds and in the order of UIDs, so that an object
 * whose write is refused does not hold up the others. The next watch event shows what was written.
 */
#include "config.h"

#include "tec/ctl/unwatched.h"

#include <string.h>

#include "ctl_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/unmanaged.h"
#include "tec/model/trusteeconfig.h"

#define ROUND_MS 20000 /* length of a round: no object is written twice in it */
#define NEXT_MS  100   /* between two writes */

const struct k8s_cache_type ctl_unwatched_type = {
	model_unmanaged_extract, sizeof(struct model_unmanaged), NULL, 0};

enum { KBSCONFIGS, TRUSTEECONFIGS, N_KINDS };
static const struct kobj_gvk *const gvks[N_KINDS] = {&kobj_kbsconfig, &kobj_trusteeconfig};
#define N_CONDS 2 /* of either kind: the second one is Ready */

struct ctl_unwatched {
	struct k8s_transport *api;        /* borrowed */
	struct k8s_cache *cache[N_KINDS]; /* borrowed */
	bool (*watched)(void *arg, const char *ns);
	void *arg;
	struct op_scope ops;
	struct op *call;
	struct timer next;
	uint64_t round_ms; /* boot clock: when the round began */
	struct ctl_declared declared[N_KINDS];
	size_t kind;                /* of the write in flight */
	enum ctl_declared_fit sent; /* how it was */
	char *last;                 /* owned: UID of the last object of the round; NULL: none yet */
	bool on;
};

/* ---- which one */

struct choice {
	struct ctl_unwatched *u;
	size_t kind; /* of the objects considered now */
	struct chosen {
		const struct model_unmanaged *m; /* NULL: none */
		size_t kind;
	} first, next;   /* the first of all, and the first after `last` */
	int64_t young_s; /* seconds until the next young object is old enough; 0: none */
};

/* Skip objects that have a status already: another operator takes care of them. */
static void consider(void *arg, const struct kobj *o)
{
	struct choice *c = arg;
	const struct model_unmanaged *m = model_unmanaged(o);
	int64_t left;

	if (o->unreadable || o->deleting || m->told || c->u->watched(c->u->arg, m->ns))
		return;
	left = o->created_s + CTL_UNWATCHED_WAIT_S - clock_wall_s();
	if (left > 0) {
		c->young_s = !c->young_s || left < c->young_s ? left : c->young_s;
		return;
	}
	if (!c->first.m || strcmp(o->uid, c->first.m->obj.uid) < 0)
		c->first = (struct chosen){m, c->kind};
	if (c->u->last && strcmp(o->uid, c->u->last) <= 0)
		return;
	if (!c->next.m || strcmp(o->uid, c->next.m->obj.uid) < 0)
		c->next = (struct chosen){m, c->kind};
}

/* ---- the status */

/* Clients wait for the usual conditions, so both are written, as False. */
static struct json_object *status_of(size_t kind, const struct model_unmanaged *m)
{
	static const struct kobj_cond have[N_CONDS];
	const char *const *types =
		kind == KBSCONFIGS ? model_kbsconfig_cond_types : model_trusteeconfig_cond_types;
	struct kobj_cond_want want[N_CONDS];
	struct json_object *meta, *status = json_obj();
	struct json_object *o = kobj_new(gvks[kind], m->plain, &meta);

	kobj_cond_want(&want[0], types[0], KOBJ_COND_FALSE,
		kind == KBSCONFIGS ? model_kbsconfig_reason(KBSCONFIG_NOT_WATCHED)
				   : model_trusteeconfig_reason(TRUSTEECONFIG_NOT_WATCHED),
		"No operator watches namespace %s. Add it to --trustee-namespaces, with a copy of Role and RoleBinding tec-operator-trustee in it, or use another namespace.",
		m->ns);
	kobj_cond_want(&want[1], types[1], KOBJ_COND_FALSE,
		kind == KBSCONFIGS ? model_kbsconfig_reason(KBSCONFIG_NOT_INSTALLED)
				   : model_trusteeconfig_reason(TRUSTEECONFIG_NOT_CONFIGURED),
		"Nothing is installed; see condition %s.", types[0]);
	json_add_bool(status, "isReady", false);
	json_add(status, "conditions",
		kobj_cond_json(have, want, N_CONDS, m->obj.generation, clock_wall_s()));
	json_add_str(meta, "uid", m->obj.uid);
	return json_add(o, "status", status);
}

/* NOT_FOUND is fine: the object was deleted, or another one has its name now. */
static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_unwatched *u = arg;

	if (!err_is_set(err))
		ctl_declared_accepted(&u->declared[u->kind], gvks[u->kind], u->sent);
	else if (ctl_declared_refused(
			 &u->declared[u->kind], gvks[u->kind], u->sent, r ? r->message : NULL))
		free(steal_ptr(&u->last)); /* the round starts over, with what is declared */
	else if (err->kind != ERR_NOT_FOUND)
		log_err(LOG_WARN, NULL,
			"cannot write the status of an object in an unwatched namespace", err);
	timer_set(&u->next, NEXT_MS);
}

/* Write the next status of this round, unless a request is in flight; its end sets the timer again.
 * When the round is over, or only young objects are left, the timer is set here. */
static void step(void *arg)
{
	struct ctl_unwatched *u = arg;
	uint64_t past = clock_boot_ms() - u->round_ms;
	struct choice c = {.u = u};
	cleanup_json struct json_object *o = NULL;
	const struct kobj_gvk *gvk;

	if (!u->on || u->call)
		return;
	for (c.kind = 0; c.kind < N_KINDS; c.kind++)
		k8s_cache_each(u->cache[c.kind], consider, &c);
	if (!c.next.m && c.first.m && past >= ROUND_MS) {
		u->round_ms = clock_boot_ms();
		c.next = c.first;
	}
	if (!c.next.m) {
		if (c.first.m)
			timer_set(&u->next, ROUND_MS - past);
		if (c.young_s > 0)
			timer_set_earlier(&u->next, (uint64_t)c.young_s * 1000);
		return;
	}
	gvk = gvks[c.next.kind];
	free(u->last);
	u->last = xstrdup(c.next.m->obj.uid);
	o = status_of(c.next.kind, c.next.m);
	u->kind = c.next.kind;
	u->sent = ctl_declared_fit(&u->declared[u->kind], gvk, o);
	log_info(&(struct log_ctx){gvk->kind, c.next.m->ns, c.next.m->plain, c.next.m->obj.uid},
		"its namespace is not watched", NULL);
	op_hold(&u->call, k8s_call_apply_status(u->api, &u->ops, gvk, c.next.m->ns, o, on_done, u));
}

/* ---- life */

/* Deletions need nothing; everything else may be an object without a status. */
static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct ctl_unwatched *u = arg;

	if (now && u->on && !u->call)
		timer_set_earlier(&u->next, NEXT_MS);
}

struct ctl_unwatched *ctl_unwatched_new(struct loop *l, struct k8s_transport *api,
	struct k8s_cache *kbsconfigs, struct k8s_cache *trusteeconfigs,
	bool (*watched)(void *arg, const char *ns), void *arg)
{
	struct ctl_unwatched *u = xcalloc(1, sizeof(*u));

	*u = (struct ctl_unwatched){
		.api = api, .cache = {kbsconfigs, trusteeconfigs}, .watched = watched, .arg = arg};
	timer_init(&u->next, l, step, u);
	for (size_t i = 0; i < N_KINDS; i++)
		k8s_cache_listen(u->cache[i], on_change, u);
	return u;
}

void ctl_unwatched_free(struct ctl_unwatched *u)
{
	if (!u)
		return;
	op_scope_cancel(&u->ops);
	timer_fini(&u->next);
	free(u->last);
	free(u);
}

/* Turning it on starts a new round, because another replica may have written in between. */
void ctl_unwatched_set(struct ctl_unwatched *u, bool on)
{
	if (u->on == on)
		return;
	u->on = on;
	op_cancel(&u->call);
	timer_cancel(&u->next);
	free(steal_ptr(&u->last));
	u->round_ms = clock_boot_ms();
	if (on)
		timer_set(&u->next, 0);
}
