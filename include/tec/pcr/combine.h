/* SPDX-License-Identifier: MIT */
/*
 * Computes the PCR values that a node may legitimately have between two approved images, since
 * kernel and boot loader are updated on separate reboots. The own values of every image are always
 * in the result (the Rust tool loses them).
 */
#ifndef TEC_PCR_COMBINE_H
#define TEC_PCR_COMBINE_H

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

/* A possible state of a node: its PCRs, and the images that its parts come from. */
struct pcr_set {
	bool has[PCR_MAX];
	uint8_t value[PCR_MAX][SHA256_LEN];
	/* PCR 4 of the same state without the call of the boot entry (pcr/bootpath.h). */
	bool has_uncalled;
	uint8_t uncalled[SHA256_LEN];
	size_t image[2]; /* indexes chosen by the caller; equal: a single image */
};
struct pcr_sets {
	struct pcr_set *v; /* owned */
	size_t n, cap;
	size_t *table; /* owned: hash table of indexes into v plus one; 0: free */
	size_t n_table;
};
#define PCR_SETS_INIT                                                                              \
	{                                                                                          \
		NULL, 0, 0, NULL, 0                                                                \
	}
void pcr_sets_fini(struct pcr_sets *s);
#define cleanup_pcr_sets __attribute__((cleanup(pcr_sets_fini)))

void pcr_sets_cut(struct pcr_sets *s, size_t n); /* keep only the first n */

/*
 * Combines value sets that are added one by one. The caller bounds the result, may stop between two
 * sets, and can take back what was too much.
 */
struct pcr_mixer;
struct pcr_mixer *pcr_mixer_new(void);
void pcr_mixer_free(struct pcr_mixer *m); /* NULL is fine */
/*
 * Append the PCRs of a value set to out, always and in its own order of events, and then its
 * combinations with each earlier set (side 0) that are not in out yet. Combinations follow the
 * order of enum pcr_event_id; events of one id stay together. Value sets with the same name are
 * variants of one image and are not combined. image: the index to store in the results. False: out
 * would exceed max sets; the caller removes those that were added.
 */
bool pcr_mixer_add(struct pcr_mixer *m, const char *name, size_t image,
	const struct pcr_events *events, size_t max, struct pcr_sets *out) MUST_CHECK;
size_t pcr_mixer_count(const struct pcr_mixer *m);
void pcr_mixer_cut(struct pcr_mixer *m, size_t n); /* keep only the first n */
/* Return the number of branches that were dropped because their groups contradict each other. */
size_t pcr_mixer_conflicts(const struct pcr_mixer *m);

#endif
