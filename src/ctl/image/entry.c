/* SPDX-License-Identifier: MIT */
/*
 * Decides whether an entry of image-pcrs is the operator's own. Only the operator writes entries,
 * so one counts only if its hash is announced on the ApprovedImage; or, for an image older than
 * the operator's first start, if nothing was ever announced for it. An entry that counted is kept
 * in memory and restored when another client changes it. The result of a computation is accepted
 * here and nowhere else.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/model/mark.h"
#include "tec/model/pcrmsg.h"

/* ---- the content of image-pcrs */

/* Classify the entry of an image; *entry is borrowed from the cache, and set whenever there is
 * one. */
enum ctl_image_entry image_entry_state(
	const struct caches *s, const struct model_image *m, const struct model_pcrs_entry **entry)
{
	const struct model_configmap *map = caches_configmap(s, MODEL_PCRS_CONFIGMAP);
	int64_t since = caches_adoption_cutoff_s(s);

	*entry = map && map->pcrs ? model_pcrs_find(map->pcrs, m->obj.name) : NULL;
	if (!*entry)
		return CTL_IMAGE_ENTRY_ABSENT;
	if (!str_eq((*entry)->reference, m->image))
		return CTL_IMAGE_ENTRY_STALE;
	if ((*entry)->why)
		return CTL_IMAGE_ENTRY_BAD;
	if (m->pcrs_sha256)
		return model_mark_announces(m->pcrs_sha256, (*entry)->sha256)
			       ? CTL_IMAGE_ENTRY_GOOD
			       : CTL_IMAGE_ENTRY_CHANGED;
	if (since == INT64_MIN)
		return CTL_IMAGE_ENTRY_UNKNOWN;
	/* If a Job was announced, there was no entry to take over at that time. */
	return m->obj.created_s < since && !m->job_nonce ? CTL_IMAGE_ENTRY_UNMARKED
							 : CTL_IMAGE_ENTRY_CHANGED;
}

/* Return the values that are in force. While the entry in the ConfigMap is invalid, the copy in
 * memory counts, so that another client cannot revoke an image by changing its entry. */
const struct model_pcrs_entry *image_entry_counted(
	const struct ctl_image *c, const struct model_image *m, enum image_awaited *awaited)
{
	const struct model_pcrs_entry *entry;
	enum ctl_image_entry state = image_entry_state(c->kind.caches, m, &entry);
	const struct image_info *i = image_info_find(c, &m->obj);

	*awaited = IMAGE_NOTHING_AWAITED;
	if (state == CTL_IMAGE_ENTRY_GOOD || state == CTL_IMAGE_ENTRY_UNMARKED)
		return entry;
	if (i && i->kept && !i->to_write)
		return image_entry_kept(i);
	if (state == CTL_IMAGE_ENTRY_UNKNOWN)
		*awaited = IMAGE_CUTOFF_AWAITED;
	else if (m->pcrs_sha256)
		*awaited = IMAGE_VALUES_AWAITED;
	return NULL;
}

/* ---- the copy in memory */

const struct model_pcrs_entry *image_entry_kept(const struct image_info *i)
{
	return i->kept ? &i->kept->v[0] : NULL;
}

/* Keep an entry. Return false if it is not valid. */
static bool keep(struct image_info *i, const char *text)
{
	cleanup_strbuf struct strbuf map = STRBUF_INIT;
	struct model_pcrs *m;

	strbuf_addf(&map, "{\"%s\":", i->name);
	strbuf_adds(&map, text);
	strbuf_addc(&map, '}');
	m = model_pcrs_parse(strbuf_str(&map), map.len);
	if (m->n != 1 || m->v[0].why) {
		model_pcrs_free(m);
		return false;
	}
	model_pcrs_free(i->kept);
	i->kept = m;
	return true;
}

/* Values that wait to be written are newer than the entry, and are not replaced by it. */
void image_entry_keep(struct image_info *i, const struct model_pcrs_entry *entry)
{
	if (i->to_write || (i->kept && str_eq(image_entry_kept(i)->sha256, entry->sha256)))
		return;
	if (!keep(i, entry->text))
		DIE("ApprovedImage %s: a valid entry cannot be parsed again", i->name);
}

/* first_seen is carried over from the former entry: it determines the order in which images are
 * combined, and must not change when values are computed again. */
bool image_entry_made(struct image_info *i, const struct model_pcrs_entry *was,
	const char *reference, int64_t now_us, const struct model_pcrmsg *m)
{
	cleanup_json struct json_object *o = model_pcrs_entry_json(
		reference, was && was->first_seen_us ? was->first_seen_us : now_us, &m->events);
	cleanup_free char *text = NULL;

	if (m->platforms.n)
		json_add(o, "platforms", model_platforms_json(&m->platforms));
	if (m->variants.n)
		json_add(o, "variants", model_variants_json(&m->variants));
	text = json_text(o);
	if (!keep(i, text))
		return false;
	i->to_write = !was || !str_eq(was->sha256, image_entry_kept(i)->sha256);
	return i->to_write;
}

/* ---- the result of a computation */

/* Unpredictable, so that no other client can prepare a result for it. */
void image_entry_nonce_make(struct image_info *i)
{
	cleanup_secret struct secret *s = secret_new_random(MODEL_PCRMSG_NONCE_LEN / 2);

	_Static_assert(sizeof(i->nonce) == MODEL_PCRMSG_NONCE_LEN + 1, "a nonce and its end");
	bytes_to_hex(secret_peek(s), secret_len(s), i->nonce);
}

/* A result counts only if its nonce was announced: any client may create a Job or Pod with a
 * result. */
bool image_entry_announces_run(const struct model_image *m, const char *nonce)
{
	char hex[SHA256_HEX_LEN + 1];

	if (!model_pcrmsg_nonce_valid(nonce))
		return false;
	bytes_sha256_hex(nonce, strlen(nonce), hex);
	return str_eq(m->job_nonce, hex);
}

/* Accept the message of a computation if it carries the announced nonce and the digest of this
 * image. */
bool image_entry_take(struct image_info *i, const struct image_look *l, struct err *err)
{
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	const char *digest = model_image_digest(l->m->image), *text = l->run.message;

	if (model_pcrmsg_read(text, strlen(text), l->run.nonce, digest, &m, err) < 0)
		return false;
	return image_entry_made(i,
		l->v.entry == CTL_IMAGE_ENTRY_GOOD ? l->entry : image_entry_kept(i), l->m->image,
		clock_wall_us(), &m);
}

/* ---- values from outside */

/* Checked like the result of a Job, except for the nonce: the caller has authorized the client.
 * Equal values are accepted silently. */
int ctl_image_hand_in(
	struct ctl_kind *k, const char *name, const char *text, size_t len, struct err *err)
{
	struct ctl_image *c = (struct ctl_image *)k;
	const struct kobj *o = k8s_cache_find(k->caches->images, name);
	struct log_ctx lc = {"ApprovedImage", k->env->ns, name, o ? o->uid : NULL};
	const struct model_image *m = o ? model_image(o) : NULL;
	cleanup_pcrmsg struct model_pcrmsg msg = MODEL_PCRMSG_INIT;
	struct image_info *i;

	if (!k->on)
		return err_set(err, ERR_TRANSIENT, "the operator is not ready yet");
	if (!o || o->unreadable)
		return err_set(err, ERR_TRANSIENT, "the operator has not read the image yet");
	if (o->deleting)
		return err_set(err, ERR_CONFLICT, "the image is being deleted");
	if (!caches_cluster_decides(k->caches))
		return err_set(err, ERR_CONFLICT, "spec.authority is %s",
			model_authority_name(caches_cluster_authority(k->caches)));
	if (!m->digest_ok)
		return err_set(err, ERR_INVALID, "the image reference does not end in a digest");
	if (model_pcrmsg_read(text, len, NULL, model_image_digest(m->image), &msg, err) < 0 ||
		model_variant_check(&msg.events, err) < 0)
		return -1;
	i = image_info_get(c, o);
	if (image_entry_made(i, image_entry_kept(i), m->image, clock_wall_us(), &msg))
		log_info(&lc, "values handed in", NULL);
	ctl_runner_wake(k->runner, name);
	return 0;
}
