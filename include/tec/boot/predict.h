/* SPDX-License-Identifier: MIT */
/*
 * From an operating system image's files to the events its boot will measure. Reads through
 * directory descriptors and never leaves them (openat2 RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
 * regular files only. Each file is read once to be hashed, in steps. The descriptors remain the
 * caller's; the result owns its memory. ERR_NOT_FOUND: the image lacks something; ERR_INVALID: it
 * would not boot, or is not an image; both name the path and what to do.
 */
#ifndef TEC_BOOT_PREDICT_H
#define TEC_BOOT_PREDICT_H

#include "tec/base/str.h"
#include "tec/pcr/tpmevent.h"

enum boot_secure_boot { BOOT_SB_FROM_EFIVARS, BOOT_SB_ON, BOOT_SB_OFF };

#define BOOT_PCR4  1u
#define BOOT_PCR7  2u
#define BOOT_PCR14 4u
#define BOOT_ALL   7u

struct boot_conf {
	unsigned registers;                /* BOOT_PCR*; PCR 7 needs efivars */
	int rootfs_fd;                     /* of the image's root; -1: PCR 14 from mokvars alone */
	int efivars_fd;                    /* -1: not given, PCR 7 is left out */
	int mokvars_fd;                    /* -1: not given, PCR 14 is derived from shim */
	enum boot_secure_boot secure_boot; /* FROM_EFIVARS without efivars: on comes first */
	bool uki;         /* the second stage is a UKI by the caller's word; it is also found out */
	bool all_kernels; /* offer every kernel; otherwise the newest by version */
	/* NULL, or where the digest of the variables in efivars_fd goes (pcr/platform.h) as soon as
	 * they are read, whether the prediction succeeds or not. */
	uint8_t *variables_sha256;
};

/* One value set that the image can legitimately show. */
struct boot_variant {
	char *when; /* owned: "Secure Boot on; GRUB measures the kernel twice" */
	bool secure_boot;
	struct pcr_events
		events; /* PCR 4, 7, 14 in this order, as far as conf.registers has them */
};
struct boot_variants {
	struct boot_variant *v; /* owned; most likely first */
	size_t n;
	struct strbuf explain; /* which file made which event, for people */
};
#define BOOT_VARIANTS_INIT                                                                         \
	{                                                                                          \
		NULL, 0, STRBUF_INIT                                                               \
	}
void boot_variants_fini(struct boot_variants *v);
#define cleanup_boot_variants __attribute__((cleanup(boot_variants_fini)))

/* At least one variant on success. */
int boot_predict(
	const struct boot_conf *conf, struct boot_variants *out, struct err *err) MUST_CHECK;

/*
 * PCR 11 of one unified kernel image, as systemd-stub measures its sections: for each one its name,
 * then its contents. Appends to out. path: for messages.
 */
int boot_uki(int uki_fd, const char *path, struct pcr_events *out, struct err *err) MUST_CHECK;
/* ".linux" and ".linux_CONTENT", as the Rust tool calls these events; NULL: no such event. */
const char *boot_uki_event_name(enum pcr_event_id id);

#endif
