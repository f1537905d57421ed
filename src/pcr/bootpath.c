/* SPDX-License-Identifier: MIT */
/*
 * Firmware measures that it calls a boot entry and, if the entry returns, that it returned. The
 * separator is measured once, after the first call (EDK2 Tcg2Dxe, observed with OVMF).
 */
#include "config.h"

#include "tec/pcr/bootpath.h"

#include <string.h>

#include "tec/base/str.h"

/* Unknown text means Strict, so that a newer value in the API never loosens an older operator. */
enum pcr_boot_path pcr_boot_path_parse(const char *text)
{
	if (str_eq(text, "AllowFirmwareUpdates"))
		return PCR_BOOT_FIRMWARE_UPDATES;
	return str_eq(text, "AllowFailedEntries") ? PCR_BOOT_FAILED_ENTRIES : PCR_BOOT_STRICT;
}

/* A firmware update implies that failed entries are accepted too, so it decides at once. */
enum pcr_boot_path pcr_boot_path_of(const struct pcr_events *e)
{
	enum pcr_boot_path path = PCR_BOOT_STRICT;

	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].id == PCR4_FIRMWARE_UPDATE)
			return PCR_BOOT_FIRMWARE_UPDATES;
		if (e->v[i].id == PCR4_BOOT_ENTRY_FAILED)
			path = PCR_BOOT_FAILED_ENTRIES;
	}
	return path;
}

static bool push_action(struct pcr_events *to, const char *text)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(text, strlen(text), digest);
	return pcr_events_push(to, PCR4_BOOT_ENTRY_FAILED, PCR_EV_EFI_ACTION, 4, digest);
}

/* Insert a pair of "returning" and "calling" per failed entry after the separator: the first call
 * precedes it. */
bool pcr_boot_failed(const struct pcr_events *from, unsigned n, struct pcr_events *to)
{
	bool found = n == 0;

	for (size_t i = 0; i < from->n; i++) {
		const struct pcr_event *e = &from->v[i];

		if (!pcr_events_push(to, e->id, e->type, e->pcr, e->digest))
			return false;
		if (e->id != PCR4_SEPARATOR)
			continue;
		found = true;
		for (unsigned k = 0; k < n; k++)
			if (!push_action(to, PCR_BOOT_RETURNING) ||
				!push_action(to, PCR_BOOT_CALLING))
				return false;
	}
	return found;
}

bool pcr_boot_is_call(const struct pcr_event *e)
{
	/* SHA-256 of PCR_BOOT_CALLING, without a NUL. */
	static const uint8_t digest[SHA256_LEN] = {0x3d, 0x67, 0x72, 0xb4, 0xf8, 0x4e, 0xd4, 0x75,
		0x95, 0xd7, 0x2a, 0x2c, 0x4c, 0x5f, 0xfd, 0x15, 0xf5, 0xbb, 0x72, 0xc7, 0x50, 0x7f,
		0xe2, 0x6f, 0x2a, 0xae, 0xe2, 0xc6, 0x9d, 0x56, 0x33, 0xba};

	return e->id == PCR4_EFI_CALL && memcmp(e->digest, digest, SHA256_LEN) == 0;
}

bool pcr_boot_uncalled(const struct pcr_events *from, struct pcr_events *to)
{
	bool called = false;

	for (size_t i = 0; i < from->n; i++) {
		const struct pcr_event *e = &from->v[i];

		if (e->id == PCR4_BOOT_ENTRY_FAILED)
			return false;
		if (pcr_boot_is_call(e))
			called = true;
		else if (!pcr_events_push(to, e->id, e->type, e->pcr, e->digest))
			return false;
	}
	return called;
}

/* What precedes the boot loader is replaced as a whole. */
bool pcr_boot_on_platform(
	const struct pcr_events *platform, const struct pcr_events *from, struct pcr_events *to)
{
	for (size_t i = 0; i < platform->n + from->n; i++) {
		bool own = i < platform->n;
		const struct pcr_event *e = own ? &platform->v[i] : &from->v[i - platform->n];

		if (own ? e->id != PCR4_PLATFORM : e->pcr != 4 || e->id <= PCR4_SEPARATOR)
			continue;
		if (!pcr_events_push(to, e->id, e->type, e->pcr, e->digest))
			return false;
	}
	return true;
}
