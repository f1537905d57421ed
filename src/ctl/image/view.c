/* SPDX-License-Identifier: MIT */
/*
 * ApprovedImage: look (caches and earlier attempts), decide (pure) and the condition. A valid
 * entry is used as it is; the label and the Job are only ways to obtain one.
 *
 * The life of an entry: read the label, or ANNOUNCE_RUN, START_RUN and take the result; then
 * ANNOUNCE_ENTRY, READ_PCRS, WRITE_ENTRY. From there key "*" continues (values.c): it combines all
 * entries, records their names, declares them to Trustee and writes the file.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/ctl/trustee.h"
#include "tec/ctl/adoption_cutoff.h"
#include "tec/model/mark.h"
#include "tec/pcr/bootpath.h"

#define AGAIN          "label-or-job"
#define VARIANTS_SHOWN 2

/* ---- decide */

/* Stop computations, wait until no Trustee holds the values, remove the entry, and only then
 * release. */
static enum ctl_image_do decide_deleting(const struct ctl_image_view *v)
{
	if (!v->has_finalizer)
		return CTL_IMAGE_NOTHING; /* only finalizers of others are left */
	if (v->old_run)
		return CTL_IMAGE_REMOVE_OLD_RUN;
	if (v->run == CTL_IMAGE_RUN_RUNNING)
		return CTL_IMAGE_REMOVE_RUN;
	if (!v->gone)
		return v->status_ok ? CTL_IMAGE_NOTHING : CTL_IMAGE_APPLY_STATUS;
	if (v->entry != CTL_IMAGE_ENTRY_ABSENT)
		return v->pcrs_read ? CTL_IMAGE_REMOVE_ENTRY : CTL_IMAGE_READ_PCRS;
	/* Removing one finalizer requires the live list. */
	return v->confirmed ? CTL_IMAGE_DROP_FINALIZER : CTL_IMAGE_CONFIRM;
}

/* Release the image once no Trustee holds its values; the object and its entry stay. */
static enum ctl_image_do decide_retired(const struct ctl_image_view *v)
{
	if (!v->has_finalizer || !v->gone)
		return CTL_IMAGE_NOTHING;
	return v->confirmed ? CTL_IMAGE_DROP_FINALIZER : CTL_IMAGE_CONFIRM;
}

/* A foreign Job is left alone and blocks the computation; the condition says so. */
static enum ctl_image_do decide_run(const struct ctl_image_view *v)
{
	switch (v->run) {
	case CTL_IMAGE_RUN_ABSENT:
		return v->run_announced ? CTL_IMAGE_START_RUN : CTL_IMAGE_ANNOUNCE_RUN;
	case CTL_IMAGE_RUN_UNANNOUNCED: /* any client may have created it */
		return CTL_IMAGE_REMOVE_RUN;
	case CTL_IMAGE_RUN_ENDED:
		return v->due ? CTL_IMAGE_REMOVE_RUN : CTL_IMAGE_NOTHING;
	case CTL_IMAGE_RUN_RUNNING:
	case CTL_IMAGE_RUN_DELETING:
	case CTL_IMAGE_RUN_FOREIGN:
	case CTL_IMAGE_RUN_N:
		break;
	}
	return CTL_IMAGE_NOTHING;
}

/* Get values: write what is at hand, or read the label, or start a computation. The label knows
 * nothing of platforms. */
static enum ctl_image_do decide_values(const struct ctl_image_view *v)
{
	if (v->made && !v->announced)
		return CTL_IMAGE_ANNOUNCE_ENTRY;
	if (v->made)
		return v->pcrs_read ? CTL_IMAGE_WRITE_ENTRY : CTL_IMAGE_READ_PCRS;
	if (v->handed_in)
		return CTL_IMAGE_NOTHING;
	if (v->platforms)
		return v->unmounted ? CTL_IMAGE_NOTHING : decide_run(v);
	switch (v->label) {
	case CTL_IMAGE_LABEL_ASK:
		return CTL_IMAGE_ASK_LABEL;
	case CTL_IMAGE_LABEL_WAIT: /* the label and a computation race */
	case CTL_IMAGE_LABEL_NONE:
		return decide_run(v);
	case CTL_IMAGE_LABEL_GOT:
	case CTL_IMAGE_LABEL_REFUSED:
	case CTL_IMAGE_LABEL_N:
		break;
	}
	return CTL_IMAGE_NOTHING;
}

/* Choose the next act; the order is the priority. */
enum ctl_image_do ctl_image_decide(const struct ctl_image_view *v)
{
	bool works = v->served && v->digest_ok, good = v->entry == CTL_IMAGE_ENTRY_GOOD;
	enum ctl_image_do d = CTL_IMAGE_NOTHING;

	if (!v->found)
		return CTL_IMAGE_NOTHING;
	if (v->retired)
		return decide_retired(v);
	if (v->deleting)
		return decide_deleting(v);
	if (v->following)
		return CTL_IMAGE_NOTHING;
	if (v->problem && !v->status_ok)
		return CTL_IMAGE_APPLY_STATUS;
	if (v->adopt)
		return CTL_IMAGE_ADOPT;
	if (!v->has_finalizer)
		return CTL_IMAGE_ADD_FINALIZER; /* before any effect in Trustee */
	if (works && v->entry == CTL_IMAGE_ENTRY_UNMARKED)
		return CTL_IMAGE_TAKE_OVER;
	if (works && v->old_run)
		return CTL_IMAGE_REMOVE_OLD_RUN;
	if (works && v->entry != CTL_IMAGE_ENTRY_UNKNOWN &&
		(!good || v->made || (v->platforms && v->incomplete)))
		d = decide_values(v);
	if (d != CTL_IMAGE_NOTHING)
		return d;
	if (works && good && !v->withheld && !v->settled && !v->problem)
		return CTL_IMAGE_NOTHING; /* key "*" wakes it when it is settled */
	return v->status_ok ? CTL_IMAGE_NOTHING : CTL_IMAGE_APPLY_STATUS;
}

/* ---- look */

/* Take the state of the label from memory; when a wait is over, the label is read again. */
static void look_label(struct image_look *l)
{
	uint64_t now = clock_boot_ms();

	l->v.label = l->info->label;
	if (l->v.label != CTL_IMAGE_LABEL_WAIT && l->v.label != CTL_IMAGE_LABEL_REFUSED)
		return;
	if (now >= l->info->label_ms)
		l->v.label = CTL_IMAGE_LABEL_ASK;
	else
		ctl_look_again(&l->base, (int64_t)(l->info->label_ms - now), AGAIN);
}

/* Tell whether values are still missing or unwritten. */
static bool is_open(const struct image_look *l)
{
	return l->v.entry != CTL_IMAGE_ENTRY_GOOD || l->v.incomplete || l->v.made;
}

/* Return the problem of a write of this image or of all values, or "". */
static const char *problem_of(const struct ctl_image *c, const struct image_look *l)
{
	return is_open(l) && l->info->problem[0] ? l->info->problem : c->values.problem;
}

static void image_wants(struct ctl_image *c, struct image_look *l);

/* Everything that decide needs, without side effects besides the entry in the list of images. */
static void look_at(
	struct ctl_image *c, const struct kobj *o, const struct ctl_act *act, struct image_look *l)
{
	const struct caches *s = c->kind.caches;
	const struct model_configmap *map = caches_configmap(s, MODEL_PCRS_CONFIGMAP);
	struct image_platforms *p = &l->platforms;

	memset(l, 0, sizeof(*l));
	l->info = image_info_get(c, o);
	l->v.found = !o->unreadable && !image_values_unknown(s);
	if (!l->v.found)
		return;
	l->base.o = o;
	l->m = model_image(o);
	l->base.have = l->m->cond;
	l->base.content = map ? ctl_version(&map->plain.obj) : 0;
	l->v.deleting = o->deleting;
	l->v.retired = caches_cluster_authority(s) == MODEL_AUTHORITY_RETIRED;
	l->v.following = caches_cluster_authority(s) == MODEL_AUTHORITY_FOLLOWING;
	l->v.has_finalizer = l->m->has_finalizer;
	l->v.confirmed = ctl_live_is(&act->self, o);
	l->v.adopt = l->m->n_owners == 0 && caches_cluster_policy(s);
	l->v.digest_ok = l->m->digest_ok;
	l->v.handed_in = l->m->handed_in;
	l->v.served = map && !map->plain.obj.deleting && caches_cluster(s);
	l->v.entry = image_entry_state(s, l->m, &l->entry);
	l->v.run_announced = l->info->nonce[0] && image_entry_announces_run(l->m, l->info->nonce);
	/* Values are known, but image-pcrs does not hold them (any more). */
	l->v.made = l->info->kept && (l->info->to_write || l->v.entry != CTL_IMAGE_ENTRY_GOOD);
	l->v.announced = l->v.made &&
			 model_mark_announces(l->m->pcrs_sha256, image_entry_kept(l->info)->sha256);
	l->v.refused = image_values_refused(c, o->uid);
	l->v.pcrs_read = map && str_eq(c->pcrs_rv, map->plain.obj.rv);
	l->v.settled = c->values.was_settled;
	l->v.gone = c->values.was_gone;
	image_platforms_look(s, l->v.entry == CTL_IMAGE_ENTRY_GOOD ? l->entry : NULL, p);
	l->v.platforms = p->n > 0;
	l->v.incomplete = p->incomplete;
	l->v.unmounted = p->unmounted;
	l->v.withheld = p->required && !p->have;
	l->v.problem = problem_of(c, l)[0];
	c->way->look(c, l);
	if (o->deleting || !is_open(l))
		l->run.message = NULL;
	if (l->v.entry != CTL_IMAGE_ENTRY_GOOD && !l->v.platforms && !l->v.handed_in)
		look_label(l);
	image_wants(c, l);
	l->v.status_ok = kobj_cond_same(l->m->cond, l->base.want, IMAGE_N_CONDS, o->generation);
}

/* The look of every key: of one image, or of all combinations. */
int image_view_look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out)
{
	struct ctl_image *c = (struct ctl_image *)k;
	struct image_look *l = (struct image_look *)out;
	const struct kobj *o = k8s_cache_find(k->caches->images, name);
	struct log_ctx lc = {"ApprovedImage", k->env->ns, name, o ? o->uid : NULL};
	struct err err = ERR_INIT;
	enum ctl_image_do d;

	if (str_eq(name, CTL_IMAGE_ALL))
		return image_values_look(c, out);
	if (!o) {
		image_info_drop(c, name);
		out->over = true;
		return CTL_IMAGE_NOTHING;
	}
	if (!caches_cluster_decides(k->caches))
		image_info_stop(c, image_info_get(c, o), model_image(o)->handed_in);
	look_at(c, o, act, l);
	if (l->v.entry == CTL_IMAGE_ENTRY_GOOD)
		image_entry_keep(l->info, l->entry);
	/* Take the result of a computation if there is one, and look again with it. */
	if (l->run.message && !l->v.made && caches_cluster_decides(k->caches)) {
		if (image_entry_take(l->info, l, &err))
			log_info(&lc, "computed values accepted", NULL);
		snprintf(l->info->result_why, sizeof(l->info->result_why), "%s", err.text);
		look_at(c, o, act, l);
	}
	d = ctl_image_decide(&l->v);
	if (d == CTL_IMAGE_NOTHING && l->v.entry == CTL_IMAGE_ENTRY_GOOD && !l->v.incomplete)
		image_info_rest(c, l->info);
	return (int)d;
}

/* ---- conditions */

/* Only the variants that spec accepts, and only the first ones, to keep the condition short. */
static void note_variants(const struct image_look *l, struct strbuf *out)
{
	cleanup_pcr_events struct pcr_events uncalled = PCR_EVENTS_INIT;
	const struct model_variants *s = &l->entry->variants;

	if (pcr_boot_uncalled(&l->entry->events, &uncalled)) {
		uint8_t value[SHA256_LEN];
		char hex[SHA256_HEX_LEN + 1];

		pcr_events_value(&uncalled, 4, value);
		bytes_to_hex(value, SHA256_LEN, hex);
		strbuf_addf(out,
			" Or PCR 4 %s (the firmware does not measure the call of its boot entry).",
			hex);
	}
	for (size_t i = 0, shown = 0; i < s->n; i++) {
		uint8_t value[SHA256_LEN];
		char hex[SHA256_HEX_LEN + 1];

		if ((!s->v[i].secure_boot && !l->m->any_secure_boot) ||
			pcr_boot_path_of(&s->v[i].events) > l->m->boot_path)
			continue;
		if (shown++ == VARIANTS_SHOWN) {
			strbuf_adds(out, " More variants exist.");
			return;
		}
		pcr_events_value(&s->v[i].events, 4, value);
		bytes_to_hex(value, SHA256_LEN, hex);
		strbuf_addf(out, " Or PCR 4 %s (%s).", hex, s->v[i].when);
	}
}

/* The condition of an image in force: what a node shows, or why its values are not used. */
static void want_good(struct ctl_image *c, struct image_look *l)
{
	cleanup_strbuf struct strbuf more = STRBUF_INIT;
	char hex[2][SHA256_HEX_LEN + 1];
	uint8_t value[SHA256_LEN];

	for (int i = 0; i < 2; i++) {
		pcr_events_value(&l->entry->events, i ? 14 : 4, value);
		bytes_to_hex(value, SHA256_LEN, hex[i]);
	}
	note_variants(l, &more);
	if (l->m->boot_path != PCR_BOOT_STRICT)
		strbuf_addf(&more,
			" Up to %d boot entries that failed first%s are accepted (spec.bootPath).",
			PCR_BOOT_FAILED_MAX,
			l->m->boot_path == PCR_BOOT_FIRMWARE_UPDATES
				? ", and fwupd's program if the image ships it,"
				: "");
	image_platforms_note(&l->platforms, &more);
	if (problem_of(c, l)[0])
		strbuf_addf(&more, " %s", problem_of(c, l));
	if (l->v.settled && l->v.refused)
		IMAGE_WANT(l, IMAGE_TOO_MANY_STATES,
			"The values of this image are not used: with them, the approved images would have more than %d possible node states. Images approved earlier are not affected. Delete ApprovedImages that no node needs.",
			IMAGE_STATES_MAX);
	else if (l->v.settled)
		IMAGE_WANT(l, IMAGE_IMAGE_COMMITTED,
			"A node that boots this image has PCR 4 %s and PCR 14 %s.%s", hex[0],
			hex[1], strbuf_str(&more));
	else
		IMAGE_WANT(l, IMAGE_COMPUTING, "The values are being written.");
}

/* The label and the Job compete; while the Job may run, its state is shown. */
static void want_label(const struct ctl_image *c, struct image_look *l)
{
	switch (l->v.label) {
	case CTL_IMAGE_LABEL_REFUSED:
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED, "The image's label cannot be read.%s",
			l->info->note);
		break;
	case CTL_IMAGE_LABEL_WAIT:
	case CTL_IMAGE_LABEL_NONE:
		c->way->want(c, l);
		break;
	case CTL_IMAGE_LABEL_ASK:
	case CTL_IMAGE_LABEL_GOT:
	case CTL_IMAGE_LABEL_N:
		/* While the label is read again, the previous condition stays. */
		if (l->info->tries)
			c->way->want(c, l);
		else
			IMAGE_WANT(l, IMAGE_COMPUTING, "The image's label is being read.");
	}
}

/* With platforms: the state of the Job, or why no Job can be created or can help. */
static void want_platforms(const struct ctl_image *c, struct image_look *l)
{
	cleanup_strbuf struct strbuf note = STRBUF_INIT;

	if (l->v.platforms && !l->v.unmounted && is_open(l)) {
		c->way->want(c, l);
		return;
	}
	image_platforms_note(&l->platforms, &note);
	IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED, "%s",
		note.len ? note.data + 1 : "No platform has a PCR 7 value.");
}

/* The order is that of decide: the first thing that keeps the image from counting is shown. */
static void image_wants(struct ctl_image *c, struct image_look *l)
{
	bool good = l->v.entry == CTL_IMAGE_ENTRY_GOOD && !l->v.withheld;
	bool changed = l->v.entry == CTL_IMAGE_ENTRY_CHANGED ||
		       l->v.entry == CTL_IMAGE_ENTRY_STALE || l->v.entry == CTL_IMAGE_ENTRY_BAD;
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	if (l->v.deleting)
		IMAGE_WANT(l, IMAGE_REVOKING,
			"Waiting until every Trustee confirms that the image's values are deleted. %s",
			c->values.problem[0] ? c->values.problem
					     : ctl_trustee_why(c->kind.caches->sync,
						       caches_cluster(c->kind.caches), &why));
	else if (!l->v.digest_ok)
		IMAGE_WANT(l, IMAGE_NO_DIGEST_GIVEN,
			"spec.image does not end in a complete SHA-256 digest (@sha256: and 64 hexadecimal digits).");
	else if (!l->v.served || l->v.entry == CTL_IMAGE_ENTRY_UNKNOWN)
		IMAGE_WANT(l, IMAGE_COMPUTING,
			"Waiting for a TrustedExecutionCluster and its ConfigMaps image-pcrs and " CTL_ADOPTION_CUTOFF_CONFIGMAP
			".");
	else if (c->values.problem[0] || (!good && problem_of(c, l)[0]))
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED, "%s", problem_of(c, l));
	else if (good)
		want_good(c, l);
	else if (changed && l->v.run != CTL_IMAGE_RUN_ENDED)
		/* Only after a restart; before, the copy in memory would be restored. */
		IMAGE_WANT(l, IMAGE_VALUES_CHANGED,
			"The entry of this image in ConfigMap image-pcrs is not what the operator wrote (%s) and is ignored. The values are computed again; until then Trustee keeps its current ones.",
			l->v.entry == CTL_IMAGE_ENTRY_STALE ? "it belongs to another image"
			: l->v.entry == CTL_IMAGE_ENTRY_BAD ? l->entry->why
							    : "its hash was not announced");
	else if (l->v.handed_in && !l->v.made) {
		/* Nothing is computed here; somebody has to provide the values. */
		image_platforms_note(&l->platforms, &why);
		IMAGE_WANT(l, IMAGE_HAND_IN_AWAITED,
			"Waiting for values that are computed elsewhere: tecctl image approve --rootfs DIR REF.%s",
			strbuf_str(&why));
	} else if (l->v.platforms || l->v.entry == CTL_IMAGE_ENTRY_GOOD)
		want_platforms(c, l);
	else
		want_label(c, l);
}
