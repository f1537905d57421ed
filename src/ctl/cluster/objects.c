/* SPDX-License-Identifier: MIT */
/*
 * The installation as one table, with its exceptions. After their creation the ConfigMaps of the
 * image controller and its Jobs are never written here. Inputs that Trustee reads only at its start
 * are taken from its Deployment when that is read, before anything is rendered from them.
 */
#include "config.h"

#include "cluster_internal.h"

#include "tec/base/log.h"
#include "tec/render/listener.h"

#define OF_TRUSTEE CLUSTER_IF_MANAGED /* part of Trustee, without files */
#define FILES      (CLUSTER_IF_MANAGED | CLUSTER_IF_FILES)

static const struct ctl_install_object objects[CLUSTER_N_OBJECTS] = {
	[CLUSTER_DATA] = {&kobj_configmap, "trustee-data", CTL_INSTALL_APPLIED,
		FILES | CLUSTER_FROM_INPUTS},
	[CLUSTER_POLICIES] = {&kobj_configmap, "trustee-policies", CTL_INSTALL_APPLIED, FILES},
	[CLUSTER_RV_DATA] = {&kobj_configmap, "trustee-rv-data", CTL_INSTALL_CREATED, 0},
	[CLUSTER_IMAGE_PCRS] = {&kobj_configmap, "image-pcrs", CTL_INSTALL_CREATED, 0},
	[CLUSTER_KBS_SERVICE] = {&kobj_service, "kbs-service", CTL_INSTALL_APPLIED, OF_TRUSTEE},
	[CLUSTER_ADMIN_SERVICE] = {&kobj_service, "kbs-admin", CTL_INSTALL_APPLIED, OF_TRUSTEE},
	[CLUSTER_TRUSTEE] = {&kobj_deployment, CLUSTER_DEPLOYMENT, CTL_INSTALL_APPLIED,
		FILES | CLUSTER_FROM_INPUTS | CLUSTER_FROM_FILES},
	[CLUSTER_REGISTER_SERVICE] = {&kobj_service, "register-server", CTL_INSTALL_APPLIED, 0},
	[CLUSTER_AK_SERVICE] = {&kobj_service, "attestation-key-register", CTL_INSTALL_APPLIED, 0},
	[CLUSTER_OLD_REGISTER] = {&kobj_deployment, "register-server", CTL_INSTALL_UNWANTED, 0},
	[CLUSTER_OLD_AK] = {&kobj_deployment, "attestation-key-register", CTL_INSTALL_UNWANTED, 0},
};

/* Called by ctl/install. NULL means that the object cannot be rendered now: it is left as it is. */
static struct json_object *render(void *self, const struct kobj *owner, unsigned i)
{
	const struct ctl_cluster *ctl = self;
	const struct model_cluster *c = model_cluster(owner);
	const char *ns = ctl->env->ns;
	const struct render_trustee_inputs in = cluster_inputs(ctl);

	switch (i) {
	case CLUSTER_DATA:
		return render_trustee_data(c, ns, &in);
	case CLUSTER_POLICIES:
		return render_trustee_policies(c, ns);
	case CLUSTER_RV_DATA:
		return render_rv_data(c, ns);
	case CLUSTER_IMAGE_PCRS:
		return render_image_pcrs(ns);
	case CLUSTER_KBS_SERVICE:
		return render_trustee_service(c, ns);
	case CLUSTER_ADMIN_SERVICE:
		return render_trustee_admin_service(c, ns);
	case CLUSTER_TRUSTEE:
		return c->delivery == MODEL_DELIVERY_VOLUMES
			       ? cluster_volumes_render(ctl, c)
			       : render_trustee_deployment(c, ns, &ctl->env->images_ref, &in);
	case CLUSTER_REGISTER_SERVICE:
		return render_register_service(c, ns);
	case CLUSTER_AK_SERVICE:
		return render_ak_service(c, ns);
	default:
		return NULL;
	}
}

/* The Service for the admin API exists only with the guard. */
static bool wanted(void *self, const struct kobj *owner, unsigned i)
{
	return i != CLUSTER_ADMIN_SERVICE || render_trustee_has_admin_service(model_cluster(owner));
}

/* Take the inputs that the Deployment carries. A Deployment of another operator is deleted and
 * created again, because an apply would keep its mounts; one without an owner is left alone. */
static bool saw(void *self, const struct kobj *owner, unsigned i, struct json_object *o)
{
	struct ctl_cluster *c = self;

	if (i != CLUSTER_TRUSTEE)
		return true;
	cluster_inputs_saw_deployment(c, model_cluster(owner), o);
	if (render_trustee_deployment_is_foreign(o))
		return false;
	if (c->volumes.uid)
		cluster_served_saw(&c->volumes, o);
	/* The first read is what the decision about the files was waiting for. */
	if (c->volumes.uid && !c->volumes.has_wanted)
		cluster_volumes_step(c, model_cluster(owner));
	return true;
}

/* Note whether certificate or signers differ: then the next write of the Deployment is an
 * update, not a repair. */
static void compared(
	void *self, unsigned i, struct json_object *want, struct json_object *have, bool current)
{
	struct ctl_cluster *c = self;

	if (i != CLUSTER_TRUSTEE)
		return;
	if (current)
		c->volumes.announced = c->inputs.moved = false;
	else if (!str_eq(render_trustee_tls_hash(want), render_trustee_tls_hash(have)) ||
		 !str_eq(render_trustee_token_hash(want), render_trustee_token_hash(have)))
		c->inputs.moved = true;
}

/* ---- logs, Events, conditions */

/* From the condition in the cache: a write after the installation was complete is a repair. */
bool cluster_objects_installed(const struct kobj *cluster)
{
	return model_cluster(cluster)->cond[CLUSTER_INSTALLED].status == KOBJ_COND_TRUE;
}

/*
 * Log a write and post its Event. The Deployment is updated for a certificate, a signer or a file;
 * any other write of it is a repair.
 *
 * A takeover deletes the Deployment. Trustee then serves no keys from the end of the old Pod until
 * the new one is ready and filled, as in every restart of Trustee; nodes that boot in between
 * retry. The gap is as short as one Pod allows, because everything that the new Pod mounts was
 * created before (the order of the table). No key is lost: the keys are in the Machines' Secrets,
 * from which the new Trustee is filled. Two Trustees at once would not help: one Service would
 * route to both, and the new one is empty at first.
 */
static void wrote(void *self, const struct kobj *owner, unsigned i, enum ctl_install_do what)
{
	struct ctl_cluster *c = self;
	const struct ctl_install_object *t = &objects[i];
	bool installed = cluster_objects_installed(owner), trustee = i == CLUSTER_TRUSTEE;
	bool moved = installed && c->inputs.moved && (trustee || i == CLUSTER_DATA);
	bool files = installed && trustee && c->volumes.announced;
	struct log_ctx lc = {t->gvk->kind, c->env->ns, t->name, NULL};

	if (what == CTL_INSTALL_DELETE && i == CLUSTER_ADMIN_SERVICE) {
		log_info(&lc, "deleted, it no longer exposes Trustee's admin API", NULL);
		return;
	}
	if (what == CTL_INSTALL_DELETE) {
		if (!trustee)
			return;
		log_info(&lc, "deleted, another operator created it for this cluster", NULL);
		k8s_events_post(c->env->events, &kobj_cluster, owner, K8S_EVENT_NORMAL, "TakenOver",
			"TakeOver",
			"Deployment " CLUSTER_DEPLOYMENT
			" was created by another operator, so it was deleted and is created again. Keys do not change; Trustee "
			"serves them again when its new Pod is ready.");
		return;
	}
	if (trustee)
		c->volumes.announced = c->inputs.moved = false;
	if (moved)
		log_info(&lc, "updated for a new certificate or token signer", NULL);
	else if (files)
		log_info(NULL, "Trustee restarts because its files changed", "machine=%zu ak=%zu",
			c->volumes.wanted.machines.n, c->volumes.wanted.aks.n);
	else
		ctl_install_tell(&c->install, owner, installed, t->gvk, t->name);
	if (moved && trustee)
		k8s_events_post(c->env->events, &kobj_cluster, owner, K8S_EVENT_NORMAL, "Restarted",
			"Restart",
			"Trustee restarts once, because its certificate or token signer changed.");
}

const struct ctl_install_conf cluster_objects = {.owner = &kobj_cluster,
	.objects = objects,
	.n = CLUSTER_N_OBJECTS,
	.render = render,
	.wanted = wanted,
	.saw = saw,
	.compared = compared,
	.wrote = wrote};
