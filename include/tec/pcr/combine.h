/* SPDX-License-Identifier: MIT */
/*
 * Which register values a node may legitimately show while it is between two approved images:
 * kernel and boot loader are updated on separate reboots (reference-values.md section 5). Every
 * image's own values are always among the result (the Rust tool loses them, section 5.4).
 */
#ifndef TEC_PCR_COMBINE_H
#define TEC_PCR_COMBINE_H

#include "tec/pcr/tpmevent.h"

struct pcr_image {
	const char *name;         /* for people and tokens */
	struct pcr_events events; /* one value set that this image may show */
};

/* One state a node may be in: the registers, and which images its parts come from. */
struct pcr_set {
	bool has[PCR_MAX];
	uint8_t value[PCR_MAX][SHA256_LEN];
	size_t image[2]; /* indexes into the images; equal: one image alone */
};
struct pcr_sets {
	struct pcr_set *v; /* owned */
	size_t n, cap;
};
#define PCR_SETS_INIT                                                                              \
	{                                                                                          \
		NULL, 0, 0                                                                         \
	}
void pcr_sets_fini(struct pcr_sets *s);
#define cleanup_pcr_sets __attribute__((cleanup(pcr_sets_fini)))

/*
 * All sets of n images, appended: first each image's own, in its own order of events, then the
 * mixes of each two (i < k, as given). Per pair no two sets have the same registers, and none has
 * those of one of its two images. Mixes follow the order of enum pcr_event_id; events of one id
 * stay together. Two value sets with the same name are variants of one image and are not mixed.
 * conflicts (may be NULL) counts branches that were discarded because groups contradict each other.
 */
void pcr_combine(const struct pcr_image *images, size_t n, struct pcr_sets *out, size_t *conflicts);

#endif
