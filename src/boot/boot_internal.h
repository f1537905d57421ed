/* SPDX-License-Identifier: MIT */
/* Shared by the files of this folder: little-endian fields, the files of an image, where to find
 * them, and how they behave. */
#ifndef TEC_BOOT_INTERNAL_H
#define TEC_BOOT_INTERNAL_H

#include "tec/boot/efivar.h"
#include "tec/boot/pe.h"
#include "tec/boot/predict.h"

/* ---- fields of PE, EFI and TCG structures; the caller has checked the length */

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

/* ---- authority.c: what authorizes a file that is started with Secure Boot on */

struct boot_authority {
	const struct efi_guid *guid; /* of the variable that lists it; NULL: not searched */
	const char *name;
	enum pcr_event_id id;
	struct efi_sig entry; /* borrowed from that variable */
};

/* ---- file.c: one file, mapped for parsing, read for hashing */

struct boot_file {
	char *path;    /* owned, relative to the root it was opened under; NULL: not open */
	int fd;        /* owned */
	uint8_t *data; /* mapped */
	size_t len;
	uint8_t *step; /* owned; buffer for hashing */
	struct pe pe;
	uint8_t digest[SHA256_LEN]; /* as the firmware measures it */
	size_t n_signatures;
	struct boot_authority authority;
};

int boot_file_open(
	int root_fd, const char *path, struct boot_file *out, struct err *err) MUST_CHECK;
/* fd is duplicated; the caller still closes it. */
int boot_file_open_fd(int fd, const char *path, struct boot_file *out, struct err *err) MUST_CHECK;
/* Compute the Authenticode digest, and check that the signatures match it. Once per file. */
int boot_file_hash(struct boot_file *f, struct err *err) MUST_CHECK;
/* An authenticode_source_fn whose arg is the boot_file. */
const uint8_t *boot_file_source(void *arg, size_t from, size_t len, struct err *err);
/* Release mapped pages. Call it when the file is not read for a while: one access may map 2 MiB. */
void boot_file_rest(const struct boot_file *f);
void boot_file_fini(struct boot_file *f);

/* Append a small file (at most 1 MiB). ERR_NOT_FOUND: it does not exist. */
int boot_read_small(int dir_fd, const char *path, struct strbuf *out, struct err *err) MUST_CHECK;
/* Open a directory under root_fd; *out is -1 if it does not exist. */
int boot_open_dir(int root_fd, const char *path, int *out, struct err *err) MUST_CHECK;

/* ---- find.c: paths of kernels and boot loaders */

struct boot_list {
	char **v; /* owned */
	size_t n;
};
struct boot_paths {
	struct boot_list kernels; /* newest first */
	char *shim, *second;      /* owned; both of one vendor */
	struct boot_list updates; /* fwupd's programs */
	struct strbuf notes;      /* what was found but not used, for people */
};
/* Compare versions as package managers do: digits by value, '~' sorts before the end. */
int boot_vercmp(const char *a, const char *b);
int boot_find_kernels(int root_fd, struct boot_paths *p, struct err *err) MUST_CHECK;
/* machine OTHER: any, x64 preferred. */
int boot_find_loaders(
	int root_fd, enum pe_machine machine, struct boot_paths *p, struct err *err) MUST_CHECK;
/* Find fwupd's programs for the architecture of the shim in p. */
int boot_find_updates(int root_fd, struct boot_paths *p, struct err *err) MUST_CHECK;
void boot_paths_fini(struct boot_paths *p);

/* ---- loader.c: which second stage it is, and how often it measures the kernel */

struct boot_loader {
	const char *name; /* "GRUB 2.06 of Debian or Ubuntu" */
	bool uki;
	/* How often with Secure Boot on and off; of a UKI, the embedded kernel. Most likely first;
	 * -1 ends the list. */
	signed char on[3], off[3];
};
const struct boot_loader *boot_loader_of(const struct pe *second, bool is_uki);
const struct boot_loader *boot_loader_uki(void); /* one that never measures its kernel */
bool boot_loader_may_load(const struct boot_loader *l);
/* Version of the systemd-stub in a UKI, from "#### LoaderInfo: systemd-stub 257.13-1 ####"; 0:
 * unknown. */
unsigned boot_stub_version(const struct pe *uki);

/* ---- predict.c, read.c */

/* Everything that a prediction is made from. */
struct boot_set {
	const struct boot_conf *conf; /* borrowed */
	struct boot_paths paths;
	struct boot_file shim, second;
	struct boot_file *kernel; /* owned array */
	size_t n_kernels;         /* 0: the second stage is a UKI, or kernels are not needed */
	const struct boot_loader *loader;
	struct shim_vendor vendor;      /* borrowed from shim's mapping */
	struct strbuf pk, kek, db, dbx; /* contents, as measured */
	/* What shim measures into PCR 14. */
	struct strbuf mok, mok_x, mok_t, mok_sb;
	bool has_mok_t, has_mok_sb, validation_off;
	struct boot_file *update; /* owned array: fwupd's programs in the image */
	size_t n_updates;
	uint8_t inner[SHA256_LEN]; /* of a UKI: digest of its kernel */
	bool measures_7;
	enum boot_secure_boot secure_boot; /* FROM_EFIVARS: unknown */
};
int boot_read(const struct boot_conf *conf, struct boot_set *set, struct err *err) MUST_CHECK;
void boot_set_fini(struct boot_set *set);

/* read.c: MOK variables as given. */
static inline bool boot_mok_given(const struct boot_conf *conf)
{
	return conf->mokvars_fd >= 0 || conf->mok;
}
bool boot_mok_validation_off(const struct boot_vars *v); /* MokSBState */

/* authority.c: find what authorizes each file that is started with Secure Boot on, once for all
 * variants. ERR_INVALID: nothing authorizes it, or it is revoked; the text says what to do. */
int boot_authority_find_all(struct boot_set *set, struct err *err) MUST_CHECK;

/* sbat.c: the SBAT level that shim sets, as text. */
int boot_sbat_level(const struct boot_set *set, bool latest, const char **text, size_t *len,
	struct err *err) MUST_CHECK;
/* Refuse a file that shim rejects as too old. by_shim: shim itself loads it, rather than a loader
 * that asks shim. */
int boot_sbat_check(const struct boot_set *set, const struct boot_file *f, bool by_shim,
	struct err *err) MUST_CHECK;
/* Check whether shim's latest SBAT level differs from the usual one and all files start at it. */
bool boot_sbat_differs(const struct boot_set *set);

/* uki.c: append the PCR 11 events of an open UKI. profile: the one that is booted. */
int boot_uki_events(
	struct boot_file *f, unsigned profile, struct pcr_events *out, struct err *err) MUST_CHECK;
unsigned boot_uki_profiles(const struct pe *pe); /* at least 1 */
int boot_uki_inner(struct boot_file *f, uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;

/* eventlog.c: descriptions for people, escaped. */
void boot_describe_cert(const uint8_t *der, size_t len, struct strbuf *out);
void boot_describe_hash(const uint8_t *hash, size_t len, struct strbuf *out);

#endif
