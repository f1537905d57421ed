/* SPDX-License-Identifier: MIT */
/*
 * The files of an image that a prediction reads: one list, used for the search (measure/find.c) and
 * for fetching only these files of an image.
 */
#ifndef TEC_MEASURE_NEEDS_H
#define TEC_MEASURE_NEEDS_H

#include <stddef.h>

struct measure_need {
	const char *dir; /* "usr/lib/modules" */
	unsigned depth;  /* levels below it; 1: only the directory itself */
	/* Of the files to read: a name, and how others end; both NULL: all. */
	const char *name, *ending;
};
enum measure_need_index {
	MEASURE_NEED_KERNELS,
	MEASURE_NEED_EFI, /* if it exists, BOOTUPD is ignored */
	MEASURE_NEED_BOOTUPD,
	MEASURE_NEED_UPDATES, /* fwupd's programs */
	MEASURE_NEED_UKIS,    /* of sealed images */
	MEASURE_NEED_SD_BOOT,
	MEASURE_N_NEEDS,
};
extern const struct measure_need measure_needs[MEASURE_N_NEEDS];

/* The first bytes of every kernel and boot loader, whatever its name. */
#define MEASURE_NEED_MAGIC "MZ"

#endif
