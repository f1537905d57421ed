/* SPDX-License-Identifier: MIT */
/*
 * Reference values made from approved images, in two forms: arrays per PCR (Shared mode, users' own
 * policies, the file reference-values.json), and one value per possible boot of a node, named by
 * its PCR values, which lists the images whose parts it consists of.
 */
#ifndef TEC_RENDER_REFVALUES_H
#define TEC_RENDER_REFVALUES_H

#include "tec/base/str.h"
#include "tec/model/configmap.h"
#include "tec/pcr/combine.h"

#define RENDER_BOOT_PREFIX   "boot."
#define RENDER_BOOT_NAME_MAX 199
struct render_boot {
	char name[RENDER_BOOT_NAME_MAX + 1];
	char *value; /* owned: {"images":[names, sorted]} */
};

struct render_refvalues {
	char *array[MODEL_RV_N_ARRAYS]; /* owned: sorted unique ["hex",...], "[]" when there is none
				       */
	struct render_boot *boot;       /* owned; sorted by name */
	size_t n_boot;
};
#define RENDER_REFVALUES_INIT                                                                      \
	{                                                                                          \
		.n_boot = 0                                                                        \
	}
void render_refvalues_fini(struct render_refvalues *r);
#define cleanup_refvalues __attribute__((cleanup(render_refvalues_fini)))

/* boot.<4>.<14> if pcr7 is NULL, otherwise boot.<4>.<7>.<14>. */
void render_boot_name(const uint8_t pcr4[SHA256_LEN], const uint8_t *pcr7,
	const uint8_t pcr14[SHA256_LEN], char out[RENDER_BOOT_NAME_MAX + 1]);
/* images: their names, indexed as in the sets. A boot that an image gives on its own lists all
 * images that do; a mix lists both images. A set without one of the PCRs in the name gives no
 * boot. A set whose PCR 4 has two forms gives two boots. Initialises out. */
void render_refvalues(const char *const *images, const struct pcr_sets *sets, bool with_pcr7,
	struct render_refvalues *out);
/* The file: [{"version","name","expiration","value"},...]; tpm_pcr7 only if it has values. */
void render_refvalues_file(const struct render_refvalues *r, int64_t expires_s, struct strbuf *out);

#endif
