/* SPDX-License-Identifier: MIT */
/*
 * The files of an image that a prediction reads: one list, used for the search (boot/find.c) and
 * for fetching only these files of an image.
 */
#ifndef TEC_BOOT_NEEDS_H
#define TEC_BOOT_NEEDS_H

#include <stddef.h>

struct boot_need {
	const char *dir;  /* "usr/lib/modules" */
	unsigned depth;   /* levels below it; 1: only the directory itself */
	const char *name; /* of the files to read; NULL: all */
};
enum boot_need_index {
	BOOT_NEED_KERNELS,
	BOOT_NEED_EFI, /* if it exists, BOOTUPD is ignored */
	BOOT_NEED_BOOTUPD,
	BOOT_NEED_UPDATES, /* fwupd's programs */
	BOOT_N_NEEDS,
};
extern const struct boot_need boot_needs[BOOT_N_NEEDS];

/* The first bytes of every kernel and boot loader, whatever its name. */
#define BOOT_NEED_MAGIC "MZ"

#endif
