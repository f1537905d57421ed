/* SPDX-License-Identifier: MIT */
/*
 * Drop privileges before reading bytes that an attacker may have chosen. For short-lived programs
 * without secrets: what is dropped cannot be regained. Call it before any thread is started.
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
	size_t memory; /* address space in bytes; not applied under AddressSanitizer */
	size_t file;   /* maximum size of a written file in bytes; 0: no writing at all */
};
/* Set the limits; also forbids new privileges (setuid programs) and core dumps. */
int confine_process(const struct confine_limits *l, struct err *err) MUST_CHECK;

struct confine_files {
	const char *const *read; /* readable files, and directories with their contents */
	size_t n_read;
	int write_fd; /* a directory; -1: none */
	bool run;     /* readable files may be executed as well */
};
/*
 * Restrict this process and its children with Landlock to opening files at and below these paths, for
 * reading only; paths that do not exist are skipped. At and below write_fd, files and directories can
 * also be created, written and removed. Returns false, with nothing changed, if the kernel lacks
 * Landlock (Linux 5.13; 5.19 with write_fd) or denies its use. Requires a prior confine_process().
 */
bool confine_files(const struct confine_files *f);

/* The opposite: raise the soft limit of descriptors up to the hard one. Returns the resulting limit;
 * 0 if it is unknown. */
uint64_t confine_raise_descriptors(uint64_t want);

/*
 * Release the resident pages of code and constants of the program and its libraries. Pages that only
 * start-up needed stay absent, and others are faulted in again from the page cache. For a server that
 * has completed its start; may be called again.
 */
void confine_drop_code(void);
/* The parser part, for tests: calls drop for each mapping in /proc/PID/smaps that can be released. */
void confine_drop_code_of(FILE *smaps, void (*drop)(void *from, size_t len));

#endif
