/* SPDX-License-Identifier: MIT */
/* KbsConfig: the acts, each one request, their Events, and the table of installed objects. */
#include "config.h"

#include "kbsconfig_internal.h"

#include "tec/base/json.h"
#include "tec/base/log.h"

/* ---- the two objects */

/* NULL keeps what is installed, while an input is missing or does not fit. */
static struct json_object *render(void *self, const struct kobj *owner, unsigned i)
{
	const struct ctl_kbsconfig *c = self;
	const struct model_kbsconfig *m = model_kbsconfig(owner);
	const struct render_kbsconfig_source from = kbsconfig_view_source(c->kind.state);
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	/* An answer may arrive when an input is gone again. */
	if (render_kbsconfig_check(m, &from, &why) != KBSCONFIG_IS_INSTALLED)
		return NULL;
	return i == CTL_KBSCONFIG_SERVICE ? render_kbsconfig_service(m, c->kind.env->ns, &from)
					  : render_kbsconfig_deployment(m, c->kind.env->ns, &from,
						    &c->kind.env->kbsconfig_images);
}

/* Recognize a Deployment of the upstream Trustee operator (return false: it is replaced). An
 * apply would keep its init container, which could not write into our mounts. */
static bool saw(void *self, const struct kobj *owner, unsigned i, struct json_object *o)
{
	struct json_object *first = json_get_arr(o, "spec/template/spec/initContainers");

	for (size_t k = 0; k < json_len(first); k++)
		if (str_eq(json_get_str(json_at(first, k), "name"), "secret-converter"))
			return false;
	return true;
}

/* Event reasons per object and act; the names are part of the interface. */
static void wrote(void *self, const struct kobj *owner, unsigned i, enum ctl_install_do what)
{
	static const char *const reasons[CTL_KBSCONFIG_N_OBJECTS][3] = {
		[CTL_KBSCONFIG_DEPLOYMENT] = {"DeploymentUpdated", "DeploymentDeleted",
			"DeploymentCreated"},
		[CTL_KBSCONFIG_SERVICE] = {"ServiceUpdated", "ServiceDeleted", "ServiceCreated"},
	};
	const struct ctl_kbsconfig *c = self;
	bool gone = what == CTL_INSTALL_DELETE;
	const char *reason = reasons[i][what == CTL_INSTALL_CREATE ? 2 : gone];
	const struct ctl_install_object *t = &kbsconfig_install.objects[i];
	struct log_ctx lc = {t->gvk->kind, c->kind.env->ns, t->name, NULL};

	log_info(&lc, gone ? "deleted" : "written", "reason=%s", reason);
	k8s_events_post(c->kind.env->events, &kobj_kbsconfig, owner, K8S_EVENT_NORMAL, reason,
		reason, "%s %s was %s.", t->gvk->kind, t->name, gone ? "deleted" : "written");
}

static const struct ctl_install_object objects[CTL_KBSCONFIG_N_OBJECTS] = {
	[CTL_KBSCONFIG_DEPLOYMENT] = {&kobj_deployment, RENDER_KBSCONFIG_DEPLOYMENT,
		CTL_INSTALL_APPLIED, KBSCONFIG_INPUTS},
	[CTL_KBSCONFIG_SERVICE] = {&kobj_service, RENDER_KBSCONFIG_SERVICE, CTL_INSTALL_APPLIED,
		KBSCONFIG_PORT},
};

const struct ctl_install_conf kbsconfig_install = {
	.owner = &kobj_kbsconfig,
	.objects = objects,
	.n = CTL_KBSCONFIG_N_OBJECTS,
	.render = render,
	.saw = saw,
	.wrote = wrote,
	.by_digest = true,
	.replaces_orphans = true, /* from kubectl delete --cascade=orphan, or version 0.17 */
};

/* ---- how acts start and end */

/* Decode an act on an installed object. Return false for any other act. */
static bool of_object(int d, unsigned *i, enum ctl_install_do *what)
{
	if (d < CTL_KBSCONFIG_READ || d >= CTL_KBSCONFIG_DROP_FINALIZER)
		return false;
	*i = (unsigned)(d - CTL_KBSCONFIG_READ) % CTL_KBSCONFIG_N_OBJECTS;
	*what = d < CTL_KBSCONFIG_APPLY    ? CTL_INSTALL_READ
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
bool kbsconfig_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct ctl_kbsconfig *c = (struct ctl_kbsconfig *)k;
	enum ctl_install_do what;
	unsigned i;

	if (!of_object(a->doing, &i, &what))
		return false;
	return ctl_install_done(
		&c->install, k8s_cache_find(k->state->kbsconfigs, a->name), i, what, err, r);
}

/* Ready changes are routine: only Installed can cause a warning. */
void kbsconfig_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
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
void kbsconfig_act_add_status(const struct ctl_look *look, struct json_object *status)
{
	json_add_bool(status, "isReady", ((const struct kbsconfig_look *)look)->is_ready);
}

#define OF_OBJECT(what, i, text)                                                                   \
	[CTL_KBSCONFIG_##what + (i)] = {text,                                                      \
		.flags = CTL_KBSCONFIG_##what == CTL_KBSCONFIG_DELETE ? CTL_DO_GONE_IS_FINE : 0,   \
		.start = start_object}

const struct ctl_do kbsconfig_acts[CTL_KBSCONFIG_N_DO] = {
	[CTL_KBSCONFIG_ADD_FINALIZER] = {"add the finalizer", .flags = CTL_DO_ANSWERS_SELF,
		.start = add_finalizer},
	OF_OBJECT(READ, CTL_KBSCONFIG_DEPLOYMENT, "read the Deployment"),
	OF_OBJECT(READ, CTL_KBSCONFIG_SERVICE, "read the Service"),
	OF_OBJECT(APPLY, CTL_KBSCONFIG_DEPLOYMENT, "write the Deployment"),
	OF_OBJECT(APPLY, CTL_KBSCONFIG_SERVICE, "write the Service"),
	OF_OBJECT(DELETE, CTL_KBSCONFIG_DEPLOYMENT, "delete the Deployment"),
	OF_OBJECT(DELETE, CTL_KBSCONFIG_SERVICE, "delete the Service"),
	[CTL_KBSCONFIG_DROP_FINALIZER] = {"remove the finalizer", "KbsConfig released",
		CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE, .start = drop_finalizer},
	[CTL_KBSCONFIG_APPLY_STATUS] = {"write the status", .flags = CTL_DO_ANSWERS_SELF,
		.start = ctl_kind_start_status},
};
