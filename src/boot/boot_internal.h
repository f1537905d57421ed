/* SPDX-License-Identifier: MIT */
/* What the files of this folder share: little-endian fields, files of an image, where they are,
 * what they do. */
#ifndef TEC_BOOT_INTERNAL_H
#define TEC_BOOT_INTERNAL_H

#include "tec/boot/efivar.h"
#include "tec/boot/pe.h"
#include "tec/boot/predict.h"

/* ---- fields of PE, EFI and TCG structures; the caller has checked that they are there */

static inline uint16_t boot_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t boot_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void boot_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

/* ---- authority.c: who vouches for a file that is started with Secure Boot on */

struct boot_authority {
	const struct efi_guid *guid; /* of the variable it is in; NULL: nobody was asked */
	const char *name;
	enum pcr_event_id id;
	struct efi_sig entry; /* borrowed from that variable */
};

/* ---- file.c: one file, mapped to be parsed, read to be hashed */

struct boot_file {
	char *path;    /* owned, relative to the root it was opened under; NULL: not open */
	int fd;        /* owned */
	uint8_t *data; /* mapped */
	size_t len;
	uint8_t *step; /* owned; the bytes that are being hashed */
	struct pe pe;
	uint8_t digest[SHA256_LEN]; /* as the firmware measures it */
	size_t n_signatures;
	struct boot_authority authority;
};

int boot_file_open(
	int root_fd, const char *path, struct boot_file *out, struct err *err) MUST_CHECK;
/* fd stays the caller's. */
int boot_file_open_fd(int fd, const char *path, struct boot_file *out, struct err *err) MUST_CHECK;
/* The Authenticode digest; its signatures must agree with it. Once per file. */
int boot_file_hash(struct boot_file *f, struct err *err) MUST_CHECK;
/* An authenticode_source_fn whose arg is the boot_file. */
const uint8_t *boot_file_source(void *arg, size_t from, size_t len, struct err *err);
/* The page cache may map 2 MiB at a touch: to be called when a while will pass until the next. */
void boot_file_rest(const struct boot_file *f);
void boot_file_fini(struct boot_file *f);

/* Appends a small file (1 MiB at most). ERR_NOT_FOUND: there is none. */
int boot_read_small(int dir_fd, const char *path, struct strbuf *out, struct err *err) MUST_CHECK;
/* A directory under root_fd; *out is -1 when there is none. */
int boot_open_dir(int root_fd, const char *path, int *out, struct err *err) MUST_CHECK;

/* ---- find.c: where things are */

struct boot_paths {
	char **kernel; /* owned; newest first */
	size_t n_kernels;
	char *shim, *second; /* owned; of one vendor's directory */
	char **update;       /* owned; fwupd's programs */
	size_t n_updates;
	struct strbuf notes; /* what else is there and was not taken */
};
/* Version order as packages are compared: runs of digits by number, '~' before the end. */
int boot_vercmp(const char *a, const char *b);
int boot_find_kernels(int root_fd, struct boot_paths *p, struct err *err) MUST_CHECK;
/* machine OTHER: any, x64 first. */
int boot_find_loaders(
	int root_fd, enum pe_machine machine, struct boot_paths *p, struct err *err) MUST_CHECK;
/* For the shim that was found. */
int boot_find_updates(int root_fd, struct boot_paths *p, struct err *err) MUST_CHECK;
void boot_paths_fini(struct boot_paths *p);

/* ---- loader.c: what the second stage is, and how often it has the kernel measured */

struct boot_loader {
	const char *name; /* "GRUB 2.06 of Debian or Ubuntu" */
	bool uki;
	/* How often; of a UKI, the kernel inside. Likeliest first; -1 ends the list. */
	signed char on[3], off[3];
};
const struct boot_loader *boot_loader_of(const struct pe *second, bool is_uki);
const struct boot_loader *boot_loader_uki(void); /* that never has its kernel measured */
bool boot_loader_may_load(const struct boot_loader *l);
/* Of the systemd-stub in a UKI, "#### LoaderInfo: systemd-stub 257.13-1 ####"; 0: unknown. */
unsigned boot_stub_version(const struct pe *uki);

/* ---- predict.c, read.c, pcr7.c */

/* Everything that was read. */
struct boot_set {
	const struct boot_conf *conf; /* borrowed */
	struct boot_paths paths;
	struct boot_file shim, second;
	struct boot_file *kernel; /* owned array */
	size_t n_kernels;         /* 0: a UKI, or not needed */
	const struct boot_loader *loader;
	struct shim_vendor vendor;      /* borrowed from shim's mapping */
	struct strbuf pk, kek, db, dbx; /* as measured */
	/* What shim measures into PCR 14. */
	struct strbuf mok, mok_x, mok_t, mok_sb;
	bool has_mok_t, has_mok_sb, validation_off;
	struct boot_file *update; /* owned array: fwupd's, which the image ships */
	size_t n_updates;
	uint8_t inner[SHA256_LEN]; /* of a UKI: its kernel */
	bool measures_7;
	enum boot_secure_boot secure_boot; /* FROM_EFIVARS: not known */
};
int boot_read(const struct boot_conf *conf, struct boot_set *set, struct err *err) MUST_CHECK;
void boot_set_fini(struct boot_set *set);

/* mok.c: MOK variables as given, or as shim makes them. */
static inline bool boot_mok_given(const struct boot_conf *conf)
{
	return conf->mokvars_fd >= 0 || conf->mok;
}
int boot_mok_read(struct boot_set *set, struct err *err) MUST_CHECK;
bool boot_mok_validation_off(const struct boot_vars *v); /* MokSBState */
int boot_mok_derive(struct boot_set *set, struct err *err) MUST_CHECK;

/* One variant while it is made. */
struct boot_build {
	const struct boot_set *set;
	struct boot_file *second;       /* the set's, to be read once more */
	const struct boot_file *kernel; /* NULL: a UKI, or not needed */
	const struct boot_file *update; /* NULL: no firmware update came first */
	bool secure_boot, sbat_latest;
	int kernel_times;
	unsigned failed;  /* boot entries before this one */
	unsigned profile; /* of a UKI */
	struct boot_variant *variant;
};
void boot_add(struct boot_build *b, enum pcr_event_id id, enum pcr_event_type type, unsigned pcr,
	const uint8_t digest[SHA256_LEN], const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
int boot_pcr7(struct boot_build *b, struct err *err) MUST_CHECK;
/* Finds the authority of each file that is started with Secure Boot on, once for all variants. */
int boot_pcr7_authorities(struct boot_set *set, struct err *err) MUST_CHECK;

/* sbat.c: the level that shim sets, as text. */
int boot_sbat_level(const struct boot_set *set, bool latest, const char **text, size_t *len,
	struct err *err) MUST_CHECK;
/* Refuses what shim finds too old. by_shim: shim itself loads it, and not a loader that asks shim. */
int boot_sbat_check(const struct boot_set *set, const struct boot_file *f, bool by_shim,
	struct err *err) MUST_CHECK;
/* Whether shim has another SBAT level for those who ask for the latest, at which all starts. */
bool boot_sbat_differs(const struct boot_set *set);

/* uki.c: PCR 11 of an open UKI, appended with a label for each event; profile: which one is booted. */
int boot_uki_events(
	struct boot_file *f, unsigned profile, struct pcr_events *out, struct err *err) MUST_CHECK;
unsigned boot_uki_profiles(const struct pe *pe); /* 1 at least */
int boot_uki_inner(struct boot_file *f, uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;

/* explain.c */
void boot_explain(const struct boot_variants *v, struct strbuf *out);

/* eventdata.c: in words, escaped. */
void boot_describe_cert(const uint8_t *der, size_t len, struct strbuf *out);
void boot_describe_hash(const uint8_t *hash, size_t len, struct strbuf *out);

#endif
