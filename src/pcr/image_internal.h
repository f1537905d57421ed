/* SPDX-License-Identifier: MIT */
/* What the parts of pcr/image share: files of an image, where they are, what they do. */
#ifndef TEC_PCR_IMAGE_INTERNAL_H
#define TEC_PCR_IMAGE_INTERNAL_H

#include "tec/pcr/efivar.h"
#include "tec/pcr/image.h"
#include "tec/pcr/pe.h"

/* ---- image_file.c: one file, mapped to be parsed, read to be hashed */

struct image_file {
	char *path;    /* owned, relative to the root it was opened under; NULL: not open */
	int fd;        /* owned */
	uint8_t *data; /* mapped */
	size_t len;
	uint8_t *step; /* owned; the bytes that are being hashed */
	struct pe pe;
	uint8_t digest[SHA256_LEN]; /* as the firmware measures it */
	size_t n_signatures;
};

int image_file_open(
	int root_fd, const char *path, struct image_file *out, struct err *err) MUST_CHECK;
/* fd stays the caller's. */
int image_file_open_fd(
	int fd, const char *path, struct image_file *out, struct err *err) MUST_CHECK;
/* The Authenticode digest; its signatures must agree with it. Once per file. */
int image_file_hash(struct image_file *f, struct err *err) MUST_CHECK;
/* An authenticode_source_fn whose arg is the image_file. */
const uint8_t *image_file_source(void *arg, size_t from, size_t len, struct err *err);
/* The page cache may map 2 MiB at a touch: to be called when a while will pass until the next. */
void image_file_rest(const struct image_file *f);
void image_file_fini(struct image_file *f);

/* Appends a small file (1 MiB at most). ERR_NOT_FOUND: there is none. */
int image_read_small(int dir_fd, const char *path, struct strbuf *out, struct err *err) MUST_CHECK;
/* A directory under root_fd; *out is -1 when there is none. */
int image_open_dir(int root_fd, const char *path, int *out, struct err *err) MUST_CHECK;

/* ---- image_find.c: where things are */

struct image_paths {
	char **kernel; /* owned; newest first */
	size_t n_kernels;
	char *shim, *second; /* owned; of one vendor's directory */
	struct strbuf notes; /* what else is there and was not taken */
};
/* Version order as packages are compared: runs of digits by number, '~' before the end. */
int image_vercmp(const char *a, const char *b);
int image_find_kernels(int root_fd, struct image_paths *p, struct err *err) MUST_CHECK;
/* machine OTHER: any, x64 first. */
int image_find_loaders(
	int root_fd, enum pe_machine machine, struct image_paths *p, struct err *err) MUST_CHECK;
void image_paths_fini(struct image_paths *p);

/* ---- image_loader.c: what the second stage is, and how often it has the kernel measured */

struct image_loader {
	const char *name; /* "GRUB 2.06 of Debian or Ubuntu" */
	bool uki;
	signed char on[3], off[3]; /* likeliest first; -1 ends the list */
};
const struct image_loader *image_loader_of(const struct pe *second, bool is_uki);

/* ---- image.c, image_read.c, image_pcr7.c */

/* Everything that was read. */
struct image_set {
	const struct pcr_image_conf *conf; /* borrowed */
	struct image_paths paths;
	struct image_file shim, second;
	struct image_file *kernel; /* owned array */
	size_t n_kernels;          /* 0: a UKI, or not needed */
	const struct image_loader *loader;
	struct shim_vendor vendor;       /* borrowed from shim's mapping */
	struct strbuf pk, kek, db, dbx;  /* as measured */
	struct strbuf mok, mok_x, mok_t; /* the lists that shim measures into PCR 14 */
	bool measures_7;
	enum pcr_secure_boot secure_boot; /* FROM_EFIVARS: not known */
};
int image_read(
	const struct pcr_image_conf *conf, struct image_set *set, struct err *err) MUST_CHECK;
void image_set_fini(struct image_set *set);

/* One variant while it is made. */
struct image_build {
	const struct image_set *set;
	const struct image_file *kernel; /* NULL: a UKI, or not needed */
	bool secure_boot, sbat_latest;
	int kernel_times;
	struct pcr_events *events;
	struct strbuf *explain;
};
void image_add(struct image_build *b, enum pcr_event_id id, enum pcr_event_type type, unsigned pcr,
	const uint8_t digest[SHA256_LEN], const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
int image_pcr7(struct image_build *b, struct err *err) MUST_CHECK;
/* Whether shim has another SBAT level for those who ask for the latest. */
bool image_sbat_differs(const struct image_set *set);

#endif
