/* SPDX-License-Identifier: MIT */
/*
 * ApprovedImage: the acts, each one request. ConfigMap image-pcrs is written entry by entry with
 * the resourceVersion that was read, and only after the hash of the entry was announced on the
 * image. A computation is announced in the same way.
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

#define LABEL_TRIES      5 /* a cluster without access to the registry is normal */
#define LABEL_WAIT_MS    5000
#define LABEL_REFUSED_MS (5 * 60 * 1000)

/* ---- the label */

/* Decide by the kind of error whether the label is asked for again, soon or much later, or
 * whether the Job takes over. */
static void label_failed(struct image_info *i, const struct err *err)
{
	snprintf(
		i->note, sizeof(i->note), " The registry did not return the label: %s.", err->text);
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

/* A label counts only if its events replay to its values; otherwise the Job takes over. */
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
		model_variant_check(&m.events, &err) == 0) {
		if (image_entry_made(i, image_entry_kept(i), image->image, clock_wall_us(), &m))
			i->label = CTL_IMAGE_LABEL_GOT;
		return;
	}
	snprintf(i->note, sizeof(i->note), " The image's label is not used: %s.", err.text);
}

/* The image may have been deleted in the meantime. The answer is never an error of the act: what
 * is wrong with a label is in the condition. */
static void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct ctl_act *a = arg;
	struct ctl_image *c = a->table->self;
	const struct kobj *o = k8s_cache_find(c->kind.caches->images, a->name);
	struct log_ctx lc = {"ApprovedImage", c->kind.env->ns, a->name, o ? o->uid : NULL};
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
	ctl_act_end(a, &none, NULL);
}

/* A GET at the registry of the image, which may take long; it does not block the key of another
 * image. */
static struct op *ask_label(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	return k->env->image_label(k->env->image_label_arg, &k->acts.ops,
		((const struct image_look *)look)->m->image, PCR_LABEL, on_label, a);
}

/* ---- how acts end */

/* Events only for reasons that an administrator has to act on, and for success. */
void image_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	const struct kobj_cond_want *w = &a->want[IMAGE_COMMITTED];
	static const enum model_image_reason reasons[] = {IMAGE_COMPUTATION_FAILED,
		IMAGE_NO_DIGEST_GIVEN, IMAGE_TOO_MANY_EVENTS, IMAGE_TOO_MANY_STATES,
		IMAGE_VALUES_CHANGED};
	bool bad = false;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		bad |= str_eq(w->reason, model_image_reason(reasons[i]));
	if ((a->event_mask & 1u << IMAGE_COMMITTED) && (bad || w->status == KOBJ_COND_TRUE))
		k8s_events_post(k->env->events, &kobj_image, o,
			bad ? K8S_EVENT_WARNING : K8S_EVENT_NORMAL, w->reason, "Commit", "%s",
			w->message);
}

/* Keep an error that time does not solve, for the status. Return true if the Job exists already,
 * which is not a failure. */
static bool failed(
	struct ctl_image *c, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	bool starts = a->doing == CTL_IMAGE_START_RUN, exists;
	bool writes = starts || a->doing == CTL_IMAGE_ANNOUNCE_RUN ||
		      a->doing == CTL_IMAGE_ANNOUNCE_ENTRY || a->doing == CTL_IMAGE_TAKE_OVER ||
		      a->doing == CTL_IMAGE_WRITE_ENTRY;
	const struct kobj *o = k8s_cache_find(c->kind.caches->images, a->name);
	struct image_info *i = o ? image_info_get(c, o) : NULL;

	image_info_forget_pcrs(c);
	exists = starts && image_job_exists(c, i, r);
	if (i && writes && !exists && ctl_err_is_refusal(err))
		snprintf(i->problem, sizeof(i->problem), "The operator cannot %s: %s.",
			image_acts[a->doing].name, err->text);
	return exists;
}

/* Take the answer of a request. The image may be gone by now; then a scratch entry takes what is
 * written to it. */
bool image_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct ctl_image *c = (struct ctl_image *)k;
	const struct kobj *o = k8s_cache_find(k->caches->images, a->name);
	struct image_info *i = o ? image_info_get(c, o) : &(struct image_info){.name = NULL};
	const char *text;

	if (a->doing == CTL_IMAGE_WRITE_VALUES || a->doing == CTL_IMAGE_ANNOUNCE_VALUES) {
		image_values_ended(c, a->doing, err, r);
		return false;
	}
	if (err_is_set(err))
		return failed(c, a, err, r);
	i->problem[0] = '\0';
	switch ((enum ctl_image_do)a->doing) {
	case CTL_IMAGE_WRITE_ENTRY:
		i->to_write = false;
		/* fall through */
	case CTL_IMAGE_READ_PCRS:
	case CTL_IMAGE_REMOVE_ENTRY:
		image_info_forget_pcrs(c);
		ctl_take_answer(k->caches->configmaps, r->object, false);
		if (a->doing != CTL_IMAGE_READ_PCRS)
			break; /* the cache has the new version */
		text = json_get_str(json_get_obj(r->object, "data"), MODEL_PCRS_FILE);
		c->pcrs_rv = xstrdup(json_get_str(r->object, "metadata/resourceVersion"));
		c->pcrs_text = xstrdup(text ? text : "{}");
		break;
	case CTL_IMAGE_START_RUN:
		/* A nonce is used once: the next computation needs a new announcement. */
		i->nonce[0] = i->result_why[0] = '\0';
		ctl_take_answer(k->caches->jobs, r->object, true);
		break;
	case CTL_IMAGE_REMOVE_RUN:
		/* The registry may have the label by now, so it is asked again. */
		i->label = CTL_IMAGE_LABEL_ASK;
		break;
	default:
		break;
	}
	return true;
}

/* ---- how they start */

/* Set the cluster as owner, or remove the finalizer from the live list. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct model_cluster *cluster = caches_cluster(k->caches);
	struct json_object *meta;
	cleanup_json struct json_object *patch = ctl_patch_new(look->o->rv, &meta);

	if (d == CTL_IMAGE_ADOPT)
		kobj_owner_add(meta, &kobj_cluster, cluster->obj.name, cluster->obj.uid);
	else
		json_add(meta, "finalizers",
			ctl_live_finalizers(&a->self, MODEL_IMAGE_FINALIZER, false));
	return ctl_kind_patch(k, a, &kobj_image, a->name, patch);
}

static struct op *add_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	return ctl_kind_add_finalizer(k, a, look->o, MODEL_IMAGE_FINALIZER);
}

/* Announce on the image what will be created or counts from now on: the hash of a nonce or an
 * entry. */
static struct op *mark(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct image_look *l = (const struct image_look *)look;
	struct image_info *i = l->info;
	const struct model_pcrs_entry *e =
		d == CTL_IMAGE_TAKE_OVER ? l->entry : image_entry_kept(i);
	const char *name = MODEL_IMAGE_PCRS_MARK;
	char hash[SHA256_HEX_LEN + 1];
	struct json_object *meta, *annotations = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&l->m->obj, &meta);
	cleanup_free char *payload = NULL;

	if (d == CTL_IMAGE_ANNOUNCE_RUN) {
		image_entry_nonce_make(i);
		/* Only its hash is public: the nonce authenticates the result of the
		 * computation. */
		bytes_sha256_hex(i->nonce, strlen(i->nonce), hash);
		payload = xstrdup(hash);
		name = MODEL_IMAGE_JOB_MARK;
	} else {
		payload = model_mark_announce(l->m->pcrs_sha256, e->sha256);
	}
	ctl_add_mark(annotations, &l->m->obj, name, payload);
	json_add(meta, "annotations", annotations);
	return ctl_kind_patch(k, a, &kobj_image, a->name, patch);
}

/* Write or remove one entry by replacing the whole file, under the resourceVersion that it was
 * read with: a conflict means that somebody else wrote in between, and the text is read again. */
static struct op *write_entry(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct ctl_image *c = (struct ctl_image *)k;
	const struct image_look *l = (const struct image_look *)look;
	bool remove = d == CTL_IMAGE_REMOVE_ENTRY;
	struct log_ctx lc = {"ApprovedImage", k->env->ns, l->m->obj.name, l->m->obj.uid};
	struct image_info *i = l->info;
	struct json_object *entry = remove ? NULL : json_tokener_parse(image_entry_kept(i)->text);
	struct err err = ERR_INIT;
	cleanup_free char *text =
		model_pcrs_edit(c->pcrs_text, strlen(c->pcrs_text), a->name, entry, &err);
	struct json_object *meta;
	cleanup_json struct json_object *patch = NULL;

	if (!text) {
		snprintf(i->problem, sizeof(i->problem),
			"The data of ConfigMap image-pcrs is not a JSON object (%.200s). Delete the ConfigMap, and the operator creates it again.",
			err.text);
		return NULL;
	}
	if (!remove && !i->to_write) { /* a valid entry is restored */
		log_warn(&lc, "another client changed the entry in image-pcrs, restoring it", NULL);
		k8s_events_post(k->env->events, &kobj_image, &l->m->obj, K8S_EVENT_WARNING,
			model_image_reason(IMAGE_VALUES_CHANGED), "Commit",
			"Another client changed or removed the entry of this image in ConfigMap image-pcrs. The change is ignored and the entry is written again. Check who can write ConfigMaps in this namespace.");
	}
	patch = ctl_patch_new(c->pcrs_rv, &meta);
	json_add(patch, "data", json_add_str(json_obj(), MODEL_PCRS_FILE, text));
	return ctl_kind_patch(k, a, &kobj_configmap, MODEL_PCRS_CONFIGMAP, patch);
}

/* NULL from the child means that it runs already: nothing will call back ctl_kind_done(). */
static struct op *start_run(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct image_look *l = (const struct image_look *)look;
	struct op *op = ((struct ctl_image *)k)->way->start(k, a, l);

	if (!op)
		l->info->nonce[0] = l->info->result_why[0] = '\0';
	return op;
}

/* A child ends at once; a Job disappears later, as its watch shows. */
static struct op *remove_run(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct image_look *l = (const struct image_look *)look;
	struct op *op =
		((struct ctl_image *)k)->way->remove(k, a, l, d == CTL_IMAGE_REMOVE_OLD_RUN);

	if (!op)
		l->info->label = CTL_IMAGE_LABEL_ASK;
	return op;
}

/* The whole text is needed, because a write replaces the file. */
static struct op *read_pcrs(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	return ctl_kind_get(k, a, &kobj_configmap, MODEL_PCRS_CONFIGMAP);
}

const struct ctl_do image_acts[CTL_IMAGE_N_DO] = {
	[CTL_IMAGE_CONFIRM] = {"read the ApprovedImage",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_FOLLOWING | CTL_DO_RETIRED,
		.start = ctl_kind_start_confirm},
	[CTL_IMAGE_ADOPT] = {"set the cluster as owner", .flags = CTL_DO_ANSWERS_SELF,
		.start = patch},
	[CTL_IMAGE_ADD_FINALIZER] = {"add the finalizer", .flags = CTL_DO_ANSWERS_SELF,
		.start = add_finalizer},
	[CTL_IMAGE_ASK_LABEL] = {"read the label", .start = ask_label},
	[CTL_IMAGE_ANNOUNCE_RUN] = {"announce the computation", .flags = CTL_DO_ANSWERS_SELF,
		.start = mark},
	[CTL_IMAGE_ANNOUNCE_ENTRY] = {"announce the values", .flags = CTL_DO_ANSWERS_SELF,
		.start = mark},
	[CTL_IMAGE_TAKE_OVER] = {"take over the values", .flags = CTL_DO_ANSWERS_SELF,
		.start = mark},
	[CTL_IMAGE_READ_PCRS] = {"read ConfigMap image-pcrs",
		.flags = CTL_DO_GONE_IS_FINE | CTL_DO_FOLLOWING, .start = read_pcrs},
	[CTL_IMAGE_WRITE_ENTRY] = {"write the values", "values written", .start = write_entry},
	[CTL_IMAGE_REMOVE_ENTRY] = {"remove the values", .flags = CTL_DO_FOLLOWING,
		.start = write_entry},
	[CTL_IMAGE_START_RUN] = {"start a Job", "Job started", CTL_DO_OR_MEMORY,
		.start = start_run},
	[CTL_IMAGE_REMOVE_RUN] = {"delete the Job", "Job deleted",
		CTL_DO_GONE_IS_FINE | CTL_DO_OR_MEMORY | CTL_DO_FOLLOWING, .start = remove_run},
	[CTL_IMAGE_REMOVE_OLD_RUN] = {"delete the Job of other platforms", "Job deleted",
		CTL_DO_GONE_IS_FINE | CTL_DO_OR_MEMORY | CTL_DO_FOLLOWING, .start = remove_run},
	[CTL_IMAGE_DROP_FINALIZER] = {"remove the finalizer",
		"ApprovedImage released, no Trustee holds its values",
		CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE | CTL_DO_FOLLOWING | CTL_DO_RETIRED,
		.start = patch},
	[CTL_IMAGE_APPLY_STATUS] = {"write the status",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = ctl_kind_start_status},
	[CTL_IMAGE_DECLARE_VALUES] = {"declare the reference values",
		.flags = CTL_DO_FROZEN | CTL_DO_FOLLOWING | CTL_DO_RETIRED,
		.memory = image_values_declare},
	/* A name is recorded before Trustee gets it, and removed once Trustee lost it. */
	[CTL_IMAGE_ANNOUNCE_VALUES] = {"announce the reference values",
		.flags = CTL_DO_FOLLOWING | CTL_DO_RETIRED, .start = image_values_announce},
	[CTL_IMAGE_WRITE_VALUES] = {"write the reference values",
		.flags = CTL_DO_FOLLOWING | CTL_DO_RETIRED, .start = image_values_write},
};
