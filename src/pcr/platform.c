/* SPDX-License-Identifier: MIT */
/*
 * Every part of the digest is preceded by its length, so that no two platforms yield the same
 * input. A missing file and an empty one differ, although they are measured in the same way.
 */
#include "config.h"

#include "tec/pcr/platform.h"

#include <string.h>

#define GLOBAL   "-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define SECURITY "-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

const char *const pcr_platform_files[PCR_PLATFORM_N_FILES] = {
	[PCR_PLATFORM_SECURE_BOOT] = "SecureBoot" GLOBAL,
	[PCR_PLATFORM_PK] = "PK" GLOBAL,
	[PCR_PLATFORM_KEK] = "KEK" GLOBAL,
	[PCR_PLATFORM_DB] = "db" SECURITY,
	[PCR_PLATFORM_DBX] = "dbx" SECURITY,
	[PCR_PLATFORM_MOK_LIST] = "MokListRT",
	[PCR_PLATFORM_MOK_LIST_X] = "MokListXRT",
	[PCR_PLATFORM_MOK_TRUSTED] = "MokListTrustedRT",
	[PCR_PLATFORM_MOK_SB_STATE] = "MokSBStateRT",
	[PCR_PLATFORM_MOK_IGNORE_DB] = "MokIgnoreDB",
	[PCR_PLATFORM_ALLOW_VALIDATION_OFF] = "AllowValidationDisabled",
	[PCR_PLATFORM_DBT] = "dbt" SECURITY,
	[PCR_PLATFORM_DBR] = "dbr" SECURITY,
	[PCR_PLATFORM_EVENTS] = "FirmwareEvents",
	[PCR_PLATFORM_ALLOW_APPLICATIONS] = "AllowFirmwareApplications",
};

void pcr_platform_digest(
	const struct pcr_platform_file files[PCR_PLATFORM_N_FILES], uint8_t out[SHA256_LEN])
{
	cleanup_sha256 struct bytes_sha256_run run = {NULL};

	bytes_sha256_init(&run);
	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++) {
		const struct pcr_platform_file *f = &files[i];
		uint8_t present = f->data != NULL;

		if (i >= PCR_PLATFORM_N_VARS && !present)
			continue; /* keep the digest of platforms without these files, which are older */
		bytes_sha256_add(&run, pcr_platform_files[i], strlen(pcr_platform_files[i]) + 1);
		bytes_sha256_add(&run, &present, 1);
		bytes_sha256_add_framed(&run, f->data, present ? f->len : 0);
	}
	bytes_sha256_end(&run, out);
}

bool pcr_platform_describes(int file)
{
	return file != PCR_PLATFORM_ALLOW_VALIDATION_OFF && file != PCR_PLATFORM_ALLOW_APPLICATIONS;
}

/* Be strict: a typo must not switch off a protection. */
bool pcr_platform_allows(const char *text, size_t len)
{
	size_t n = strlen(PCR_PLATFORM_ALLOWED);

	return text && len >= n && memcmp(text, PCR_PLATFORM_ALLOWED, n) == 0 &&
	       (len == n || (len == n + 1 && text[n] == '\n'));
}
