/* SPDX-License-Identifier: MIT */
/*
 * What may come between the firmware and an image's boot loader without being the image's doing, as
 * PCR 4 shows it: boot entries that failed first, and fwupd's program. How far a node may go is
 * asked for; each answer includes those before it. Events in, events out.
 */
#ifndef TEC_PCR_BOOTPATH_H
#define TEC_PCR_BOOTPATH_H

#include "tec/pcr/tpmevent.h"

enum pcr_boot_path {
	PCR_BOOT_STRICT,
	PCR_BOOT_FAILED_ENTRIES,   /* PCR_BOOT_FAILED_MAX entries at most */
	PCR_BOOT_FIRMWARE_UPDATES, /* fwupd's program, of those that the image ships */
};
#define PCR_BOOT_LAST       PCR_BOOT_FIRMWARE_UPDATES
#define PCR_BOOT_FAILED_MAX 2
/* "Strict", "AllowFailedEntries", "AllowFirmwareUpdates"; anything else, and NULL, is Strict. */
enum pcr_boot_path pcr_boot_path_parse(const char *text);
/* What these events need. */
enum pcr_boot_path pcr_boot_path_of(const struct pcr_events *e);

#define PCR_BOOT_CALLING   "Calling EFI Application from Boot Option"
#define PCR_BOOT_RETURNING "Returning from EFI Application from Boot Option"
/* Appends `from` with n boot entries that failed first. False: it does not have a PCR 4 that could,
 * or there would be too many events. */
bool pcr_boot_failed(const struct pcr_events *from, unsigned n, struct pcr_events *to) MUST_CHECK;

#endif
