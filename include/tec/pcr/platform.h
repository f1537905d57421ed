/* SPDX-License-Identifier: MIT */
/*
 * A platform: the firmware variables that PCR 7 depends on, in the format of efivarfs (4 bytes of
 * attributes, then the contents), or shim's MOK variables that PCR 14 depends on, as in
 * /sys/firmware/efi/mok-variables, or both; and what its firmware measures besides (FirmwareEvents:
 * measure/firmware.h). One digest identifies the platform. The tool computes
 * it from the directory that it predicts from, and the operator from the ConfigMap that is mounted
 * there; if both are equal, the prediction was made from the current variables. Bytes in, a digest
 * out.
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
	PCR_PLATFORM_N_VARS, /* end of the firmware's; the others are shim's */
	PCR_PLATFORM_MOK_LIST = PCR_PLATFORM_N_VARS,
	PCR_PLATFORM_MOK_LIST_X,
	PCR_PLATFORM_MOK_TRUSTED,
	PCR_PLATFORM_MOK_SB_STATE,
	PCR_PLATFORM_MOK_IGNORE_DB,
	/* Not a variable: "true" accepts a shim that validates nothing (MokSBStateRT). */
	PCR_PLATFORM_ALLOW_VALIDATION_OFF,
	/* Variables of the firmware that few platforms measure. */
	PCR_PLATFORM_DBT,
	PCR_PLATFORM_DBR,
	/* Not variables: events of the firmware; "true" accepts programs among them. */
	PCR_PLATFORM_EVENTS,
	PCR_PLATFORM_ALLOW_APPLICATIONS,
	PCR_PLATFORM_N_FILES,
};
/* File names, such as "PK-8be4df61-..." and "MokListRT". */
extern const char *const pcr_platform_files[PCR_PLATFORM_N_FILES];

struct pcr_platform_file {
	const void *data; /* borrowed; NULL: the file does not exist */
	size_t len;
};
/* Compute SHA-256 over each file's name, NUL, 1 or 0 (missing), length as u64le, and bytes. Missing
 * files that are not the firmware's are left out. */
void pcr_platform_digest(
	const struct pcr_platform_file files[PCR_PLATFORM_N_FILES], uint8_t out[SHA256_LEN]);
/* Whether a file says something about the platform, rather than what is accepted there. */
bool pcr_platform_describes(int file);
/* Check a file that allows something for "true", with or without a newline. text NULL: false. */
#define PCR_PLATFORM_ALLOWED "true"
bool pcr_platform_allows(const char *text, size_t len);

#endif
