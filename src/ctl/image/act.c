/* SPDX-License-Identifier: MIT */
/*
 * ApprovedImage: the acts, each one request. ConfigMap image-pcrs is written under the version that
 * was read, entry by entry, and never before the entry's hash stands on the image. Jobs are created
 * and deleted, never changed, and are announced in the same way.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

#define LABEL_TRIES      5 /* a cluster without a way to its registry is normal */
#define LABEL_WAIT_MS    5000
#define LABEL_REFUSED_MS (5 * 60 * 1000)

void image_pcrs_forget(struct ctl_image *c)
{
	free(steal_ptr(&c->pcrs_rv));
	free(steal_ptr(&c->pcrs_text));
}

/* ---- the label */

static void label_failed(struct image_info *i, const struct err *err)
{
	snprintf(i->note, sizeof(i->note), " The registry did not give it: %s.", err->text);
	switch (err->kind) {
	case ERR_NOT_FOUND: /* a node may have another mirror, or other credentials */
	case ERR_DENIED:
		i->label = CTL_IMAGE_LABEL_NONE;
		break;
	case ERR_INVALID:
		i->label = CTL_IMAGE_LABEL_REFUSED;
		i->label_ms = clock_boot_ms() + LABEL_REFUSED_MS;
		break;
	default:
		i->tries++;
		i->label = i->tries < LABEL_TRIES ? CTL_IMAGE_LABEL_WAIT : CTL_IMAGE_LABEL_NONE;
		i->label_ms = clock_boot_ms() + ((uint64_t)LABEL_WAIT_MS << (i->tries - 1) % 8);
	}
}

static void label_came(
	struct image_info *i, const struct model_image *image, const char *value, size_t len)
{
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	struct err err = ERR_INIT;

	i->note[0] = '\0';
	i->label = CTL_IMAGE_LABEL_NONE;
	if (!value)
		return;
	if (pcr_label_parse(value, len, &m.events, &err) == 0 &&
		model_pcrs_check(&m.events, &err) == 0) {
		if (image_made(i, image_kept(i), image->image, clock_wall_us(), &m))
			i->label = CTL_IMAGE_LABEL_GOT;
		return;
	}
	snprintf(i->note, sizeof(i->note), " The image's label is not used: %s.", err.text);
}

static void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct ctl_act *a = arg;
	struct ctl_image *c = a->table->self;
	const struct kobj *o = k8s_cache_find(c->env->state->images, a->name);
	struct log_ctx lc = {"ApprovedImage", c->env->ns, a->name, o ? o->uid : NULL};
	struct err none = ERR_INIT;
	struct image_info *i;

	if (o) {
		i = image_info_get(c, o);
		if (err_is_set(err))
			label_failed(i, err);
		else
			label_came(i, model_image(o), value, len);
		if (i->note[0])
			log_warn(&lc, "label not used", "text=%s", log_esc(i->note + 1));
	}
	ctl_act_end(a, &none);
}

static struct op *ask_label(struct ctl_image *c, struct ctl_act *a, const struct image_look *l)
{
	return c->env->image_label(
		c->env->image_label_arg, &c->acts.ops, l->m->image, PCR_LABEL, on_label, a);
}

/* ---- how acts end */

static void post_event(struct ctl_image *c, struct ctl_act *a, const struct kobj *o)
{
	const struct kobj_cond_want *w = &a->want[IMAGE_COMMITTED];
	static const enum model_image_reason reasons[] = {IMAGE_COMPUTATION_FAILED,
		IMAGE_NO_DIGEST_GIVEN, IMAGE_TOO_MANY_EVENTS, IMAGE_TOO_MANY_STATES,
		IMAGE_VALUES_CHANGED};
	bool bad = false;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		bad |= str_eq(w->reason, model_image_reason(reasons[i]));
	if ((a->event_mask & 1u << IMAGE_COMMITTED) && (bad || w->status == KOBJ_COND_TRUE))
		k8s_events_post(c->env->events, &kobj_image, o,
			bad ? K8S_EVENT_WARNING : K8S_EVENT_NORMAL, w->reason, "Commit", "%s",
			w->message);
}

static void took_pcrs(struct ctl_image *c, struct ctl_act *a, struct json_object *o)
{
	const char *text = json_get_str(json_get_obj(o, "data"), MODEL_PCRS_FILE);

	image_pcrs_forget(c);
	if (a->doing == CTL_IMAGE_READ_PCRS) {
		c->pcrs_rv = xstrdup(json_get_str(o, "metadata/resourceVersion"));
		c->pcrs_text = xstrdup(text ? text : "{}");
	}
	ctl_take_answer(c->env->state->configmaps, o, false);
}

static void take_result(struct ctl_image *c, struct ctl_act *a, struct json_object *o)
{
	const struct kobj *m = k8s_cache_find(c->env->state->images, a->name);
	struct image_info *i = m ? image_info_get(c, m) : NULL;

	if (i)
		i->problem[0] = '\0';
	switch ((enum ctl_image_do)a->doing) {
	case CTL_IMAGE_WRITE_ENTRY:
		if (i)
			i->to_write = false;
		took_pcrs(c, a, o);
		break;
	case CTL_IMAGE_READ_PCRS:
	case CTL_IMAGE_REMOVE_ENTRY:
		took_pcrs(c, a, o);
		break;
	case CTL_IMAGE_CREATE_JOB:
		if (i) /* each Job has one of its own */
			i->nonce[0] = i->result_why[0] = '\0';
		ctl_take_answer(c->env->state->jobs, o, true);
		break;
	case CTL_IMAGE_DELETE_JOB:
		if (i) /* the label may be there by now */
			i->label = CTL_IMAGE_LABEL_ASK;
		break;
	case CTL_IMAGE_DELETE_OLD_JOB:
		break;
	default:
		ctl_live_set(&a->self, o);
		ctl_take_answer(c->env->state->images, o, false);
	}
	m = k8s_cache_find(c->env->state->images, a->name);
	if (a->doing == CTL_IMAGE_APPLY_STATUS && m)
		post_event(c, a, m);
}

/* It does not even have our labels, or the cache would show it: not ours to delete. */
static void job_in_the_way(const struct ctl_image *c, struct image_info *i)
{
	snprintf(i->problem, sizeof(i->problem),
		"Job %s exists and was not made by the operator. Delete it: kubectl delete job %s -n %s",
		i->job_name, i->job_name, c->env->ns);
}

/* Answers that look like failures and are none; what time does not heal is kept to be told. */
static bool is_fine(
	struct ctl_image *c, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	const struct kobj *m = k8s_cache_find(c->env->state->images, a->name);

	image_pcrs_forget(c);
	switch ((enum ctl_image_do)a->doing) {
	case CTL_IMAGE_CREATE_JOB:
		if (!r || !r->already_exists)
			break;
		if (m && !k8s_cache_find(c->env->state->jobs, image_info_get(c, m)->job_name))
			job_in_the_way(c, image_info_get(c, m));
		return true;
	case CTL_IMAGE_READ_PCRS:
	case CTL_IMAGE_DELETE_JOB:
	case CTL_IMAGE_DELETE_OLD_JOB:
	case CTL_IMAGE_DROP_FINALIZER:
		return err->kind == ERR_NOT_FOUND;
	case CTL_IMAGE_ANNOUNCE_JOB:
	case CTL_IMAGE_ANNOUNCE_ENTRY:
	case CTL_IMAGE_TAKE_OVER:
	case CTL_IMAGE_WRITE_ENTRY:
		break;
	default:
		return false;
	}
	if (m && (err->kind == ERR_INVALID || err->kind == ERR_DENIED))
		snprintf(image_info_get(c, m)->problem, sizeof(((struct image_info *)0)->problem),
			"The operator cannot %s: %s.",
			ctl_image_do_name((enum ctl_image_do)a->doing), err->text);
	return false;
}

static void log_done(const struct log_ctx *lc, enum ctl_image_do d)
{
	switch (d) {
	case CTL_IMAGE_APPLY_STATUS:
		break;
	case CTL_IMAGE_WRITE_ENTRY:
		log_info(lc, "values written", NULL);
		break;
	case CTL_IMAGE_CREATE_JOB:
		log_info(lc, "Job started", NULL);
		break;
	case CTL_IMAGE_DELETE_JOB:
	case CTL_IMAGE_DELETE_OLD_JOB:
		log_info(lc, "Job deleted", NULL);
		break;
	case CTL_IMAGE_DROP_FINALIZER:
		log_info(lc, "ApprovedImage released, nothing holds its values", NULL);
		break;
	default:
		log_debug(lc, "done", "op=%s", log_esc(ctl_image_do_name(d)));
	}
}

static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct ctl_act *a = arg;
	struct ctl_image *c = a->table->self;
	enum ctl_image_do d = (enum ctl_image_do)a->doing;
	struct log_ctx lc = {.kind = "ApprovedImage", .ns = c->env->ns, .name = a->name};
	struct err none = ERR_INIT;

	if (d == CTL_IMAGE_WRITE_VALUES || d == CTL_IMAGE_ANNOUNCE_VALUES)
		values_done(c, d, err, r);
	if (!err_is_set(err)) {
		log_done(&lc, d);
		if (d != CTL_IMAGE_WRITE_VALUES && d != CTL_IMAGE_ANNOUNCE_VALUES)
			take_result(c, a, r->object);
	} else if (is_fine(c, a, err, r)) {
		err = &none;
	} else {
		struct err told = *err;

		err_wrap(&told, "%s", ctl_image_do_name(d));
		log_err(err->kind == ERR_CONFLICT ? LOG_DEBUG : LOG_WARN, &lc, "act failed", &told);
	}
	free(steal_ptr(&a->want));
	ctl_act_end(a, err);
}

/* ---- how they start */

static struct op *start_patch(
	struct ctl_image *c, struct ctl_act *a, const struct image_look *l, enum ctl_image_do d)
{
	const struct ctl_env *env = c->env;
	const struct model_cluster *cluster = state_cluster(env->state);
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_new(l->m->obj.rv, &meta);

	if (d == CTL_IMAGE_ADOPT)
		json_add(meta, "ownerReferences",
			json_push(json_arr(), kobj_owner_json(&kobj_cluster, cluster->obj.name,
						      cluster->obj.uid)));
	else
		json_add(meta, "finalizers",
			ctl_live_finalizers(&a->self, MODEL_IMAGE_FINALIZER, false));
	return k8s_call_merge_patch(
		env->api, &c->acts.ops, &kobj_image, env->ns, a->name, patch, on_done, a);
}

static struct op *start_finalizer(
	struct ctl_image *c, struct ctl_act *a, const struct image_look *l)
{
	struct json_object *meta;
	cleanup_json struct json_object *o = ctl_apply_new(&kobj_image, &l->m->obj, &meta);

	/* A set for server-side apply: those of others stay. */
	json_add(meta, "finalizers", json_push_str(json_arr(), MODEL_IMAGE_FINALIZER));
	return k8s_call_apply(c->env->api, &c->acts.ops, &kobj_image, c->env->ns, o, on_done, a);
}

/* The image's mark: what will be made, or counts from now on. */
static struct op *start_mark(
	struct ctl_image *c, struct ctl_act *a, const struct image_look *l, enum ctl_image_do d)
{
	struct image_info *i = image_info_get(c, &l->m->obj);
	const struct model_pcrs_entry *e = d == CTL_IMAGE_TAKE_OVER ? l->entry : image_kept(i);
	const char *name = MODEL_IMAGE_PCRS_MARK;
	char hash[SHA256_HEX_LEN + 1];
	struct json_object *meta, *annotations = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&l->m->obj, &meta);
	cleanup_free char *payload = NULL;

	if (d == CTL_IMAGE_ANNOUNCE_JOB) {
		image_nonce_make(i);
		image_nonce_hash(i->nonce, hash);
		payload = xstrdup(hash);
		name = MODEL_IMAGE_JOB_MARK;
	} else {
		payload = model_mark_announce(l->m->pcrs_sha256, e->sha256);
	}
	ctl_add_mark(annotations, &l->m->obj, name, payload);
	json_add(meta, "annotations", annotations);
	return k8s_call_merge_patch(
		c->env->api, &c->acts.ops, &kobj_image, c->env->ns, a->name, patch, on_done, a);
}

/* Somebody changed an entry that counts, and it is put back. */
static void tell_changed(struct ctl_image *c, const struct image_look *l)
{
	struct log_ctx lc = {"ApprovedImage", c->env->ns, l->m->obj.name, l->m->obj.uid};

	log_warn(&lc, "the entry in image-pcrs was changed by somebody else and is written again",
		NULL);
	k8s_events_post(c->env->events, &kobj_image, &l->m->obj, K8S_EVENT_WARNING,
		model_image_reason(IMAGE_VALUES_CHANGED), "Commit",
		"The entry of this image in ConfigMap image-pcrs was changed or removed by somebody else. It did not count and is written again. Find out who can write ConfigMaps in this namespace.");
}

static struct op *start_entry(
	struct ctl_image *c, struct ctl_act *a, const struct image_look *l, bool remove)
{
	struct image_info *i = image_info_get(c, &l->m->obj);
	struct json_object *entry = remove ? NULL : json_tokener_parse(image_kept(i)->text);
	struct err err = ERR_INIT;
	cleanup_free char *text =
		model_pcrs_edit(c->pcrs_text, strlen(c->pcrs_text), a->name, entry, &err);
	struct json_object *meta;
	cleanup_json struct json_object *patch = NULL;

	if (!text) {
		snprintf(i->problem, sizeof(i->problem),
			"ConfigMap image-pcrs does not hold a JSON object (%.200s). Delete it, and it is made again.",
			err.text);
		return NULL;
	}
	if (!remove && !i->to_write)
		tell_changed(c, l);
	patch = ctl_patch_new(c->pcrs_rv, &meta);
	json_add(patch, "data", json_add_str(json_obj(), MODEL_PCRS_FILE, text));
	return k8s_call_merge_patch(c->env->api, &c->acts.ops, &kobj_configmap, c->env->ns,
		MODEL_PCRS_CONFIGMAP, patch, on_done, a);
}

static struct op *create_job(struct ctl_image *c, struct ctl_act *a, const struct image_look *l)
{
	struct image_info *i = image_info_get(c, &l->m->obj);
	cleanup_json struct json_object *o = render_pcrjob(l->m, &l->platforms.job, c->env->ns,
		c->env->images_ref.compute_pcrs, i->nonce, i->attempts + 1);

	memcpy(i->job_name, l->job_name, sizeof(i->job_name));
	return k8s_call_create(c->env->api, &c->acts.ops, &kobj_job, c->env->ns, o, 0, on_done, a);
}

static struct op *delete_job(struct ctl_image *c, struct ctl_act *a, const struct model_job *job)
{
	return k8s_call_delete(c->env->api, &c->acts.ops, &kobj_job, c->env->ns, job->obj.name,
		job->obj.uid, on_done, a);
}

static struct op *start_status(struct ctl_image *c, struct ctl_act *a, const struct image_look *l)
{
	cleanup_json struct json_object *o =
		ctl_status_json(&kobj_image, &l->m->obj, l->m->cond, l->want, IMAGE_N_CONDS);

	a->event_mask = ctl_cond_changes(l->m->cond, l->want, IMAGE_N_CONDS);
	free(a->want);
	a->want = xmemdup(l->want, sizeof(l->want));
	return k8s_call_apply_status(
		c->env->api, &c->acts.ops, &kobj_image, c->env->ns, o, on_done, a);
}

bool image_start(
	struct ctl_image *c, struct ctl_act *a, const struct image_look *l, enum ctl_image_do d)
{
	const struct ctl_env *env = c->env;
	struct op *op = NULL;

	switch (d) {
	case CTL_IMAGE_CONFIRM:
		op = k8s_call_get(
			env->api, &c->acts.ops, &kobj_image, env->ns, a->name, on_done, a);
		break;
	case CTL_IMAGE_READ_PCRS:
		op = k8s_call_get(env->api, &c->acts.ops, &kobj_configmap, env->ns,
			MODEL_PCRS_CONFIGMAP, on_done, a);
		break;
	case CTL_IMAGE_ADD_FINALIZER:
		op = start_finalizer(c, a, l);
		break;
	case CTL_IMAGE_ADOPT:
	case CTL_IMAGE_DROP_FINALIZER:
		op = start_patch(c, a, l, d);
		break;
	case CTL_IMAGE_ASK_LABEL:
		op = ask_label(c, a, l);
		break;
	case CTL_IMAGE_ANNOUNCE_JOB:
	case CTL_IMAGE_ANNOUNCE_ENTRY:
	case CTL_IMAGE_TAKE_OVER:
		op = start_mark(c, a, l, d);
		break;
	case CTL_IMAGE_WRITE_ENTRY:
	case CTL_IMAGE_REMOVE_ENTRY:
		op = start_entry(c, a, l, d == CTL_IMAGE_REMOVE_ENTRY);
		break;
	case CTL_IMAGE_CREATE_JOB:
		op = create_job(c, a, l);
		break;
	case CTL_IMAGE_DELETE_JOB:
		image_info_get(c, &l->m->obj)->attempts = l->job->attempt;
		op = delete_job(c, a, l->job);
		break;
	case CTL_IMAGE_DELETE_OLD_JOB:
		op = delete_job(c, a, l->old_job);
		break;
	case CTL_IMAGE_APPLY_STATUS:
		op = start_status(c, a, l);
		break;
	case CTL_IMAGE_ANNOUNCE_VALUES:
	case CTL_IMAGE_WRITE_VALUES:
		op = values_start(c, a, d, on_done);
		break;
	case CTL_IMAGE_NOTHING:
	case CTL_IMAGE_N_DO:
		DIE("ApprovedImage %s: act %d needs no request", a->name, (int)d);
	}
	if (op)
		op_hold(&a->op, op);
	return op != NULL;
}
