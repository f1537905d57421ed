/* SPDX-License-Identifier: MIT */
/*
 * What a process gives up before it reads bytes that an attacker may have chosen. For short
 * programs that hold nothing: what is given up never comes back. Call it before there are threads.
 */
#ifndef TEC_BASE_CONFINE_H
#define TEC_BASE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tec/base/err.h"

struct confine_limits {
	uint32_t cpu_s, descriptors;
	size_t memory; /* address space in bytes; not set under AddressSanitizer, which needs it */
	size_t file;   /* the largest file that may be written, in bytes; 0: no byte */
};
/* Also: no new privileges, no core dumps. */
int confine_process(const struct confine_limits *l, struct err *err) MUST_CHECK;

struct confine_files {
	const char *const *read; /* files, and directories with all below them */
	size_t n_read;
	int write_fd; /* of a directory; -1: none */
	bool run;     /* what may be read may be executed as well */
};
/*
 * From here on, for this process and its children, only the files at and below these paths can be opened,
 * and those only to be read; paths that are not there are skipped. At and below write_fd files and
 * directories can be made, written and removed as well. False: this kernel has no Landlock (Linux
 * 5.13; with write_fd 5.19), or does not let us use it, and everything stays as it was. Needs
 * confine_process() first.
 */
bool confine_files(const struct confine_files *f);

/* The opposite: raises the soft limit of descriptors, within the hard one. What is allowed then;
 * 0: not known. */
uint64_t confine_raise_descriptors(uint64_t want);

/*
 * Releases the pages of the program and its libraries, code and constants: those that only the start
 * needed stay unmapped, and those that are used again come back from the page cache. For a process
 * that has started and now serves; may be called again.
 */
void confine_drop_code(void);
/* For each mapping of /proc/PID/smaps that may go: the part of it that reads. */
void confine_drop_code_of(FILE *smaps, void (*drop)(void *from, size_t len));

#endif
