/* SPDX-License-Identifier: MIT */
/*
 * A platform: the firmware variables that PCR 7 depends on, as efivarfs shows them (4 bytes of
 * attributes, then the contents), or shim's MOK variables that PCR 14 depends on, as the kernel
 * shows them in /sys/firmware/efi/mok-variables, or both; and one digest that identifies the
 * platform. The tool computes it from the directory that it predicts from, the operator from the
 * ConfigMap that is mounted there, so that a prediction is known to be of the variables there are
 * now. Bytes in, a digest out.
 */
#ifndef TEC_PCR_PLATFORM_H
#define TEC_PCR_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"

/* In the order of measurement. */
enum pcr_platform_var {
	PCR_PLATFORM_SECURE_BOOT,
	PCR_PLATFORM_PK,
	PCR_PLATFORM_KEK,
	PCR_PLATFORM_DB,
	PCR_PLATFORM_DBX,
	PCR_PLATFORM_N_VARS, /* of the firmware; the others are shim's */
	PCR_PLATFORM_MOK_LIST = PCR_PLATFORM_N_VARS,
	PCR_PLATFORM_MOK_LIST_X,
	PCR_PLATFORM_MOK_TRUSTED,
	PCR_PLATFORM_MOK_SB_STATE,
	PCR_PLATFORM_MOK_IGNORE_DB,
	/* No variable: "true" accepts a shim that validates nothing (MokSBStateRT). */
	PCR_PLATFORM_ALLOW_VALIDATION_OFF,
	PCR_PLATFORM_N_FILES,
};
/* "PK-8be4df61-...", "MokListRT" */
extern const char *const pcr_platform_files[PCR_PLATFORM_N_FILES];

struct pcr_platform_file {
	const void *data; /* borrowed; NULL: there is no such file */
	size_t len;
};
/* SHA-256 over each file's name, NUL, 1 or 0 (there is none), length as u64le, and bytes. Of those
 * that are not the firmware's only what is there. */
void pcr_platform_digest(
	const struct pcr_platform_file files[PCR_PLATFORM_N_FILES], uint8_t out[SHA256_LEN]);
/* Of the last file: "true", with or without a newline. text NULL: no. */
#define PCR_PLATFORM_ALLOWED "true"
bool pcr_platform_allows_validation_off(const char *text, size_t len);

#endif
