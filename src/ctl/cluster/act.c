/* SPDX-License-Identifier: MIT */
/*
 * Acts: one request each, and what happens with its answer. One number identifies an act (what is
 * done, to which object), so that the answer finds its object. If the cluster object was replaced
 * in the meantime, the controller's memory was reset and only the cache takes the answer.
 */
#include "config.h"

#include "cluster_internal.h"

#include <stdio.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/record.h"
#include "tec/model/lost.h"
#include "tec/render/regkey.h"

/* struct ctl_act.doing: 8 bits of enum ctl_cluster_do, 8 of enum cluster_object, then the number
 * (of a signer or registration key). */
#define DOING(d, object, number) ((int)(d) | (int)((object) << 8 | (number) << 16))
#define DO(doing)                ((enum ctl_cluster_do)((doing)&0xff))
#define OBJECT(doing)            ((unsigned)(doing) >> 8 & 0xff)
#define NUMBER(doing)            ((unsigned)(doing) >> 16)

/* Return the Secret that an act is about, or NULL if the operator does not create that object. */
static struct ctl_own *own_of(struct ctl_cluster *c, unsigned object, unsigned number)
{
	switch (object) {
	case CLUSTER_AUTH:
		return &c->auth;
	case CLUSTER_REGKEY:
		return &c->regkey[number == CLUSTER_REGKEY_PREVIOUS];
	case CLUSTER_SIGNER:
		return &cluster_inputs_signer(c, number)->own;
	default:
		return NULL;
	}
}

/* ---- answers: logs and Events */

/* Report a Secret that was created or deleted. Rotations are routine and get a log line at most;
 * a new signer gets an Event because Trustee restarts for it. */
static void tell_own(const struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned object, const char *name)
{
	struct log_ctx lc = {"Secret", c->env->ns, name, NULL};
	bool deleted = d == CTL_CLUSTER_DELETE;

	if (object == CLUSTER_REGKEY) { /* it is rotated, never repaired */
		log_info(&lc, deleted ? "registration key deleted" : "registration key created",
			NULL);
		if (deleted && str_eq(name, RENDER_REGKEY_CURRENT) &&
			ctl_record_ids_full(c->env->record)) {
			/* Administrators have to know, because nodes that were about to register
			 * fail from now on. */
			log_warn(NULL, "too many Machines were deleted, all issued IDs are invalid",
				NULL);
			k8s_events_post(c->env->events, &kobj_cluster, cluster, K8S_EVENT_WARNING,
				"RegistrationKeysReplaced", "Register",
				"More than %d Machines were deleted while their IDs were still valid, and ConfigMap " MODEL_RECORD_IDS
				" can record no more. Every registration key was deleted, which invalidates every issued ID: reinstall each "
				"node that fetched its Ignition configuration but has not registered its key yet.",
				MODEL_RECORD_IDS_MAX);
		}
	} else if (deleted) {
		log_info(&lc, "unused token signer deleted", NULL);
	} else if (object == CLUSTER_SIGNER && c->inputs.plan.n_use) {
		log_info(&lc, "next token signer created", NULL);
		k8s_events_post(c->env->events, &kobj_cluster, cluster, K8S_EVENT_NORMAL,
			"SignerMade", "MakeSigner",
			"Secret %s will sign Trustee's tokens, because the current certificate expires soon. Trustee restarts twice "
			"within a day for this, and trusts both certificates in between.",
			name);
	} else {
		ctl_install_tell(&c->install, cluster, cluster_objects_installed(cluster),
			&kobj_secret, name);
	}
}

/* Called once the API has accepted the status, so that an Event never announces a condition that
 * nobody can see. A condition that became True is a Normal Event, anything else a Warning. */
static void post_events(struct ctl_cluster *c, const struct ctl_act *a, const struct kobj *o)
{
	static const char *const actions[CLUSTER_N_CONDS] = {
		[CLUSTER_INSTALLED] = "Install",
		[CLUSTER_TRUSTEE_SYNCED] = "Administer",
		[CLUSTER_REGISTRATION_OPEN] = "Register",
		[CLUSTER_KEYS_ISOLATED] = "Isolate",
		[CLUSTER_AUTHORITY] = "Decide",
	};
	const struct kobj_cond_want *reg = &a->want[CLUSTER_REGISTRATION_OPEN];
	struct log_ctx lc = {"TrustedExecutionCluster", c->env->ns, a->name, NULL};
	bool open = reg->status == KOBJ_COND_TRUE;

	for (int i = 0; i < CLUSTER_N_CONDS; i++) {
		const struct kobj_cond_want *w = &a->want[i];

		if (actions[i] && a->event_mask & 1u << i &&
			!str_eq(w->reason, model_cluster_reason(CLUSTER_INSTALLING)))
			k8s_events_post(c->env->events, &kobj_cluster, o,
				w->status == KOBJ_COND_TRUE ? K8S_EVENT_NORMAL : K8S_EVENT_WARNING,
				w->reason, actions[i], "%s", w->message);
	}
	if (a->event_mask & 1u << CLUSTER_REGISTRATION_OPEN)
		log_at(open ? LOG_INFO : LOG_WARN, &lc,
			open ? "registration is open" : "registration is closed", "reason=%s",
			reg->reason);
}

/* Changes that get no Event, by their reasons; N_REASONS: any. They are transitional or were just set
 * in spec by an administrator; one is posted by ctl/follow, after a delay. */
static const struct quiet {
	enum model_cluster_cond cond;
	enum model_cluster_reason from, to;
} quiet[] = {
	{CLUSTER_REGISTRATION_OPEN, CLUSTER_N_REASONS, CLUSTER_NOT_SERVED},
	{CLUSTER_REGISTRATION_OPEN, CLUSTER_N_REASONS, CLUSTER_PEER_UNKNOWN},
	{CLUSTER_REGISTRATION_OPEN, CLUSTER_N_REASONS, CLUSTER_MODE_MANUAL},
	{CLUSTER_REGISTRATION_OPEN, CLUSTER_PEER_UNKNOWN, CLUSTER_OPEN},
	{CLUSTER_AUTHORITY, CLUSTER_N_REASONS, CLUSTER_NOT_SERVED},
	{CLUSTER_AUTHORITY, CLUSTER_N_REASONS, CLUSTER_PEER_UNKNOWN},
	{CLUSTER_AUTHORITY, CLUSTER_N_REASONS, CLUSTER_FREEZING},
	{CLUSTER_AUTHORITY, CLUSTER_N_REASONS, CLUSTER_RETIRING},
	{CLUSTER_AUTHORITY, CLUSTER_N_REASONS, CLUSTER_FOLLOWING_BEHIND},
	{CLUSTER_AUTHORITY, CLUSTER_FOLLOWING_BEHIND, CLUSTER_FOLLOWING},
	{CLUSTER_AUTHORITY, CLUSTER_PEER_UNKNOWN, CLUSTER_SELF},
	{CLUSTER_KEYS_ISOLATED, CLUSTER_N_REASONS, CLUSTER_NOT_SERVED},
	{CLUSTER_KEYS_ISOLATED, CLUSTER_N_REASONS, CLUSTER_PER_MACHINE},
	{CLUSTER_KEYS_ISOLATED, CLUSTER_N_REASONS, CLUSTER_SHARED_AMONG_NODES},
};

/* Select the conditions whose change deserves an Event. Of a new cluster, it is no news that it
 * decides and that registration is open. */
static unsigned events_of(const struct cluster_look *l)
{
	const struct kobj_cond *have = l->c->cond;
	const struct kobj_cond_want *installed = &l->want[CLUSTER_INSTALLED];
	unsigned mask = ctl_cond_changes(have, l->want, CLUSTER_N_CONDS);

	/* The reason is the same, but another object is in conflict or refused. */
	if ((str_eq(installed->reason, model_cluster_reason(CLUSTER_CONFLICT)) ||
		    str_eq(installed->reason, model_cluster_reason(CLUSTER_REFUSED))) &&
		have[CLUSTER_INSTALLED].message_hash != kobj_message_hash(installed->message))
		mask |= 1u << CLUSTER_INSTALLED;
	for (const struct quiet *q = quiet; q < quiet + ARRAY_LEN(quiet); q++)
		if (str_eq(l->want[q->cond].reason, model_cluster_reason(q->to)) &&
			(q->from == CLUSTER_N_REASONS ||
				str_eq(have[q->cond].reason, model_cluster_reason(q->from))))
			mask &= ~(1u << q->cond);
	/* Trustee comes and goes; only a conflict stays until somebody acts. */
	if (!str_eq(l->want[CLUSTER_TRUSTEE_SYNCED].reason, model_cluster_reason(CLUSTER_CONFLICT)))
		mask &= ~(1u << CLUSTER_TRUSTEE_SYNCED);
	for (int i = 0; i < CLUSTER_N_CONDS; i++)
		if ((i == CLUSTER_REGISTRATION_OPEN || i == CLUSTER_AUTHORITY) &&
			have[i].status == KOBJ_COND_ABSENT && l->want[i].status == KOBJ_COND_TRUE)
			mask &= ~(1u << i);
	return mask;
}

/* ---- answers */

/* Take the answer of a request for a Secret that the operator creates. Private members are wiped
 * from the answer of a DELETE; ctl_take_answer() keeps only what the cache extracts. */
static bool own_done(struct ctl_cluster *c, struct ctl_own *own, const struct kobj *cluster,
	int doing, const struct err *err, const struct k8s_result *r)
{
	unsigned object = OBJECT(doing), number = NUMBER(doing);
	bool ours = cluster && str_eq(cluster->uid, c->install.owner_uid);
	enum ctl_cluster_do d = DO(doing);

	if (err_is_set(err))
		return ctl_install_failed(&own->must_read, (enum ctl_install_do)d, err, r);
	own->must_read = false;
	if (ours && d != CTL_CLUSTER_READ)
		tell_own(c, cluster, d, object, own->name);
	if (d == CTL_CLUSTER_DELETE) {
		json_wipe(json_get_obj(r->object, "data"));
		return true;
	}
	if (ours)
		ctl_own_saw(own, cluster, r->object);
	if (ours && object == CLUSTER_SIGNER)
		cluster_inputs_saw_signer(cluster_inputs_signer(c, number), r->object);
	if (ours && object == CLUSTER_REGKEY && number == CLUSTER_REGKEY_TO_COPY)
		cluster_regkey_copy(c, model_cluster(cluster), r->object);
	ctl_take_answer(c->env->caches->secrets, r->object, true);
	return true;
}

/* The act, for errors: "write Deployment trustee-deployment". The caller frees it. */
static char *name_of(struct ctl_cluster *c, int doing)
{
	static const char *const verbs[] = {[CTL_CLUSTER_READ] = "read",
		[CTL_CLUSTER_CREATE] = "create",
		[CTL_CLUSTER_APPLY] = "write",
		[CTL_CLUSTER_DELETE] = "delete"};
	unsigned object = OBJECT(doing);
	const struct ctl_own *own = own_of(c, object, NUMBER(doing));
	enum ctl_cluster_do d = DO(doing);

	if (d >= CTL_CLUSTER_ANNOUNCE)
		return xstrdup("write the TrustedExecutionCluster");
	if (object == CLUSTER_TLS || own)
		return xasprintf("%s Secret %s", verbs[d], own ? own->name : "(trusteeSecret)");
	return xasprintf("%s %s %s", verbs[d], cluster_objects.objects[object].gvk->kind,
		cluster_objects.objects[object].name);
}

/* Every request of this controller ends here. `cluster` is the object as it is now; it may be
 * NULL or a different one than when the request was sent. */
static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_cluster *c = a->table->self;
	const struct kobj *cluster = k8s_cache_find(c->env->caches->clusters, a->name);
	struct log_ctx lc = {"TrustedExecutionCluster", c->env->ns, a->name, NULL};
	enum ctl_cluster_do d = DO(a->doing);
	unsigned object = OBJECT(a->doing);
	struct ctl_own *own = own_of(c, object, NUMBER(a->doing));
	cleanup_free char *what = name_of(c, a->doing);
	struct err none = ERR_INIT, failed;
	bool fine;

	if (d >= CTL_CLUSTER_ANNOUNCE) {
		/* A patch of the cluster object itself. */
		fine = !err_is_set(err);
		if (fine)
			ctl_take_answer(c->env->caches->clusters, r->object, false);
		cluster = k8s_cache_find(c->env->caches->clusters, a->name);
		if (d == CTL_CLUSTER_APPLY_STATUS &&
			ctl_act_status_refused(a, &kobj_cluster, err, r))
			fine = true;
		else if (fine && d == CTL_CLUSTER_APPLY_STATUS)
			c->status_ms = clock_boot_ms();
		if (!err_is_set(err) && d == CTL_CLUSTER_APPLY_STATUS && cluster)
			post_events(c, a, cluster);
	} else if (object == CLUSTER_TLS) {
		fine = cluster_inputs_tls_done(c, cluster, err, r);
	} else if (own) {
		fine = own_done(c, own, cluster, a->doing, err, r);
	} else {
		fine = ctl_install_done(
			&c->install, cluster, object, (enum ctl_install_do)d, err, r);
	}
	if (!fine) {
		failed = *err;
		err_wrap(&failed, "%s", what);
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "request failed",
			&failed);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, fine ? &none : err, d == CTL_CLUSTER_APPLY_STATUS ? NULL : what);
}

/* ---- starting */

/* Keep the servers that are still lost; without any the annotation is removed. */
static void tidy_lost(const struct ctl_cluster *c, const struct model_cluster *cluster,
	struct json_object *annotations)
{
	cleanup_json struct json_object *list = model_lost_list(cluster->lost_servers),
					*left = json_arr();
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < json_len(list); i++)
		if (!cluster_view_found(c, cluster, json_get_str(json_at(list, i), "address")))
			json_push(left, json_object_get(json_at(list, i)));
	if (json_len(left) == json_len(list))
		return;
	text = json_text(left);
	json_add(annotations, MODEL_LOST_ANNOTATION, json_len(left) ? json_str(text) : NULL);
}

/* Remove announcements that no Secret needs any more, servers that are no longer lost, and an adopt-before
 * time in the future: it would let whoever creates objects until then have them adopted. */
static void tidy(const struct ctl_cluster *c, const struct model_cluster *cluster,
	struct json_object *annotations)
{
	for (unsigned i = 0; i < cluster->n_announced; i++)
		if (!cluster_view_needs(c, cluster, cluster->announced[i].secret))
			ctl_own_put(annotations, &cluster->obj, cluster->announced[i].secret, NULL);
	tidy_lost(c, cluster, annotations);
	if (!cluster_view_adopts_later(cluster))
		return;
	json_add(annotations, MODEL_ADOPT_BEFORE_ANNOTATION, NULL);
	k8s_events_post(c->env->events, &kobj_cluster, &cluster->obj, K8S_EVENT_WARNING,
		"AdoptBeforeIgnored", "Adopt",
		"The time in annotation " MODEL_ADOPT_BEFORE_ANNOTATION
		" is in the future, so the annotation was removed: it would have taken over objects that are created until "
		"then. Set it to the current time: kubectl annotate trustedexecutioncluster %s " MODEL_ADOPT_BEFORE_ANNOTATION
		"=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)",
		cluster->obj.name);
}

/* Write the cluster object itself: its status, or its annotations by a merge patch. */
static struct op *start_cluster(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, struct err *err)
{
	const struct ctl_env *env = c->env;
	const struct model_cluster *cluster = l->c;
	cleanup_json struct json_object *o = NULL;
	struct json_object *meta, *annotations;

	if (d == CTL_CLUSTER_APPLY_STATUS) {
		o = ctl_status_json(
			&kobj_cluster, &cluster->obj, cluster->cond, l->want, CLUSTER_N_CONDS);
		if (l->v.served && c->authority.status)
			json_add(json_get_obj(o, "status"), "authority",
				json_object_get(c->authority.status));
		a->event_mask = events_of(l);
		free(a->want);
		a->want = xmemdup(l->want, sizeof(l->want));
		return ctl_act_apply_status(a, env, &kobj_cluster, &cluster->obj, o, on_done);
	}
	o = ctl_patch_of(&cluster->obj, &meta);
	annotations = json_obj();
	json_add(meta, "annotations", annotations);
	if (d == CTL_CLUSTER_MIRROR)
		json_add(annotations, MODEL_EXTENDED_ANNOTATION,
			cluster->extended_spec ? json_object_new_string(cluster->extended_spec)
					       : NULL);
	else if (d == CTL_CLUSTER_TIDY)
		tidy(c, cluster, annotations);
	else if (ctl_own_announce(
			 own_of(c, l->object, l->number), &cluster->obj, annotations, err) < 0)
		return NULL;
	return k8s_call_merge_patch(
		env->api, &c->acts.ops, &kobj_cluster, env->ns, a->name, o, on_done, a);
}

/* Start the one request that the step decided on. ANNOUNCE, TIDY and the object acts carry
 * object and number; MIRROR and APPLY_STATUS concern the whole cluster. */
struct queue_next cluster_act_start(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d)
{
	bool whole = d == CTL_CLUSTER_MIRROR || d == CTL_CLUSTER_APPLY_STATUS;
	struct ctl_own *own = own_of(c, l->object, l->number);
	uint64_t content = ctl_version(&l->c->obj);
	struct err err = ERR_INIT;
	struct queue_next next;
	struct op *op;

	if (!whole && l->object < CLUSTER_N_OBJECTS)
		content += ctl_version(ctl_install_find(&c->install, l->object));
	if (!ctl_act_begin(a, whole ? (int)d : DOING(d, l->object, l->number), content))
		return ctl_retry(0, "no-effect");
	if (d >= CTL_CLUSTER_ANNOUNCE)
		op = start_cluster(c, a, l, d, &err);
	else if (l->object == CLUSTER_TLS)
		op = cluster_inputs_start_tls(c, l, on_done, a);
	else if (own)
		op = ctl_own_start(own, &c->acts.ops, (enum ctl_own_do)d, on_done, a);
	else
		op = ctl_install_start(&c->install, &l->c->obj, l->object, (enum ctl_install_do)d,
			on_done, a, &err);
	if (!op && d == CTL_CLUSTER_APPLY_STATUS)
		return ctl_act_busy(a, &next) ? next
					      : ctl_retry(CTL_DECLARED_AGAIN_MS, "crd-outdated");
	if (!op) {
		log_err(LOG_ERROR, NULL, "cannot render an object", &err);
		return ctl_retry(0, err_kind_name(err.kind));
	}
	if (d == CTL_CLUSTER_APPLY && l->object == CLUSTER_TRUSTEE)
		cluster_volumes_writes(c, l->c);
	op_hold(&a->op, op);
	return ctl_in_flight();
}
