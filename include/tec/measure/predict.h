/* SPDX-License-Identifier: MIT */
/*
 * Predict from the files of an operating system image which events its boot will measure. Files are
 * read through directory descriptors that are never left (openat2 RESOLVE_IN_ROOT |
 * RESOLVE_NO_MAGICLINKS), and only regular files. Each file is read once for hashing, in steps. The
 * caller keeps the descriptors; the result owns its memory. ERR_NOT_FOUND: the image lacks
 * something; ERR_INVALID: it would not boot, or is not an image. Both name the path and the remedy.
 */
#ifndef TEC_MEASURE_PREDICT_H
#define TEC_MEASURE_PREDICT_H

#include "tec/base/str.h"
#include "tec/measure/vars.h"
#include "tec/pcr/bootpath.h"
#include "tec/pcr/tpmevent.h"

enum measure_secure_boot { MEASURE_SB_FROM_EFIVARS, MEASURE_SB_ON, MEASURE_SB_OFF };

#define MEASURE_PCR4  1u
#define MEASURE_PCR7  2u
#define MEASURE_PCR14 4u
#define MEASURE_ALL   7u
#define MEASURE_PCR11 8u /* only if the second stage is a UKI */

struct measure_conf {
	unsigned registers;                   /* MEASURE_PCR*; PCR 7 needs efivars */
	int rootfs_fd;                        /* the image's root; -1: only PCR 14, from mokvars */
	int efivars_fd;                       /* -1: not given; PCR 7 is left out */
	const struct measure_vars *vars;      /* instead of efivars_fd; NULL: none. Borrowed */
	int mokvars_fd;                       /* -1: not given; PCR 14 is derived from shim */
	const struct measure_vars *mok;       /* instead of mokvars_fd; NULL: none. Borrowed */
	enum measure_secure_boot secure_boot; /* FROM_EFIVARS without efivars: both, on first */
	bool uki; /* the caller knows that the second stage is a UKI; it is detected as well */
	bool all_kernels; /* variants for all kernels; otherwise only for the newest version */
	bool validation_off_ok;  /* shim's validation may be off (MokSBState) */
	enum pcr_boot_path path; /* make variants for paths up to this one */
	bool vouched;            /* an unsigned file is known to start anyway */
};

/* One set of values that a boot of the image can legitimately have. */
struct measure_variant {
	char *when; /* owned: "Secure Boot on; GRUB measures the kernel twice" */
	bool secure_boot;
	enum pcr_boot_path path; /* the path that it requires */
	bool derived;            /* by the operator from another variant (pcr/bootpath.h) */
	/* PCR 4, 7, 11, 14 in this order, those in conf.registers. */
	struct pcr_events events;
	char **label; /* owned; one per event, for people: "usr/lib/.../grubx64.efi" */
};
struct measure_variants {
	struct measure_variant *v; /* owned; most likely first */
	size_t n;
	struct strbuf explain; /* which file causes which event, for people */
};
#define MEASURE_VARIANTS_INIT                                                                      \
	{                                                                                          \
		NULL, 0, STRBUF_INIT                                                               \
	}
void measure_variants_fini(struct measure_variants *v);
#define cleanup_boot_variants __attribute__((cleanup(measure_variants_fini)))

/* At least one variant on success. */
int measure_predict(
	const struct measure_conf *conf, struct measure_variants *out, struct err *err) MUST_CHECK;

/* Compute the Authenticode digest of a program as firmware measures it. path: for messages. */
int measure_digest(int fd, const char *path, uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;

/*
 * Append PCR 11 of a unified kernel image, as its systemd-stub measures the sections: for each one
 * its name, then its contents. profile: the one that is booted, of *n_profiles. ERR_INVALID: it is
 * unknown whether this stub measures some section; the message names it. path: for messages.
 */
int measure_uki(int uki_fd, const char *path, unsigned profile, unsigned *n_profiles,
	struct pcr_events *out, struct err *err) MUST_CHECK;
/* Return ".linux" or ".linux_CONTENT", the Rust tool's names for these events; NULL for others. */
const char *measure_uki_event_name(enum pcr_event_id id);

#endif
