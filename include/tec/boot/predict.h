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
#include "tec/boot/vars.h"
#include "tec/pcr/bootpath.h"
#include "tec/pcr/tpmevent.h"

enum boot_secure_boot { BOOT_SB_FROM_EFIVARS, BOOT_SB_ON, BOOT_SB_OFF };

#define BOOT_PCR4  1u
#define BOOT_PCR7  2u
#define BOOT_PCR14 4u
#define BOOT_ALL   7u
#define BOOT_PCR11 8u /* only where the second stage is a UKI */

struct boot_conf {
	unsigned registers;                /* BOOT_PCR*; PCR 7 needs efivars */
	int rootfs_fd;                     /* of the image's root; -1: PCR 14 from mokvars alone */
	int efivars_fd;                    /* -1: not given, PCR 7 is left out */
	const struct boot_vars *vars;      /* instead of efivars_fd; NULL: none. Borrowed */
	int mokvars_fd;                    /* -1: not given, PCR 14 is derived from shim */
	const struct boot_vars *mok;       /* instead of mokvars_fd; NULL: none. Borrowed */
	enum boot_secure_boot secure_boot; /* FROM_EFIVARS without efivars: on comes first */
	bool uki;         /* the second stage is a UKI by the caller's word; it is also found out */
	bool all_kernels; /* offer every kernel; otherwise the newest by version */
	bool validation_off_ok;  /* shim's validation may be off (MokSBState) */
	enum pcr_boot_path path; /* what else variants are made for */
	bool vouched;            /* a file that is not signed is known to start nevertheless */
};

/* One value set that the image can legitimately show. */
struct boot_variant {
	char *when; /* owned: "Secure Boot on; GRUB measures the kernel twice" */
	bool secure_boot;
	enum pcr_boot_path path; /* what it needs */
	/* PCR 4, 7, 11, 14 in this order, as far as conf.registers has them. */
	struct pcr_events events;
	char **label; /* owned; of each event, for people: "usr/lib/.../grubx64.efi" */
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

/* The Authenticode digest of one program as firmware measures it. path: for messages. */
int boot_digest(int fd, const char *path, uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;

/*
 * PCR 11 of one unified kernel image, as its systemd-stub measures the sections: for each one its
 * name, then its contents. Appends to out. profile: the one that is booted, of *n_profiles.
 * ERR_INVALID: it has a section of which it is not known whether this stub measures it; the message
 * names it. path: for messages.
 */
int boot_uki(int uki_fd, const char *path, unsigned profile, unsigned *n_profiles,
	struct pcr_events *out, struct err *err) MUST_CHECK;
/* ".linux" and ".linux_CONTENT", as the Rust tool calls these events; NULL: no such event. */
const char *boot_uki_event_name(enum pcr_event_id id);

#endif
