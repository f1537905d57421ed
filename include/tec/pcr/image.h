/* SPDX-License-Identifier: MIT */
/*
 * From an operating system image's files to the events its boot will measure (reference-values.md
 * sections 1-4). Reads through directory descriptors and never leaves them (openat2
 * RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS); regular files only. Each file is mapped, read once and
 * given back as it is hashed.
 */
#ifndef TEC_PCR_IMAGE_H
#define TEC_PCR_IMAGE_H

#include "tec/base/str.h"
#include "tec/pcr/tpmevent.h"

enum pcr_secure_boot { PCR_SB_FROM_EFIVARS, PCR_SB_ON, PCR_SB_OFF };

struct pcr_image_conf {
	int rootfs_fd;                    /* of the image's root */
	int efivars_fd;                   /* -1: not given, PCR 7 is left out */
	int mokvars_fd;                   /* -1: not given, PCR 14 is derived from shim */
	enum pcr_secure_boot secure_boot; /* FROM_EFIVARS without efivars: on */
	bool uki;         /* the second stage is a UKI by the caller's word; it is also found out */
	bool all_kernels; /* offer every kernel; otherwise the newest by version */
};

/* One value set that the image can legitimately show. */
struct pcr_variant {
	char *when; /* owned: "Secure Boot on; GRUB measures the kernel twice" */
	bool secure_boot;
	struct pcr_events events;
};
struct pcr_variants {
	struct pcr_variant *v; /* owned; most likely first */
	size_t n;
	struct strbuf explain; /* which file made which event, for people */
};
void pcr_variants_fini(struct pcr_variants *v);

int pcr_image_predict(
	const struct pcr_image_conf *conf, struct pcr_variants *out, struct err *err) MUST_CHECK;

#endif
