/* SPDX-License-Identifier: MIT */
/*
 * Which register values a node may legitimately show while it is between two approved images:
 * kernel and boot loader are updated on separate reboots. Every
 * image's own values are always among the result (the Rust tool loses them).
 */
#ifndef TEC_PCR_COMBINE_H
#define TEC_PCR_COMBINE_H

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

/* One state a node may be in: the registers, and which images its parts come from. */
struct pcr_set {
	bool has[PCR_MAX];
	uint8_t value[PCR_MAX][SHA256_LEN];
	size_t image[2]; /* of the caller's images; equal: one image alone */
};
struct pcr_sets {
	struct pcr_set *v; /* owned */
	size_t n, cap;
	size_t *table; /* owned: hash table of indexes into v, plus one; 0: free */
	size_t n_table;
};
#define PCR_SETS_INIT                                                                              \
	{                                                                                          \
		NULL, 0, 0, NULL, 0                                                                \
	}
void pcr_sets_fini(struct pcr_sets *s);
#define cleanup_pcr_sets __attribute__((cleanup(pcr_sets_fini)))

void pcr_sets_cut(struct pcr_sets *s, size_t n); /* keeps the first n */

/*
 * Value sets that are combined with each other, added one by one: the caller bounds what comes out,
 * may stop between two, and takes back what was too much.
 */
struct pcr_mixer;
struct pcr_mixer *pcr_mixer_new(void);
void pcr_mixer_free(struct pcr_mixer *m); /* NULL is fine */
/*
 * Appends the set's own registers to out, always and in its own order of events, then its mixes
 * with each of those there (side 0) that no set of out has yet. Mixes follow the order of enum
 * pcr_event_id; events of one id stay together. Two value sets with the same name are variants of
 * one image and are not mixed. image: what the sets' indexes say. False: out would have more than
 * max sets; it has some of them, to be cut.
 */
bool pcr_mixer_add(struct pcr_mixer *m, const char *name, size_t image,
	const struct pcr_events *events, size_t max, struct pcr_sets *out) MUST_CHECK;
size_t pcr_mixer_count(const struct pcr_mixer *m);
void pcr_mixer_cut(struct pcr_mixer *m, size_t n); /* keeps the first n */
/* Branches that were discarded because groups contradict each other. */
size_t pcr_mixer_conflicts(const struct pcr_mixer *m);

#endif
