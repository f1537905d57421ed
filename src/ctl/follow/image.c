/* SPDX-License-Identifier: MIT */
/*
 * Copies ApprovedImages, and their entries of ConfigMap image-pcrs as the source's operator wrote
 * them; each is announced on the copy first. No values are computed here. A copy has no finalizer:
 * a deleted one is gone at once, and ctl/image revokes its values.
 */
#include "config.h"

#include "follow_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/image.h"
#include "tec/model/mark.h"

struct follow_image {
	struct follow_kind base;
	/* Owned: the text of our ConfigMap and the version it was read in; NULL: not read. */
	char *text, *text_rv;
};

/* Borrowed from the caches, valid for one step. */
struct image_look {
	struct ctl_look base;
	struct ctl_follow_image_view v;
	const struct model_image *there, *here; /* NULL: there is none */
	const struct model_pcrs_entry *entry;   /* the source's; NULL: none that counts */
};

/* ---- decide */

/* Choose the next act; the announcement precedes the entry, as in ctl/image. */
enum ctl_follow_image_do ctl_follow_image_decide(const struct ctl_follow_image_view *v)
{
	if (!v->may_copy || (v->here && v->deleting))
		return CTL_FOLLOW_IMAGE_NOTHING;
	if (v->here && v->deleted)
		return v->may_take ? CTL_FOLLOW_IMAGE_DELETE : CTL_FOLLOW_IMAGE_NOTHING;
	if (!v->there)
		return CTL_FOLLOW_IMAGE_NOTHING;
	if (!v->here)
		return CTL_FOLLOW_IMAGE_CREATE;
	if (!v->same) /* reported as a conflict */
		return CTL_FOLLOW_IMAGE_NOTHING;
	if (!v->patched)
		return CTL_FOLLOW_IMAGE_PATCH;
	if (!v->has_entry)
		return CTL_FOLLOW_IMAGE_NOTHING;
	if (!v->announced)
		return CTL_FOLLOW_IMAGE_ANNOUNCE;
	if (v->written || !v->writable)
		return CTL_FOLLOW_IMAGE_NOTHING;
	return v->text_read ? CTL_FOLLOW_IMAGE_WRITE : CTL_FOLLOW_IMAGE_READ;
}

/* A missing image stays approved, so it is only reported. */
static enum follow_lag lag_of(const struct ctl_follow_image_view *v, enum ctl_follow_image_do d)
{
	if (d != CTL_FOLLOW_IMAGE_NOTHING || (v->here && (v->deleting || v->deleted)))
		return FOLLOW_BEHIND;
	if (!v->here)
		return FOLLOW_IN_STEP;
	if (!v->there)
		return FOLLOW_MISSING;
	if (!v->same)
		return FOLLOW_CONFLICT;
	return v->has_entry && !v->written ? FOLLOW_BEHIND : FOLLOW_IN_STEP;
}

/* ---- look */

/* Only entries whose values replay count. */
static const struct model_pcrs_entry *entry_of(const struct caches *s, const char *name)
{
	const struct model_configmap *c = caches_configmap(s, MODEL_PCRS_CONFIGMAP);
	const struct model_pcrs_entry *e =
		c && !c->plain.obj.unreadable && c->pcrs ? model_pcrs_find(c->pcrs, name) : NULL;

	return e && !e->why ? e : NULL;
}

/* The entry of the source counts there only if announced: another client may have written it. */
static void look_entry(struct ctl_kind *k, struct image_look *l)
{
	const struct follow_image *fi = (const struct follow_image *)k;
	const struct model_pcrs_entry *e = entry_of(&fi->base.f->source.caches, l->there->obj.name);
	const struct model_pcrs_entry *have = entry_of(k->caches, l->there->obj.name);
	const struct model_configmap *c = caches_configmap(k->caches, MODEL_PCRS_CONFIGMAP);

	if (!e || !model_mark_announces(l->there->pcrs_sha256, e->sha256) ||
		!str_eq(e->reference, l->there->image))
		return;
	l->entry = e;
	l->v.has_entry = true;
	l->v.announced = model_mark_announces(l->here->pcrs_sha256, e->sha256);
	l->v.written = have && str_eq(have->sha256, e->sha256);
	l->v.writable = c && !c->plain.obj.unreadable;
	l->base.content = c ? ctl_version(&c->plain.obj) : 0;
	l->v.text_read = l->v.writable && fi->text && str_eq(fi->text_rv, c->plain.obj.rv);
}

/* Values are compared only once both objects exist. */
static int look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct image_look *l = (struct image_look *)out;
	struct follow_pair p = follow_kind_look(k, name, out);
	enum ctl_follow_image_do d;

	l->v.may_copy = p.may_copy;
	l->v.may_take = p.may_take;
	l->v.deleted = p.deleted;
	l->there = p.there ? model_image(p.there) : NULL;
	l->here = p.here ? model_image(p.here) : NULL;
	l->v.there = l->there != NULL;
	l->v.here = l->here != NULL;
	l->v.deleting = l->here && l->here->obj.deleting;
	if (l->there && l->here) {
		l->v.same = str_eq(l->there->image, l->here->image);
		l->v.patched = l->there->any_secure_boot == l->here->any_secure_boot &&
			       l->there->boot_path == l->here->boot_path;
		look_entry(k, l);
	}
	d = ctl_follow_image_decide(&l->v);
	follow_kind_lags(k, name, lag_of(&l->v, d));
	return d;
}

/* ---- acts */

/* Render the spec of a copy. In a merge patch, null removes a member. */
static struct json_object *spec_of(const struct model_image *m, bool patch)
{
	static const char *const measure_paths[PCR_BOOT_LAST + 1] = {
		[PCR_BOOT_FAILED_ENTRIES] = "AllowFailedEntries",
		[PCR_BOOT_FIRMWARE_UPDATES] = "AllowFirmwareUpdates",
	};
	struct json_object *spec = json_obj();

	if (m->any_secure_boot)
		json_add_str(spec, "secureBoot", "Any");
	else if (patch)
		json_add(spec, "secureBoot", NULL);
	if (m->boot_path != PCR_BOOT_STRICT)
		json_add_str(spec, "bootPath", measure_paths[m->boot_path]);
	else if (patch)
		json_add(spec, "bootPath", NULL);
	return spec;
}

/* The copy belongs to our cluster. Handed-in images keep that mark, so nothing is computed for
 * them. */
static struct op *create(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct model_image *m = ((const struct image_look *)look)->there;
	const struct model_cluster *c = caches_cluster(k->caches);
	struct json_object *meta;
	cleanup_json struct json_object *o = kobj_new(&kobj_image, m->obj.name, &meta);

	json_add(meta, "ownerReferences",
		json_push(json_arr(), kobj_owner_json(&kobj_cluster, c->obj.name, c->obj.uid)));
	if (m->handed_in)
		json_add(meta, "annotations",
			json_add_str(json_obj(), MODEL_IMAGE_VALUES, MODEL_IMAGE_HANDED_IN));
	json_add(o, "spec", json_add_str(spec_of(m, false), "image", m->image));
	return ctl_kind_create(k, a, &kobj_image, o);
}

/* Announce values, or correct the spec; both are merge patches of the version looked at. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct image_look *l = (const struct image_look *)look;
	struct json_object *meta, *marks;
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	cleanup_free char *hashes = NULL;

	if (d == CTL_FOLLOW_IMAGE_ANNOUNCE) {
		marks = json_obj();
		hashes = model_mark_announce(l->here->pcrs_sha256, l->entry->sha256);
		ctl_add_mark(marks, look->o, MODEL_IMAGE_PCRS_MARK, hashes);
		json_add(meta, "annotations", marks);
	} else {
		json_add(patch, "spec", spec_of(l->there, true));
	}
	return ctl_kind_patch(k, a, &kobj_image, a->name, patch);
}

/* Read our whole file, or replace it under the version that was read; a conflict means reading it
 * again. */
static struct op *file(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct image_look *l = (const struct image_look *)look;
	const struct follow_image *fi = (const struct follow_image *)k;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *patch = NULL;
	struct json_object *meta, *entry;
	cleanup_free char *text = NULL;

	if (d == CTL_FOLLOW_IMAGE_READ)
		return ctl_kind_get(k, a, &kobj_configmap, MODEL_PCRS_CONFIGMAP);
	entry = json_parse(l->entry->text, strlen(l->entry->text), &json_limits_api, &err);
	if (entry)
		text = model_pcrs_edit(fi->text, strlen(fi->text), a->name, entry, &err);
	if (!text) /* our file is not a JSON object: ctl/image reports it once it decides */
		return NULL;
	patch = ctl_patch_new(fi->text_rv, &meta);
	json_add(patch, "data", json_add_str(json_obj(), MODEL_PCRS_FILE, text));
	return ctl_kind_patch(k, a, &kobj_configmap, MODEL_PCRS_CONFIGMAP, patch);
}

static const struct ctl_do acts[CTL_FOLLOW_IMAGE_N_DO] = {
	[CTL_FOLLOW_IMAGE_CREATE] = {"copy the image", "image copied from the source",
		CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF | CTL_DO_CREATES, .start = create},
	[CTL_FOLLOW_IMAGE_PATCH] = {"correct the copy",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_IMAGE_ANNOUNCE] = {"announce the values",
		.flags = CTL_DO_FOLLOWING | CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_FOLLOW_IMAGE_READ] = {"read the ConfigMap", .flags = CTL_DO_FOLLOWING, .start = file},
	[CTL_FOLLOW_IMAGE_WRITE] = {"copy the values", "values copied", CTL_DO_FOLLOWING,
		.start = file},
	[CTL_FOLLOW_IMAGE_DELETE] = {"delete the copy", "image deleted, the source deleted it",
		CTL_DO_FOLLOWING | CTL_DO_GONE_IS_FINE, .start = ctl_kind_start_delete},
};

/* The text is that of our ConfigMap, which other images need as well. */
static void forget_text(struct follow_image *fi)
{
	free(steal_ptr(&fi->text));
	free(steal_ptr(&fi->text_rv));
}

/* Keep the text of image-pcrs from a read or a write: the next entry may follow at once. */
static bool ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	struct follow_image *fi = (struct follow_image *)k;
	const char *data;

	if (err_is_set(err) || !r->object ||
		(a->doing != CTL_FOLLOW_IMAGE_READ && a->doing != CTL_FOLLOW_IMAGE_WRITE))
		return false;
	forget_text(fi);
	data = json_get_str(r->object, "data/" MODEL_PCRS_FILE);
	fi->text = xstrdup(data ? data : "{}");
	fi->text_rv = xstrdup(json_get_str(r->object, "metadata/resourceVersion"));
	ctl_take_answer(k->caches->configmaps, r->object, false);
	return false;
}

/* At the end of following, and with the leadership. */
static void forget(struct ctl_kind *k)
{
	forget_text((struct follow_image *)k);
	follow_kind_forget(k);
}

/* ---- which keys a change concerns */

/* Wake all images: there are few, and one file holds the values of all. */
static void map_configmap(void *self, const struct kobj *was, const struct kobj *now)
{
	if (str_eq(was ? was->name : now->name, MODEL_PCRS_CONFIGMAP))
		k8s_cache_each(follow_kind(self)->f->source.caches.images, follow_kind_wake, self);
}

struct ctl_kind *follow_image_new(struct ctl_follow *f)
{
	static const struct follow_watch watches[] = {
		{CACHES_IMAGES, follow_kind_map, follow_kind_map_source},
		{CACHES_CONFIGMAPS, map_configmap, map_configmap},
		{.here = NULL},
	};
	static const struct ctl_kind_conf conf = {
		.name = "follow_image",
		.of = CACHES_IMAGES,
		.size = sizeof(struct follow_image),
		.look_size = sizeof(struct image_look),
		.acts = acts,
		.status = -1,
		.knows_cached = true,
		.look = look,
		.ended = ended,
		.forget = forget,
	};

	return follow_kind_new(f, &conf, watches);
}
