/* SPDX-License-Identifier: MIT */
/* Shared by the files of this folder: little-endian fields, the files of an image, where to find
 * them, and how they behave. */
#ifndef TEC_MEASURE_INTERNAL_H
#define TEC_MEASURE_INTERNAL_H

#include "tec/measure/efivar.h"
#include "tec/measure/firmware.h"
#include "tec/measure/pe.h"
#include "tec/measure/predict.h"

/* ---- fields of PE, EFI and TCG structures; the caller has checked the length */

static inline uint16_t measure_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t measure_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void measure_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

/* ---- authority.c: what authorizes a file that is started with Secure Boot on */

struct measure_authority {
	const struct efi_guid *guid; /* of the variable that lists it; NULL: not searched */
	const char *name;
	enum pcr_event_id id;
	struct efi_sig entry; /* borrowed from that variable */
};

/* ---- file.c: one file, mapped for parsing, read for hashing */

struct measure_file {
	char *path;    /* owned, relative to the root it was opened under; NULL: not open */
	int fd;        /* owned */
	uint8_t *data; /* mapped */
	size_t len;
	uint8_t *step; /* owned; buffer for hashing */
	struct pe pe;
	uint8_t digest[SHA256_LEN]; /* as the firmware measures it */
	size_t n_signatures;
	struct measure_authority authority;
};

int measure_file_open(
	int root_fd, const char *path, struct measure_file *out, struct err *err) MUST_CHECK;
/* fd is duplicated; the caller still closes it. */
int measure_file_open_fd(
	int fd, const char *path, struct measure_file *out, struct err *err) MUST_CHECK;
/* Compute the Authenticode digest, and check that the signatures match it. Once per file. */
int measure_file_hash(struct measure_file *f, struct err *err) MUST_CHECK;
/* An authenticode_source_fn whose arg is the measure_file. */
const uint8_t *measure_file_source(void *arg, size_t from, size_t len, struct err *err);
/* Release mapped pages. Call it when the file is not read for a while: one access may map 2 MiB. */
void measure_file_rest(const struct measure_file *f);
void measure_file_fini(struct measure_file *f);

/* Append a small file (at most 1 MiB). ERR_NOT_FOUND: it does not exist. */
int measure_read_small(
	int dir_fd, const char *path, struct strbuf *out, struct err *err) MUST_CHECK;
/* Open a directory under root_fd; *out is -1 if it does not exist. */
int measure_open_dir(int root_fd, const char *path, int *out, struct err *err) MUST_CHECK;

/* ---- find.c: paths of kernels and boot loaders */

struct measure_list {
	char **v; /* owned */
	size_t n;
};
struct measure_paths {
	struct measure_list kernels; /* newest first */
	char *shim, *second;         /* owned; both of one vendor; or no shim, and a UKI */
	bool has_loaders;            /* a shim or a second stage was found, if not a pair */
	char *sd_boot;               /* owned; NULL: the firmware starts the UKI */
	struct measure_list updates; /* fwupd's programs */
	struct strbuf notes;         /* what was found but not used, for people */
};
/* Compare versions as package managers do: digits by value, '~' sorts before the end. */
int measure_vercmp(const char *a, const char *b);
int measure_find_kernels(int root_fd, struct measure_paths *p, struct err *err) MUST_CHECK;
/* machine OTHER: any, x64 preferred. */
int measure_find_loaders(
	int root_fd, enum pe_machine machine, struct measure_paths *p, struct err *err) MUST_CHECK;
/* Find the newest UKI of an image without shim. p->second NULL: there is none. */
int measure_find_uki(int root_fd, struct measure_paths *p, struct err *err) MUST_CHECK;
/* Find the systemd-boot that may start it. */
int measure_find_sd_boot(
	int root_fd, enum pe_machine machine, struct measure_paths *p, struct err *err) MUST_CHECK;
/* Find fwupd's programs for the architecture of the shim in p. */
int measure_find_updates(int root_fd, struct measure_paths *p, struct err *err) MUST_CHECK;
void measure_paths_fini(struct measure_paths *p);

/* ---- loader.c: which second stage it is, and how often it measures the kernel */

struct measure_loader {
	const char *name; /* "GRUB 2.06 of Debian or Ubuntu" */
	bool uki;
	/* How often with Secure Boot on and off; of a UKI, the embedded kernel. Most likely first;
	 * -1 ends the list. */
	signed char on[3], off[3];
};
const struct measure_loader *measure_loader_of(const struct pe *second, bool is_uki);
const struct measure_loader *measure_loader_uki(void); /* one that never measures its kernel */
bool measure_loader_may_load(const struct measure_loader *l);
/* Version of the systemd-stub in a UKI, from "#### LoaderInfo: systemd-stub 257.13-1 ####"; 0:
 * unknown. */
unsigned measure_stub_version(const struct pe *uki);

/* ---- vars.c, firmware.c */

/* Identify a logged variable of the firmware; PCR_PLATFORM_N_FILES: another one. */
enum pcr_platform_var measure_variable_of(const struct efi_logged_variable *v);
/* Tell whether the data of EV_EFI_BOOT_SERVICES_APPLICATION names a file in a firmware volume. */
bool measure_is_built_in(const uint8_t *event, size_t len);

/* ---- predict.c, read.c */

/* Everything that a prediction is made from. */
struct measure_set {
	const struct measure_conf *conf; /* borrowed */
	struct measure_paths paths;
	struct measure_file shim, second;
	bool no_shim;                /* second is a UKI; shim is not open */
	struct measure_file sd_boot; /* without shim: starts the UKI, if it is open */
	struct measure_file *kernel; /* owned array */
	size_t n_kernels;            /* 0: the second stage is a UKI, or kernels are not needed */
	const struct measure_loader *loader;
	struct shim_vendor vendor;      /* borrowed from shim's mapping */
	struct strbuf pk, kek, db, dbx; /* contents, as measured */
	struct strbuf dbt, dbr;         /* of the few platforms that have them */
	struct measure_firmware firmware;
	bool empty_state; /* SecureBoot exists and is empty */
	/* What shim measures into PCR 14. */
	struct strbuf mok, mok_x, mok_t, mok_sb;
	bool has_mok_t, has_mok_sb, validation_off;
	struct measure_file *update; /* owned array: fwupd's programs in the image */
	size_t n_updates;
	uint8_t inner[SHA256_LEN]; /* of a UKI: digest of its kernel */
	bool measures_7;
	enum measure_secure_boot secure_boot; /* FROM_EFIVARS: unknown */
};
int measure_read(
	const struct measure_conf *conf, struct measure_set *set, struct err *err) MUST_CHECK;
void measure_set_fini(struct measure_set *set);

/* read.c: MOK variables as given. */
static inline bool measure_mok_given(const struct measure_conf *conf)
{
	return conf->mokvars_fd >= 0 || conf->mok;
}
bool measure_mok_validation_off(const struct measure_vars *v); /* MokSBState */

/* authority.c: find what authorizes each file that is started with Secure Boot on, once for all
 * variants. ERR_INVALID: nothing authorizes it, or it is revoked; the text says what to do. */
int measure_authority_find_all(struct measure_set *set, struct err *err) MUST_CHECK;

/* sbat.c: the SBAT level that shim sets, as text. */
int measure_sbat_level(const struct measure_set *set, bool latest, const char **text, size_t *len,
	struct err *err) MUST_CHECK;
/* Refuse a file that shim rejects as too old. by_shim: shim itself loads it, rather than a loader
 * that asks shim. */
int measure_sbat_check(const struct measure_set *set, const struct measure_file *f, bool by_shim,
	struct err *err) MUST_CHECK;
/* Check whether shim's latest SBAT level differs from the usual one and all files start at it. */
bool measure_sbat_differs(const struct measure_set *set);

/* uki.c: append the PCR 11 events of an open UKI. profile: the one that is booted. */
int measure_uki_events(struct measure_file *f, unsigned profile, struct pcr_events *out,
	struct err *err) MUST_CHECK;
unsigned measure_uki_profiles(const struct pe *pe); /* at least 1 */
int measure_uki_inner(struct measure_file *f, uint8_t out[SHA256_LEN], struct err *err) MUST_CHECK;

/* eventlog.c: descriptions for people, escaped. */
void measure_describe_cert(const uint8_t *der, size_t len, struct strbuf *out);
void measure_describe_hash(const uint8_t *hash, size_t len, struct strbuf *out);

#endif
