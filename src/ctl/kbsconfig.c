/* SPDX-License-Identifier: MIT */
/*
 * KbsConfig: which one counts in its namespace, look (read the caches), decide (pure), the conditions,
 * the acts with their Events, and which ones a change concerns.
 */
#include "config.h"

#include "tec/ctl/kbsconfig.h"

#include <string.h>

#include "ctl_internal.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/managed.h"
#include "tec/ctl/trusteeconfig.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/plain.h"
#include "tec/render/kbsconfig.h"

/* MODEL_KEPT_IMAGES in a JSON patch: "/" is written "~1" (RFC 6901). */
#define KEPT_PATH "/metadata/annotations/trusted-execution-clusters.io~1kept-images"

/* Inputs besides the owner: the objects that the KbsConfig names, and the port in
 * kbs-config.toml. */
#define KBSCONFIG_INPUTS 1u
#define KBSCONFIG_PORT   2u

struct ctl_kbsconfig {
	struct ctl_kind kind;
	struct ctl_install install; /* for the KbsConfig that counts in the namespace */
	/* Owned: images of Trustee, as the Deployment was last seen or written, and rendered. */
	char *image, *rendered;
};

/* Borrowed from the caches, valid for one step. */
struct kbsconfig_look {
	struct ctl_look base;
	struct ctl_kbsconfig_view v;
	const struct model_kbsconfig *m;
	bool is_ready;
};

/* ---- which one counts */

static const char *owner_of(const struct kobj *o)
{
	return o && !o->unreadable ? ((const struct model_plain *)o)->owner_uid : NULL;
}

/* The owner of the Deployment counts, so that a newer KbsConfig does not take a running Trustee
 * over; without a Deployment, the oldest that is not being deleted. */
static const struct model_kbsconfig *holder_of(const struct caches *s)
{
	const char *owner = owner_of(k8s_cache_find(s->deployments, RENDER_KBSCONFIG_DEPLOYMENT));
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
	const struct caches *s = state;

	return k8s_cache_find(secret ? s->input_secrets : s->input_configmaps, name);
}

static struct render_kbsconfig_source source_of(const struct caches *s)
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
		case CTL_INSTALL_TAKE:
			return (enum ctl_kbsconfig_do)(CTL_KBSCONFIG_TAKE + i);
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
static void want_holder(struct kbsconfig_look *l)
{
	int i;

	if (l->base.refused)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_WRITE_REFUSED, "%s",
			l->base.refused);
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

/* A change of its TrusteeConfig is written object by object, and is one rollout. */
static bool is_being_written(const struct ctl_kbsconfig *c, struct kbsconfig_look *l)
{
	const struct caches *s = c->kind.caches;

	if (k8s_cache_filled(s->trusteeconfigs))
		return ctl_trusteeconfig_writes(s, l->m);
	/* Nothing wakes this one when an empty list arrives. */
	if (l->m->owner_uid)
		ctl_look_again(&l->base, 1000, "trusteeconfigs-unknown");
	return l->m->owner_uid != NULL;
}

/* Sets v.renderable, too: decide writes nothing while an input is missing or does not fit. */
static void want_installed(const struct ctl_kbsconfig *c, struct kbsconfig_look *l,
	const struct model_kbsconfig *holder)
{
	const struct render_kbsconfig_source from = source_of(c->kind.caches);
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	enum model_kbsconfig_reason r = render_kbsconfig_check(l->m, &from, &why);
	bool waits = r == KBSCONFIG_IS_INSTALLED && is_being_written(c, l);

	l->v.renderable = r == KBSCONFIG_IS_INSTALLED && !waits;
	if (l->v.deleting)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_DELETING,
			"Waiting until the Deployment and the Service are deleted.");
	else if (!l->v.holds)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_CONFLICT,
			"KbsConfig %s already runs the only Trustee of this namespace. Delete one of them, or use another namespace.",
			holder ? holder->obj.name : "?");
	else if (r != KBSCONFIG_IS_INSTALLED)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, r, "%s", strbuf_str(&why));
	else if (waits)
		WANT(l, KBSCONFIG_INSTALLED, KOBJ_COND_FALSE, KBSCONFIG_INSTALLING,
			"Waiting until the TrusteeConfig has written all objects that it makes, see its condition Configured.");
	else
		want_holder(l);
}

/* Return a hint why Pods may never become ready, or where to look. */
static const char *why_not_ready(const struct ctl_kbsconfig *c, const struct kbsconfig_look *l)
{
	const struct render_kbsconfig_source from = source_of(c->kind.caches);

	return render_kbsconfig_has_older_admin(l->m, &from)
		       ? " Section admin of kbs-config.toml has the format of a Trustee before v0.21, and later versions do not start with it."
		       : " If this persists, see kubectl logs -l app=kbs.";
}

/* The criteria of `kubectl rollout status`, with a reason for each stage. */
static void want_ready(const struct ctl_kbsconfig *c, struct kbsconfig_look *l)
{
	const struct kobj *o =
		k8s_cache_find(c->kind.caches->deployments, RENDER_KBSCONFIG_DEPLOYMENT);
	const struct model_plain *d = (const struct model_plain *)o;
	bool there = o && !o->deleting && str_eq(owner_of(o), l->m->obj.uid);

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
		l->v.owned[i] = o && str_eq(owner_of(o), l->m->obj.uid);
		l->v.leaving[i] = o && o->deleting;
		l->v.object[i] = l->v.holds ? ctl_install_state(&c->install, &l->m->obj, i)
					    : CTL_INSTALL_CURRENT;
		l->base.content += c->install.known[i].want_digest;
	}
}

/* A KbsConfig that does not count gets a condition, and nothing of it is installed. */
static int look_at(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;
	struct kbsconfig_look *l = (struct kbsconfig_look *)out;
	const struct kobj *o = k8s_cache_find(k->caches->kbsconfigs, name);
	const struct model_kbsconfig *holder = holder_of(k->caches);

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

/* ---- the two objects */

static const char *image_of(struct json_object *deployment)
{
	struct json_object *containers = json_get_arr(deployment, "spec/template/spec/containers");

	for (size_t i = 0; i < json_len(containers); i++)
		if (str_eq(json_get_str(json_at(containers, i), "name"), "kbs"))
			return json_get_str(json_at(containers, i), "image");
	return NULL;
}

static void set_image(char **image, const char *to)
{
	free(*image);
	*image = xstrdup(to);
}

/* NULL keeps what is installed, while an input is missing or does not fit. */
static struct json_object *render(void *self, const struct kobj *owner, unsigned i)
{
	struct ctl_kbsconfig *c = self;
	const struct model_kbsconfig *m = model_kbsconfig(owner);
	const struct render_kbsconfig_source from = source_of(c->kind.caches);
	const struct kobj *have =
		k8s_cache_find(c->kind.caches->deployments, RENDER_KBSCONFIG_DEPLOYMENT);
	cleanup_strbuf struct strbuf why = STRBUF_INIT;
	struct render_kbsconfig_images images;
	struct json_object *o;

	/* An answer may arrive when an input is gone again. */
	if (render_kbsconfig_check(m, &from, &why) != KBSCONFIG_IS_INSTALLED)
		return NULL;
	if (i == CTL_KBSCONFIG_SERVICE)
		return render_kbsconfig_service(m, c->kind.env->ns, &from);
	images = c->kind.env->kbsconfig_images;
	images.kept =
		have && !have->unreadable ? ((const struct model_plain *)have)->kept_images : NULL;
	o = render_kbsconfig_deployment(m, c->kind.env->ns, &from, &images);
	set_image(&c->rendered, image_of(o));
	return o;
}

/* A Deployment that is taken over keeps its images. */
static void taking(void *self, const struct kobj *owner, unsigned i, struct json_object *o,
	struct json_object *patch)
{
	const struct ctl_kbsconfig *c = self;
	const struct render_kbsconfig_source from = source_of(c->kind.caches);
	cleanup_free char *kept = NULL;

	if (i != CTL_KBSCONFIG_DEPLOYMENT)
		return;
	kept = render_kbsconfig_kept(model_kbsconfig(owner), &from, o);
	if (!json_get_obj(o, "metadata/annotations"))
		kobj_patch_op(patch, "add", "/metadata/annotations", json_obj());
	kobj_patch_op(patch, "add", KEPT_PATH, json_object_new_string(kept));
}

static bool saw(void *self, const struct kobj *owner, unsigned i, struct json_object *o)
{
	if (i == CTL_KBSCONFIG_DEPLOYMENT)
		set_image(&((struct ctl_kbsconfig *)self)->image, image_of(o));
	return true;
}

static const struct ctl_install_object objects[CTL_KBSCONFIG_N_OBJECTS] = {
	[CTL_KBSCONFIG_DEPLOYMENT] = {&kobj_deployment, RENDER_KBSCONFIG_DEPLOYMENT,
		CTL_INSTALL_APPLIED, KBSCONFIG_INPUTS},
	[CTL_KBSCONFIG_SERVICE] = {&kobj_service, RENDER_KBSCONFIG_SERVICE, CTL_INSTALL_APPLIED,
		KBSCONFIG_PORT},
};

/* Another Trustee may speak another protocol to its clients. */
static void tell_image(struct ctl_kbsconfig *c, const struct kobj *owner)
{
	if (c->image && c->rendered && !str_eq(c->image, c->rendered))
		k8s_events_post(c->kind.env->events, &kobj_kbsconfig, owner, K8S_EVENT_NORMAL,
			"ImageChanged", "Update", "The image of Trustee was changed from %s to %s.",
			c->image, c->rendered);
	set_image(&c->image, c->rendered);
}

/* Event reasons per object and act; the names are part of the interface. */
static void wrote(void *self, const struct kobj *owner, unsigned i, enum ctl_install_do what)
{
	static const struct {
		const char *deployment, *service, *did;
	} events[] = {
		[CTL_INSTALL_CREATE] = {"DeploymentCreated", "ServiceCreated", "written"},
		[CTL_INSTALL_TAKE] = {"TakenOver", "TakenOver",
			"taken over from the Trustee operator"},
		[CTL_INSTALL_APPLY] = {"DeploymentUpdated", "ServiceUpdated", "written"},
		[CTL_INSTALL_DELETE] = {"DeploymentDeleted", "ServiceDeleted", "deleted"},
	};
	struct ctl_kbsconfig *c = self;
	const char *reason =
		i == CTL_KBSCONFIG_SERVICE ? events[what].service : events[what].deployment;
	const struct ctl_install_object *t = &objects[i];
	struct log_ctx lc = {t->gvk->kind, c->kind.env->ns, t->name, NULL};

	log_info(&lc, events[what].did, "reason=%s", reason);
	k8s_events_post(c->kind.env->events, &kobj_kbsconfig, owner, K8S_EVENT_NORMAL, reason,
		reason, "%s %s was %s.", t->gvk->kind, t->name, events[what].did);
	if (i == CTL_KBSCONFIG_DEPLOYMENT && what == CTL_INSTALL_APPLY)
		tell_image(c, owner);
}

static const struct ctl_install_conf installed = {
	.owner = &kobj_kbsconfig,
	.objects = objects,
	.n = CTL_KBSCONFIG_N_OBJECTS,
	.render = render,
	.wrote = wrote,
	.by_digest = true,
	.saw = saw,
	.takes_from = "manager", /* the name of the Trustee operator's program */
	.taking = taking,
};

/* ---- how acts start and end */

/* Decode an act on an installed object. Return false for any other act. */
static bool of_object(int d, unsigned *i, enum ctl_install_do *what)
{
	if (d < CTL_KBSCONFIG_READ || d >= CTL_KBSCONFIG_DROP_FINALIZER)
		return false;
	*i = (unsigned)(d - CTL_KBSCONFIG_READ) % CTL_KBSCONFIG_N_OBJECTS;
	*what = d < CTL_KBSCONFIG_TAKE     ? CTL_INSTALL_READ
		: d < CTL_KBSCONFIG_APPLY  ? CTL_INSTALL_TAKE
		: d < CTL_KBSCONFIG_DELETE ? CTL_INSTALL_APPLY
					   : CTL_INSTALL_DELETE;
	return true;
}

/* ctl/install does the request; the number of the act says which object and what. */
static struct op *start_object(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;
	enum ctl_install_do what = CTL_INSTALL_NOTHING;
	struct err err = ERR_INIT;
	unsigned i = 0;
	struct op *op;

	if (!of_object(d, &i, &what))
		DIE("act %d is not an object's", d);
	op = ctl_install_start(&c->install, look->o, i, what, ctl_kind_done, a, &err);
	if (!op)
		log_err(LOG_ERROR, NULL, "cannot render an object", &err);
	return op;
}

static struct op *add_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	return ctl_kind_add_finalizer(k, a, look->o, MODEL_KBSCONFIG_FINALIZER);
}

/* The cached list without ours is complete, because the patch carries its resourceVersion. */
static struct op *drop_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct kbsconfig_look *l = (const struct kbsconfig_look *)look;
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);

	json_add(meta, "finalizers", kobj_finalizers(l->m->other_finalizers, NULL));
	return ctl_kind_patch(k, a, &kobj_kbsconfig, a->name, patch);
}

/* The KbsConfig may be gone by now; ctl_install_done() then updates only the cache. */
static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;
	enum ctl_install_do what;
	unsigned i;

	if (!of_object(a->doing, &i, &what))
		return false;
	return ctl_install_done(
		&c->install, k8s_cache_find(k->caches->kbsconfigs, a->name), i, what, err, r);
}

/* Ready changes are routine: only Installed can cause a warning. */
static void tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	for (int i = 0; i < KBSCONFIG_N_CONDS; i++) {
		const struct kobj_cond_want *w = &a->want[i];
		bool fine = w->status == KOBJ_COND_TRUE;
		const char *reason = i == KBSCONFIG_READY && !fine ? "NotReady" : w->reason;

		if (!(a->event_mask & 1u << i) ||
			str_eq(w->reason, model_kbsconfig_reason(KBSCONFIG_INSTALLING)))
			continue;
		k8s_events_post(k->env->events, &kobj_kbsconfig, o,
			fine || i == KBSCONFIG_READY ? K8S_EVENT_NORMAL : K8S_EVENT_WARNING, reason,
			reason, "%s", w->message);
	}
}

/* isReady is a field of the upstream Trustee operator's API. */
static void add_status(const struct ctl_look *look, struct json_object *status)
{
	json_add_bool(status, "isReady", ((const struct kbsconfig_look *)look)->is_ready);
}

#define OF_OBJECT(what, i, text)                                                                   \
	[CTL_KBSCONFIG_##what + (i)] = {text,                                                      \
		.flags = CTL_KBSCONFIG_##what == CTL_KBSCONFIG_DELETE ? CTL_DO_GONE_IS_FINE : 0,   \
		.start = start_object}

static const struct ctl_do acts[CTL_KBSCONFIG_N_DO] = {
	[CTL_KBSCONFIG_ADD_FINALIZER] = {"add the finalizer", .flags = CTL_DO_ANSWERS_SELF,
		.start = add_finalizer},
	OF_OBJECT(READ, CTL_KBSCONFIG_DEPLOYMENT, "read the Deployment"),
	OF_OBJECT(READ, CTL_KBSCONFIG_SERVICE, "read the Service"),
	OF_OBJECT(TAKE, CTL_KBSCONFIG_DEPLOYMENT, "take the Deployment over"),
	OF_OBJECT(TAKE, CTL_KBSCONFIG_SERVICE, "take the Service over"),
	OF_OBJECT(APPLY, CTL_KBSCONFIG_DEPLOYMENT, "write the Deployment"),
	OF_OBJECT(APPLY, CTL_KBSCONFIG_SERVICE, "write the Service"),
	OF_OBJECT(DELETE, CTL_KBSCONFIG_DEPLOYMENT, "delete the Deployment"),
	OF_OBJECT(DELETE, CTL_KBSCONFIG_SERVICE, "delete the Service"),
	[CTL_KBSCONFIG_DROP_FINALIZER] = {"remove the finalizer", "KbsConfig released",
		CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE, .start = drop_finalizer},
	[CTL_KBSCONFIG_APPLY_STATUS] = {"write the status", .flags = CTL_DO_ANSWERS_SELF,
		.start = ctl_kind_start_status},
};

/* ---- which ones a change concerns */

/* Annotations change without a new generation. */
static void map_kbsconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kbsconfig *c = self;
	bool moved = !was || !now || !str_eq(was->uid, now->uid) || was->deleting != now->deleting;

	ctl_runner_wake(c->kind.runner, was ? was->name : now->name);
	if (moved) /* another KbsConfig may count now */
		ctl_kind_wake_all(&c->kind);
	else if (!str_eq(model_kbsconfig(was)->layout, model_kbsconfig(now)->layout) ||
		 !str_eq(model_kbsconfig(was)->guard, model_kbsconfig(now)->guard) ||
		 !str_eq(model_kbsconfig(was)->writable, model_kbsconfig(now)->writable))
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
	const struct model_kbsconfig *holder = holder_of(c->kind.caches);

	/* Any object may be one that its TrusteeConfig has to write, or a source of one. */
	if (holder && holder->owner_uid)
		ctl_runner_wake(c->kind.runner, holder->obj.name);
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

/* It may have to write objects now, or no longer. */
static void map_trusteeconfig(void *self, const struct kobj *was, const struct kobj *now)
{
	ctl_kind_wake_all(self);
}

/* A change of owner may change which KbsConfig counts. */
static void map_object(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_kbsconfig *c = self;
	const char *name = was ? was->name : now->name;

	if (!str_eq(name, RENDER_KBSCONFIG_DEPLOYMENT) && !str_eq(name, RENDER_KBSCONFIG_SERVICE))
		return;
	if (was && now && str_eq(owner_of(was), owner_of(now)))
		ctl_kind_wake_index(&c->kind, c->kind.caches->kbsconfigs, 1, owner_of(now));
	else
		ctl_kind_wake_all(&c->kind);
}

/* What was compared while leading may be outdated at the next start. */
static void forget(struct ctl_kind *k)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;

	ctl_install_follow(&c->install, NULL);
	set_image(&c->image, NULL);
	set_image(&c->rendered, NULL);
}

struct ctl_kind *ctl_kbsconfig_new(const struct ctl_env *env)
{
	static const struct ctl_watch watches[] = {
		{CACHES_KBSCONFIGS, map_kbsconfig},
		{CACHES_TRUSTEECONFIGS, map_trusteeconfig},
		{CACHES_INPUT_CONFIGMAPS, map_configmap},
		{CACHES_INPUT_SECRETS, map_secret},
		{CACHES_DEPLOYMENTS, map_object},
		{CACHES_SERVICES, map_object},
		{.map = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "kbsconfig",
		.of = CACHES_KBSCONFIGS,
		.size = sizeof(struct ctl_kbsconfig),
		.look_size = sizeof(struct kbsconfig_look),
		.n_conds = KBSCONFIG_N_CONDS,
		.acts = acts,
		.status = CTL_KBSCONFIG_APPLY_STATUS,
		.watches = watches,
		.look = look_at,
		.ended = ended,
		.tell = tell,
		.add_status = add_status,
		.forget = forget,
	};
	struct ctl_kind *k = ctl_kind_new(env, &conf);
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;

	ctl_install_init(&c->install, env, &installed, c, &k->acts.ops);
	return k;
}
