/* SPDX-License-Identifier: MIT */
/* KbsConfig: which one counts in its namespace, look (read the caches), decide (pure) and the
 * conditions. */
#include "config.h"

#include "kbsconfig_internal.h"

#include "tec/base/log.h"

/* ---- which one counts */

/* The owner of the Deployment counts, so that a newer KbsConfig does not take a running Trustee
 * over; without a Deployment, the oldest that is not being deleted. */
const struct model_kbsconfig *kbsconfig_view_holder(const struct state *s)
{
	const struct kobj *d = k8s_cache_find(s->deployments, RENDER_KBSCONFIG_DEPLOYMENT);
	const char *owner = d && !d->unreadable ? ((const struct model_plain *)d)->owner_uid : NULL;
	const struct kobj *o = owner ? k8s_cache_first(s->kbsconfigs, 1, owner) : NULL;

	if (o)
		return model_kbsconfig(o);
	for (o = k8s_cache_first(s->kbsconfigs, 0, MODEL_KBSCONFIG_ALL); o && o->deleting;)
		o = k8s_cache_next(s->kbsconfigs, 0, o);
	return o ? model_kbsconfig(o) : NULL;
}

/* Adapter for render/kbsconfig, which must not know the caches. */
static const struct kobj *find_input(void *state, bool secret, const char *name)
{
	const struct state *s = state;

	return k8s_cache_find(secret ? s->input_secrets : s->input_configmaps, name);
}

struct render_kbsconfig_source kbsconfig_view_source(const struct state *s)
{
	return (struct render_kbsconfig_source){find_input, (void *)s};
}

/* ---- decide */

/* Delete the objects, wait until they are gone, and only then release the KbsConfig. */
static enum ctl_kbsconfig_do decide_deleting(const struct ctl_kbsconfig_view *v)
{
	if (!v->has_finalizer)
		return CTL_KBSCONFIG_NOTHING; /* only finalizers of others are left */
	for (int i = 0; i < CTL_KBSCONFIG_N_OBJECTS; i++)
		if (v->owned[i] && !v->leaving[i])
			return (enum ctl_kbsconfig_do)(CTL_KBSCONFIG_DELETE + i);
	for (int i = 0; i < CTL_KBSCONFIG_N_OBJECTS; i++)
		if (v->owned[i]) /* being deleted, perhaps held by a finalizer */
			return v->status_ok ? CTL_KBSCONFIG_NOTHING : CTL_KBSCONFIG_APPLY_STATUS;
	return CTL_KBSCONFIG_DROP_FINALIZER;
}

/* While an input is missing (not renderable) what is installed stays as it is. */
enum ctl_kbsconfig_do ctl_kbsconfig_decide(const struct ctl_kbsconfig_view *v)
{
	if (!v->found)
		return CTL_KBSCONFIG_NOTHING;
	if (v->deleting)
		return decide_deleting(v);
	if (v->holds && v->renderable && !v->has_finalizer)
		return CTL_KBSCONFIG_ADD_FINALIZER; /* before anything exists that must be deleted */
	for (int i = 0; v->holds && v->renderable && i < CTL_KBSCONFIG_N_OBJECTS; i++) {
		switch (ctl_install_decide(CTL_INSTALL_APPLIED, v->object[i])) {
		case CTL_INSTALL_READ:
			return (enum ctl_kbsconfig_do)(CTL_KBSCONFIG_READ + i);
		case CTL_INSTALL_APPLY:
			return (enum ctl_kbsconfig_do)(CTL_KBSCONFIG_APPLY + i);
		case CTL_INSTALL_DELETE:
			return (enum ctl_kbsconfig_do)(CTL_KBSCONFIG_DELETE + i);
		case CTL_INSTALL_NOTHING:
		case CTL_INSTALL_CREATE:
			break;
		}
	}
	return v->status_ok ? CTL_KBSCONFIG_NOTHING : CTL_KBSCONFIG_APPLY_STATUS;
}

/* ---- conditions */

#define WANT(l, which, state, r, ...)                                                              \
	kobj_cond_want(&(l)->base.want[which], model_kbsconfig_cond_types[which], state,           \
		model_kbsconfig_reason(r), __VA_ARGS__)

static const char *const object_names[CTL_KBSCONFIG_N_OBJECTS] = {
	[CTL_KBSCONFIG_DEPLOYMENT] = "Deployment " RENDER_KBSCONFIG_DEPLOYMENT,
	[CTL_KBSCONFIG_SERVICE] = "Service " RENDER_KBSCONFIG_SERVICE,
};

/* Return the first object in this state, or -1. */
static int in_state(const struct kbsconfig_look *l, enum ctl_install_state state)
{
	for (int i = 0; i < CTL_KBSCONFIG_N_OBJECTS; i++)
		if (l->v.object[i] == state)
			return i;
	return -1;
}

/* The most severe state of the two objects is shown. */
static void want_holder(const struct ctl_kbsconfig *c, struct kbsconfig_look *l)
{
	const struct ctl_install *in = &c->install;
	int i;

	if (in->problem[0])
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_WRITE_REFUSED, "%s.",
			in->problem);
	else if ((i = in_state(l, CTL_INSTALL_CONFLICT)) >= 0)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_CONFLICT,
			"%s belongs to another owner and is not changed. Delete it, or use another namespace.",
			object_names[i]);
	else if ((i = in_state(l, CTL_INSTALL_UNREADABLE)) >= 0)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_WRITE_REFUSED,
			"%s is too large to be read and is not changed. Delete it.",
			object_names[i]);
	else if (l->v.object[0] == CTL_INSTALL_CURRENT && l->v.object[1] == CTL_INSTALL_CURRENT)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_TRUE, KBSCONFIG_IS_INSTALLED,
			"Deployment " RENDER_KBSCONFIG_DEPLOYMENT
			" and Service " RENDER_KBSCONFIG_SERVICE " are installed.");
	else
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_INSTALLING,
			"The Deployment and the Service are being written.");
}

/* Sets v.renderable, too: decide writes nothing while an input is missing or does not fit. */
static void want_installed(const struct ctl_kbsconfig *c, struct kbsconfig_look *l,
	const struct model_kbsconfig *holder)
{
	const struct render_kbsconfig_source from = kbsconfig_view_source(c->kind.state);
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	enum model_kbsconfig_reason r = render_kbsconfig_check(l->m, &from, &why);

	l->v.renderable = r == KBSCONFIG_IS_INSTALLED;
	if (l->v.deleting)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_DELETING,
			"Waiting until the Deployment and the Service are deleted.");
	else if (!l->v.holds)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_CONFLICT,
			"KbsConfig %s already runs the only Trustee of this namespace. Delete one of them, or use another namespace.",
			holder ? holder->obj.name : "?");
	else if (r != KBSCONFIG_IS_INSTALLED)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, r, "%s", strbuf_str(&why));
	else
		want_holder(c, l);
}

/* Return a hint why Pods may never become ready, or where to look. */
static const char *why_not_ready(const struct ctl_kbsconfig *c, const struct kbsconfig_look *l)
{
	const struct render_kbsconfig_source from = kbsconfig_view_source(c->kind.state);

	return render_kbsconfig_has_older_admin(l->m, &from)
		       ? " Section admin of kbs-config.toml has the format of a Trustee before v0.21, and later versions do not start with it."
		       : " If this persists, see kubectl logs -l app=kbs.";
}

/* The criteria of `kubectl rollout status`, with a reason for each stage. */
static void want_ready(const struct ctl_kbsconfig *c, struct kbsconfig_look *l)
{
	const struct kobj *o =
		k8s_cache_find(c->kind.state->deployments, RENDER_KBSCONFIG_DEPLOYMENT);
	const struct model_plain *d = (const struct model_plain *)o;
	bool there = o && !o->unreadable && !o->deleting && str_eq(d->owner_uid, l->m->obj.uid);

	l->is_ready = false;
	if (l->v.deleting) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_DELETING,
			"Trustee is being deleted.");
	} else if (!there) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_NOT_INSTALLED,
			"Trustee is not installed; see condition Installed.");
	} else if (d->wanted == 0) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_NO_REPLICAS,
			"spec.KbsDeploymentSpec.replicas is 0.");
	} else if (d->seen < o->generation || d->updated < d->wanted) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_ROLLING_OUT,
			"Pods with the current configuration are being started.");
	} else if (d->ready < d->wanted) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_STARTING,
			"%d of %d Pods are ready.%s", (int)d->ready, (int)d->wanted,
			why_not_ready(c, l));
	} else if (d->replicas > d->updated) {
		WANT(l, KBSCONFIG_READY, KOBJ_COND_FALSE, KBSCONFIG_ROLLING_OUT,
			"Earlier Pods run until those with the current configuration are ready.%s",
			why_not_ready(c, l));
	} else {
		l->is_ready = true;
		WANT(l, KBSCONFIG_READY, KOBJ_COND_TRUE, KBSCONFIG_IS_READY,
			"%d of %d Pods are ready.", (int)d->ready, (int)d->wanted);
	}
}

/* ---- look */

/* base.content identifies what would be written, so that a repeated write without effect is
 * noticed. */
static void look_objects(struct ctl_kbsconfig *c, struct kbsconfig_look *l)
{
	if (l->v.holds)
		ctl_install_recheck(&c->install, &l->m->obj);
	for (unsigned i = 0; i < CTL_KBSCONFIG_N_OBJECTS; i++) {
		const struct kobj *o = ctl_install_find(&c->install, i);
		const struct model_plain *p = (const struct model_plain *)o;

		l->v.owned[i] = o && !o->unreadable && str_eq(p->owner_uid, l->m->obj.uid);
		l->v.leaving[i] = o && o->deleting;
		l->v.object[i] = l->v.holds ? ctl_install_state(&c->install, &l->m->obj, i)
					    : CTL_INSTALL_CURRENT;
		l->base.content += c->install.known[i].want_digest;
	}
}

/* A KbsConfig that does not count gets a condition, and nothing of it is installed. */
int kbsconfig_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;
	struct kbsconfig_look *l = (struct kbsconfig_look *)out;
	const struct kobj *o = k8s_cache_find(k->state->kbsconfigs, name);
	const struct model_kbsconfig *holder = kbsconfig_view_holder(k->state);

	l->base.over = !o;
	if (!o || o->unreadable)
		return CTL_KBSCONFIG_NOTHING;
	l->m = model_kbsconfig(o);
	l->base.o = o;
	l->base.have = l->m->cond;
	l->v.found = true;
	l->v.deleting = o->deleting;
	l->v.has_finalizer = l->m->has_finalizer;
	l->v.holds = holder == l->m;
	if (l->v.holds)
		ctl_install_follow(&c->install, o);
	look_objects(c, l);
	want_installed(c, l, holder);
	want_ready(c, l);
	l->v.status_ok =
		kobj_cond_same(l->m->cond, l->base.want, KBSCONFIG_N_CONDS, o->generation) &&
		l->m->has_status && l->m->is_ready == l->is_ready;
	return (int)ctl_kbsconfig_decide(&l->v);
}
