/* SPDX-License-Identifier: MIT */
/*
 * Which of an image's files a prediction reads: the one list, for the search (boot/find.c)
 * and for fetching an image only for them.
 */
#ifndef TEC_BOOT_NEEDS_H
#define TEC_BOOT_NEEDS_H

#include <stddef.h>

struct boot_need {
	const char *dir;  /* "usr/lib/modules" */
	unsigned depth;   /* levels below it; 1: only what is in the directory itself */
	const char *name; /* of the files; NULL: all */
};
enum boot_need_index {
	BOOT_NEED_KERNELS,
	BOOT_NEED_EFI, /* where it exists, the next one is not looked at */
	BOOT_NEED_BOOTUPD,
	BOOT_NEED_UPDATES, /* fwupd's programs */
	BOOT_N_NEEDS,
};
extern const struct boot_need boot_needs[BOOT_N_NEEDS];

/* What kernels and boot loaders begin with, whatever they are called. */
#define BOOT_NEED_MAGIC "MZ"

#endif
