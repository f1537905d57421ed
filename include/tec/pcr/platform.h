/* SPDX-License-Identifier: MIT */
/*
 * A platform: the firmware variables that PCR 7 depends on, as efivarfs shows them (4 bytes of
 * attributes, then the contents), and one digest that identifies the platform. The tool computes it
 * from the directory that it predicts from, the operator from the ConfigMap that is mounted there,
 * so that a prediction is known to be of the variables there are now. Bytes in, a digest out.
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
	PCR_PLATFORM_N_VARS,
};
extern const char *const pcr_platform_files[PCR_PLATFORM_N_VARS]; /* "PK-8be4df61-..." */

struct pcr_platform_file {
	const void *data; /* borrowed; NULL: there is no such file */
	size_t len;
};
/* SHA-256 over each file's name, NUL, 1 or 0 (there is none), length as u64le, and bytes. */
void pcr_platform_digest(
	const struct pcr_platform_file files[PCR_PLATFORM_N_VARS], uint8_t out[SHA256_LEN]);

#endif
