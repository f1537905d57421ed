/* SPDX-License-Identifier: MIT */
/*
 * A platform's variables (pcr/platform.h). Those of the firmware: from a directory as efivarfs shows
 * them, or from a node's event log, which holds what was measured of them; files keep their four
 * bytes of attributes first. What is not a directory of firmware variables is refused and not taken
 * for a firmware without keys. Those of shim: from a directory as the kernel shows them, without
 * attributes.
 */
#ifndef TEC_BOOT_VARS_H
#define TEC_BOOT_VARS_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/pcr/platform.h"

#define BOOT_VARS_ATTRIBUTES 4 /* bytes that come first in an efivarfs file */

struct boot_vars {
	struct strbuf text[PCR_PLATFORM_N_FILES]; /* owned; whole files */
	bool found[PCR_PLATFORM_N_FILES];
};
void boot_vars_fini(struct boot_vars *v);
#define cleanup_boot_vars __attribute__((cleanup(boot_vars_fini)))

/*
 * ERR_NOT_FOUND: none of the files is there and something else is, or nothing is and may_be_empty is
 * false (a firmware in setup mode has none, but then the caller has to say so).
 */
int boot_vars_read(
	int dir_fd, bool may_be_empty, struct boot_vars *out, struct err *err) MUST_CHECK;
/* Those of shim alone; whether they are all that there should be is the reader's to judge. */
int boot_vars_read_mok(int dir_fd, struct boot_vars *out, struct err *err) MUST_CHECK;
/* Of either kind, and whether validation may be off. ERR_NOT_FOUND: there is none. */
int boot_vars_read_platform(int dir_fd, struct boot_vars *out, struct err *err) MUST_CHECK;
/* There is one of them. */
bool boot_vars_has_firmware(const struct boot_vars *v);
bool boot_vars_has_mok(const struct boot_vars *v);
/* A variable without contents is one without a file. ERR_INVALID: the log is damaged, has none of
 * them, or shows other contents than were measured. */
int boot_vars_from_log(
	const void *log, size_t len, struct boot_vars *out, struct err *err) MUST_CHECK;
/* pcr/platform.h's, which names the platform. */
void boot_vars_digest(const struct boot_vars *v, uint8_t out[SHA256_LEN]);

#endif
