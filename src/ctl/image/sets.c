/* SPDX-License-Identifier: MIT */
/*
 * Selects what is combined. A node has Secure Boot on or off and is of one platform, so value sets
 * are combined only with those of the same state and platform. The events of an entry itself apply
 * to Secure Boot on; variants with Secure Boot off count for images whose spec allows it. PCR 4
 * and 14 of a platform replace those of the image; of PCR 4 it is often only what the firmware
 * measures before the boot loader. If PCR 7 is required, nothing counts without
 * it; otherwise it is a set of its own, for information.
 *
 * The number of combinations grows with the square of the number of images, and the builder of an
 * image controls its values. So images are added one by one, oldest first; an image that would
 * lead to more than IMAGE_STATES_MAX states is refused as a whole and does not affect those before
 * it. The work is done in slices, because the event loop waits for each.
 */
#include "config.h"

#include "image_internal.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pcr/combine.h"

#define PCR(n)    (1u << (n))
#define WORK_MAX  200                       /* pairs of value sets per slice: a few milliseconds */
#define PATHS_MAX (1 + PCR_BOOT_FAILED_MAX) /* of one value set */
#define PARTS_MAX (2 + 3 * MODEL_PLATFORMS_MAX)
#define TODO_MAX  (PARTS_MAX * (1 + MODEL_VARIANTS_MAX) * PATHS_MAX)

/* Value sets that are combined with each other. */
struct part {
	struct pcr_mixer *mixer; /* owned */
	char *platform;          /* owned; NULL: not on a platform that spec names */
	bool alone;              /* PCR 7 of the platform and nothing else */
	bool secure_boot;
	size_t before; /* number of value sets before the current image */
};

struct todo {
	struct part *part;
	struct pcr_events events; /* owned */
};

struct work {
	const struct ctl_image *c;
	bool required; /* PCR 7 */
	struct part part[PARTS_MAX];
	size_t n_parts;
	/* State of the current image, `at`. */
	size_t at, before;
	bool collected;
	struct todo todo[TODO_MAX];
	size_t n_todo, next;
};

/* ---- which images, in which order */

/* Select an image if its values are in force, and note what else affects the computation:
 * unknown values, and pending revocations. */
static void count_in(void *arg, const struct kobj *o)
{
	struct image_sets *s = arg;
	const struct ctl_image *c = s->work->c;
	const struct model_image *m = model_image(o);
	const struct model_pcrs_entry *entry;
	enum image_awaited awaited;
	enum model_authority authority = caches_cluster_authority(c->kind.caches);
	/* A frozen operator revokes nothing. */
	bool goes = authority == MODEL_AUTHORITY_RETIRED ||
		    (o->deleting && authority != MODEL_AUTHORITY_FROZEN);
	/* Without our finalizer, an image could disappear without being revoked. A copy has none:
	 * ctl/follow waits for the revocation instead. */
	bool held = m->has_finalizer || authority == MODEL_AUTHORITY_FOLLOWING;

	if (goes && m->has_finalizer)
		s->revokes = true;
	if (goes || !held || !m->digest_ok)
		return;
	entry = image_entry_counted(c, m, &awaited);
	s->since |= awaited == IMAGE_CUTOFF_AWAITED;
	if (awaited != IMAGE_NOTHING_AWAITED && !s->awaited)
		s->awaited = xstrdup(o->name);
	if (!entry)
		return;
	s->v[s->n++] = (struct image_counted){
		.name = xstrdup(o->name), .uid = xstrdup(o->uid), .since_us = entry->first_seen_us};
}

/* Oldest first; the name makes the order unique. */
static int by_age(const void *a, const void *b)
{
	const struct image_counted *x = a, *y = b;

	if (x->since_us != y->since_us)
		return x->since_us < y->since_us ? -1 : 1;
	return strcmp(x->name, y->name);
}

static struct part *add_part(struct work *w, const char *platform, bool secure_boot)
{
	struct part *p = &w->part[w->n_parts++];

	*p = (struct part){.mixer = pcr_mixer_new(),
		.platform = platform ? xstrdup(platform) : NULL,
		.secure_boot = secure_boot};
	return p;
}

/* Select the images and the parts. The combining itself happens in image_sets_run(). */
struct image_sets *image_sets_new(const struct ctl_image *c)
{
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct image_sets *s = xcalloc(1, sizeof(*s));
	struct work *w = s->work = xcalloc(1, sizeof(*w));

	w->c = c;
	s->v = xcalloc(k8s_cache_count(c->kind.caches->images) + 1, sizeof(*s->v));
	k8s_cache_each(c->kind.caches->images, count_in, s);
	qsort(s->v, s->n, sizeof(*s->v), by_age);
	w->required = cluster && cluster->pcr7 == MODEL_PCR7_REQUIRE;
	if (!w->required) {
		add_part(w, NULL, true);
		add_part(w, NULL, false);
	}
	for (unsigned i = 0; cluster && i < cluster->n_platforms; i++) {
		const char *name = cluster->platform[i];

		/* If PCR 7 is required, only Secure Boot on is combined: the value was computed for
		 * it. Otherwise the bare PCR 7 becomes a set of its own. */
		add_part(w, name, true);
		if (!w->required) {
			add_part(w, name, false);
			add_part(w, name, true)->alone = true;
		}
	}
	return s;
}

static void todo_clear(struct work *w)
{
	for (size_t i = 0; i < w->n_todo; i++)
		pcr_events_fini(&w->todo[i].events);
	w->n_todo = w->next = 0;
}

/* Called as soon as the work is done: each mixer holds about 0.8 MB. */
static void work_free(struct work *w)
{
	if (!w)
		return;
	todo_clear(w);
	for (size_t i = 0; i < w->n_parts; i++) {
		pcr_mixer_free(w->part[i].mixer);
		free(w->part[i].platform);
	}
	free(w);
}

void image_sets_free(struct image_sets *s)
{
	if (!s)
		return;
	work_free(s->work);
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].name);
		free(s->v[i].uid);
	}
	pcr_sets_fini(&s->sets);
	free(s->awaited);
	free(s->v);
	free(s);
}

/* ---- the value sets of one image */

/* Copy the events of some registers, in order. False: too many events. */
static bool add_registers(struct pcr_events *to, const struct pcr_events *from, unsigned registers)
{
	for (size_t i = 0; from && i < from->n; i++) {
		const struct pcr_event *e = &from->v[i];

		if (registers & PCR(e->pcr) &&
			!pcr_events_push(to, e->id, e->type, e->pcr, e->digest))
			return false;
	}
	return true;
}

/* Add one value set: PCR 4 and 14 of base, with PCR 7 between them. base or pcr7 may be NULL. */
static void add_values(struct work *w, struct part *p, const char *name,
	const struct pcr_events *base, const struct pcr_events *pcr7)
{
	struct pcr_events all = PCR_EVENTS_INIT;

	if (!add_registers(&all, base, PCR(4)) || !add_registers(&all, pcr7, PCR(7)) ||
		!add_registers(&all, base, PCR(14))) {
		pcr_events_fini(&all);
		log_warn(NULL, "an image has too many events in total and is skipped", "name=%s",
			name);
		return;
	}
	w->todo[w->n_todo++] = (struct todo){p, all};
}

/* Add a value set for every accepted boot path. fwupd's program is started by BootNext, before
 * any boot entry that could fail, so the two never combine. */
static void add_paths(struct work *w, struct part *p, const char *name,
	const struct pcr_events *base, const struct pcr_events *pcr7, enum pcr_boot_path accepted)
{
	enum pcr_boot_path own = pcr_boot_path_of(base);
	unsigned failed = accepted >= PCR_BOOT_FAILED_ENTRIES && own == PCR_BOOT_STRICT
				  ? PCR_BOOT_FAILED_MAX
				  : 0;

	if (own > accepted)
		return;
	add_values(w, p, name, base, pcr7);
	for (unsigned i = 1; i <= failed; i++) {
		cleanup_pcr_events struct pcr_events later = PCR_EVENTS_INIT;

		if (pcr_boot_failed(base, i, &later))
			add_values(w, p, name, &later, pcr7);
	}
}

static bool has_id(const struct pcr_events *e, enum pcr_event_id id)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].id == id)
			return true;
	return false;
}

/* Add a value set with the values that a platform has of its own (NULL: no platform). PCR 4 of a
 * platform reflects shim's validation, which plays no role with Secure Boot off. */
static void add_local(struct work *w, struct part *p, const char *name,
	const struct pcr_events *base, const struct model_platform *own,
	enum pcr_boot_path accepted)
{
	cleanup_pcr_events struct pcr_events local = PCR_EVENTS_INIT;
	bool four = own && p->secure_boot && model_platform_any_kernel(own);
	/* Without shim a platform's MOK variables are not measured. */
	bool fourteen = own && model_platform_has(own, 14) && !has_id(base, PCR14_NO_SHIM);

	if ((own && !four && model_platform_has(own, 4)
			    ? pcr_boot_on_platform(&own->events, base, &local)
			    : add_registers(&local, four ? &own->events : base, PCR(4))) &&
		add_registers(&local, fourteen ? &own->events : base, PCR(14)))
		add_paths(w, p, name, &local, own && w->required ? &own->events : NULL, accepted);
}

/* Add every value set of an image for this Secure Boot state. */
static void add_state(struct work *w, struct part *p, const struct model_pcrs_entry *entry,
	const struct model_platform *own, enum pcr_boot_path accepted)
{
	if (p->secure_boot)
		add_local(w, p, entry->name, &entry->events, own, accepted);
	for (size_t i = 0; i < entry->variants.n; i++)
		if (entry->variants.v[i].secure_boot == p->secure_boot)
			add_local(w, p, entry->name, &entry->variants.v[i].events, own, accepted);
}

static bool differs(const struct work *w, const struct model_platform *own)
{
	return w->required ? model_platform_has(own, 7)
			   : model_platform_has(own, 4) || model_platform_has(own, 14);
}

/* Add the value sets of an image on a platform. If the platform has only PCR 7, which is not
 * required, its nodes are covered by the sets without a platform. */
static void add_on_platform(struct work *w, struct part *p, const struct model_image *m,
	const struct model_pcrs_entry *entry)
{
	const struct model_platform *own =
		image_platforms_value(w->c->kind.caches, entry, p->platform);

	if (!own)
		return;
	if (p->alone)
		add_values(w, p, entry->name, NULL, &own->events);
	else if (differs(w, own) && (p->secure_boot || m->any_secure_boot))
		add_state(w, p, entry, own, m->boot_path);
}

/* The image may have been replaced since the computation began; then it adds nothing. */
static void collect(struct work *w, const struct image_counted *image)
{
	const struct kobj *o = k8s_cache_find(w->c->kind.caches->images, image->name);
	const struct model_pcrs_entry *entry = NULL;
	enum image_awaited awaited;

	if (o && str_eq(o->uid, image->uid))
		entry = image_entry_counted(w->c, model_image(o), &awaited);
	for (size_t i = 0; entry && i < w->n_parts; i++) {
		struct part *p = &w->part[i];

		if (p->platform)
			add_on_platform(w, p, model_image(o), entry);
		else if (p->secure_boot || model_image(o)->any_secure_boot)
			add_state(w, p, entry, NULL, model_image(o)->boot_path);
	}
}

/* ---- the work */

/* Undo everything that the current image added. */
static void refuse(struct image_sets *s)
{
	struct work *w = s->work;

	s->v[w->at].refused = true;
	s->n_refused++;
	pcr_sets_cut(&s->sets, w->before);
	for (size_t i = 0; i < w->n_parts; i++)
		pcr_mixer_cut(w->part[i].mixer, w->part[i].before);
}

/* Continue where the last slice stopped; `pairs` bounds the work of one slice. */
bool image_sets_run(struct image_sets *s)
{
	struct work *w = s->work;
	size_t pairs = 0;

	for (; w->at < s->n; w->at++) {
		if (!w->collected) {
			/* Remember the sizes, so that refuse() can cut everything back. */
			w->collected = true;
			w->before = s->sets.n;
			for (size_t i = 0; i < w->n_parts; i++)
				w->part[i].before = pcr_mixer_count(w->part[i].mixer);
			collect(w, &s->v[w->at]);
		}
		for (; w->next < w->n_todo; w->next++) {
			struct todo *t = &w->todo[w->next];

			if (pairs > WORK_MAX)
				return false;
			pairs += 1 + pcr_mixer_count(t->part->mixer);
			if (!pcr_mixer_add(t->part->mixer, s->v[w->at].name, w->at, &t->events,
				    IMAGE_STATES_MAX, &s->sets)) {
				refuse(s);
				break;
			}
		}
		todo_clear(w);
		w->collected = false;
	}
	s->conflicts = 0;
	for (size_t i = 0; i < w->n_parts; i++)
		s->conflicts += pcr_mixer_conflicts(w->part[i].mixer);
	work_free(steal_ptr(&s->work));
	return true;
}
