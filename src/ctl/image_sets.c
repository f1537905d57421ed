/* SPDX-License-Identifier: MIT */
/*
 * What goes into the combinations. A node has Secure Boot on or off and is one platform, so value
 * sets are combined with those of the same state and platform only: what an entry has of its own is
 * for Secure Boot on. Off counts for the images whose spec says so. Where PCR 7 is required,
 * nothing counts without it; otherwise it stands alone, for people to look at first. Refuses an
 * image whose events would be too many together, for that state and platform.
 */
#include "config.h"

#include "image_internal.h"

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pcr/combine.h"

#define PCR(n) (1u << (n))

/* Value sets that are combined with each other, and which of all images each belongs to. */
struct part {
	struct pcr_image *v; /* owned, events too */
	size_t *index;       /* owned */
	size_t n, cap;
};

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

/* PCR 4 and 14 of base, with PCR 7 between them; either may be NULL. */
static void part_add(struct part *p, size_t index, const char *name, const struct pcr_events *base,
	const struct pcr_events *pcr7)
{
	struct pcr_events all = PCR_EVENTS_INIT;

	if (!add_registers(&all, base, PCR(4)) || !add_registers(&all, pcr7, PCR(7)) ||
		!add_registers(&all, base, PCR(14))) {
		pcr_events_fini(&all);
		log_warn(NULL, "an image has too many events together and is left out", "name=%s",
			name);
		return;
	}
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 16;
		p->v = xreallocarray(p->v, p->cap, sizeof(*p->v));
		p->index = xreallocarray(p->index, p->cap, sizeof(*p->index));
	}
	p->v[p->n] = (struct pcr_image){.name = name, .events = all};
	p->index[p->n++] = index;
}

static void part_combine(struct part *p, struct pcr_sets *out, size_t *conflicts)
{
	size_t first = out->n, lost = 0;

	pcr_combine(p->v, p->n, out, &lost);
	for (size_t i = first; i < out->n; i++)
		for (int side = 0; side < 2; side++)
			out->v[i].image[side] = p->index[out->v[i].image[side]];
	*conflicts += lost;
	for (size_t i = 0; i < p->n; i++)
		pcr_events_fini(&p->v[i].events);
	free(p->v);
	free(p->index);
}

/* All that an image may show in this state, with PCR 7 where there is one. */
static void add_state(struct part *p, size_t index, const struct model_pcrs_entry *entry,
	bool secure_boot, const struct pcr_events *pcr7)
{
	if (secure_boot)
		part_add(p, index, entry->name, &entry->events, pcr7);
	for (size_t i = 0; i < entry->variants.n; i++)
		if (entry->variants.v[i].secure_boot == secure_boot)
			part_add(p, index, entry->name, &entry->variants.v[i].events, pcr7);
}

static void combine_state(const struct ctl_env *env, const struct model_image *const *images,
	size_t n, bool secure_boot, struct pcr_sets *out, size_t *conflicts)
{
	const struct model_pcrs_entry *entry;
	struct part p = {.n = 0};

	for (size_t i = 0; i < n; i++)
		if ((secure_boot || images[i]->any_secure_boot) &&
			image_entry(env, images[i], &entry) == CTL_IMAGE_ENTRY_GOOD)
			add_state(&p, i, entry, secure_boot, NULL);
	part_combine(&p, out, conflicts);
}

static void combine_platform(const struct ctl_env *env, const struct model_image *const *images,
	size_t n, const char *platform, bool required, struct pcr_sets *out, size_t *conflicts)
{
	const struct model_pcrs_entry *entry;
	const struct pcr_events *pcr7;
	struct part p = {.n = 0};

	for (size_t i = 0; i < n; i++) {
		if (image_entry(env, images[i], &entry) != CTL_IMAGE_ENTRY_GOOD)
			continue;
		pcr7 = image_platform_value(env, entry, platform);
		if (pcr7 && required)
			add_state(&p, i, entry, true, pcr7);
		else if (pcr7)
			part_add(&p, i, entry->name, NULL, pcr7);
	}
	part_combine(&p, out, conflicts);
}

void image_sets_combine(const struct ctl_env *env, const struct model_image *const *images,
	size_t n, struct pcr_sets *out, size_t *conflicts)
{
	const struct model_cluster *c = ctl_env_cluster(env);
	bool required = c && c->pcr7 == MODEL_PCR7_REQUIRE;

	for (int off = 0; !required && off <= 1; off++)
		combine_state(env, images, n, !off, out, conflicts);
	for (unsigned i = 0; c && i < c->n_platforms; i++)
		combine_platform(env, images, n, c->platform[i], required, out, conflicts);
}
