/* SPDX-License-Identifier: MIT */
/*
 * A platform's variables (pcr/platform.h). Firmware variables come from a directory in the format
 * of efivarfs (four bytes of attributes first), or from a node's event log, which holds their
 * measured contents. A directory without firmware variables is refused rather than taken for a
 * firmware without keys. Variables of shim come from a directory as the kernel shows them, without
 * attributes.
 */
#ifndef TEC_MEASURE_VARS_H
#define TEC_MEASURE_VARS_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/pcr/platform.h"

#define MEASURE_VARS_ATTRIBUTES 4 /* bytes at the start of an efivarfs file */

struct measure_vars {
	struct strbuf text[PCR_PLATFORM_N_FILES]; /* owned; whole files */
	bool found[PCR_PLATFORM_N_FILES];
};
void measure_vars_fini(struct measure_vars *v);
#define cleanup_boot_vars __attribute__((cleanup(measure_vars_fini)))

/*
 * Read firmware variables. ERR_NOT_FOUND: the directory contains only other files, or it is empty
 * and may_be_empty is false (firmware in setup mode has no variables, but the caller must say so).
 */
int measure_vars_read(
	int dir_fd, bool may_be_empty, struct measure_vars *out, struct err *err) MUST_CHECK;
/* Read only the variables of shim. The caller checks that none is missing. */
int measure_vars_read_mok(int dir_fd, struct measure_vars *out, struct err *err) MUST_CHECK;
/* Read both kinds, and whether shim's validation may be off. ERR_NOT_FOUND: there are none. */
int measure_vars_read_platform(int dir_fd, struct measure_vars *out, struct err *err) MUST_CHECK;
/* True if at least one variable of the kind was found. */
bool measure_vars_has_firmware(const struct measure_vars *v);
bool measure_vars_has_mok(const struct measure_vars *v);
/* Read firmware variables from a log. An empty variable counts as missing, except SecureBoot; all
 * may be. ERR_INVALID: the log is damaged, contains no variables, or shows contents that differ
 * from what was measured. */
int measure_vars_from_log(
	const void *log, size_t len, struct measure_vars *out, struct err *err) MUST_CHECK;
/* Compute the digest that identifies the platform (pcr/platform.h). */
void measure_vars_digest(const struct measure_vars *v, uint8_t out[SHA256_LEN]);

#endif
