/* SPDX-License-Identifier: MIT */
/*
 * From an operating system image's files to the events its boot will measure (reference-values.md
 * sections 1-4). Reads through directory descriptors and never leaves them (openat2
 * RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS); regular files only. Each file is read once to be
 * hashed, in steps. The descriptors stay the caller's; what comes out owns its memory.
 * ERR_NOT_FOUND: the image lacks something; ERR_INVALID: it would not boot, or is no image; both
 * name the path and what to do.
 */
#ifndef TEC_PCR_IMAGE_H
#define TEC_PCR_IMAGE_H

#include "tec/base/str.h"
#include "tec/pcr/tpmevent.h"

enum pcr_secure_boot { PCR_SB_FROM_EFIVARS, PCR_SB_ON, PCR_SB_OFF };

#define PCR_IMAGE_PCR4  1u
#define PCR_IMAGE_PCR7  2u
#define PCR_IMAGE_PCR14 4u
#define PCR_IMAGE_ALL   7u

struct pcr_image_conf {
	unsigned registers;               /* PCR_IMAGE_*; PCR 7 needs efivars */
	int rootfs_fd;                    /* of the image's root; -1: PCR 14 from mokvars alone */
	int efivars_fd;                   /* -1: not given, PCR 7 is left out */
	int mokvars_fd;                   /* -1: not given, PCR 14 is derived from shim */
	enum pcr_secure_boot secure_boot; /* FROM_EFIVARS without efivars: on comes first */
	bool uki;         /* the second stage is a UKI by the caller's word; it is also found out */
	bool all_kernels; /* offer every kernel; otherwise the newest by version */
	/* NULL, or where the digest of the variables in efivars_fd goes (pcr/platform.h) as soon as
	 * they are read, whether the prediction succeeds or not. */
	uint8_t *variables_sha256;
};

/* One value set that the image can legitimately show. */
struct pcr_variant {
	char *when; /* owned: "Secure Boot on; GRUB measures the kernel twice" */
	bool secure_boot;
	struct pcr_events events; /* PCR 4, 7, 14 in this order, as far as they were asked for */
};
struct pcr_variants {
	struct pcr_variant *v; /* owned; most likely first */
	size_t n;
	struct strbuf explain; /* which file made which event, for people */
};
#define PCR_VARIANTS_INIT                                                                          \
	{                                                                                          \
		NULL, 0, STRBUF_INIT                                                               \
	}
void pcr_variants_fini(struct pcr_variants *v);
#define cleanup_pcr_variants __attribute__((cleanup(pcr_variants_fini)))

/* At least one variant on success. */
int pcr_image_predict(
	const struct pcr_image_conf *conf, struct pcr_variants *out, struct err *err) MUST_CHECK;

/*
 * PCR 11 of one unified kernel image, as systemd-stub measures its sections: for each one its name,
 * then its contents. Appends to out. path: for messages.
 */
int pcr_image_uki(int uki_fd, const char *path, struct pcr_events *out, struct err *err) MUST_CHECK;
/* ".linux" and ".linux_CONTENT", as the Rust tool calls these events; NULL: no such event. */
const char *pcr_uki_event_name(enum pcr_event_id id);

#endif
