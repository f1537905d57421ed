/* SPDX-License-Identifier: MIT */
/*
 * Every part of the digest has its length before it, so that no two platforms give one text; a file
 * that does not exist and an empty one differ, although they are measured the same.
 */
#include "config.h"

#include "tec/pcr/platform.h"

#include <string.h>

#define GLOBAL   "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SECURITY "-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

const char *const pcr_platform_files[PCR_PLATFORM_N_VARS] = {
	[PCR_PLATFORM_SECURE_BOOT] = "SecureBoot" GLOBAL,
	[PCR_PLATFORM_PK] = "PK" GLOBAL,
	[PCR_PLATFORM_KEK] = "KEK" GLOBAL,
	[PCR_PLATFORM_DB] = "db" SECURITY,
	[PCR_PLATFORM_DBX] = "dbx" SECURITY,
};

void pcr_platform_digest(
	const struct pcr_platform_file files[PCR_PLATFORM_N_VARS], uint8_t out[SHA256_LEN])
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL};

	bytes_sha256_init(&run);
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
		const struct pcr_platform_file *f = &files[i];
		size_t len = f->data ? f->len : 0;
		uint8_t frame[9] = {f->data != NULL};

		for (unsigned b = 0; b < 8; b++)
			frame[1 + b] = (uint8_t)((uint64_t)len >> 8 * b);
		bytes_sha256_add(&run, pcr_platform_files[i], strlen(pcr_platform_files[i]) + 1);
		bytes_sha256_add(&run, frame, sizeof(frame));
		if (len)
			bytes_sha256_add(&run, f->data, len);
	}
	bytes_sha256_end(&run, out);
}
