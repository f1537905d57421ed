/* SPDX-License-Identifier: MIT */
/*
 * What PCR 4 may show before an image's boot loader although the image did not cause it: boot
 * entries that failed first, and fwupd's program. The configuration says how much is accepted; each
 * level includes the previous ones. And what it may lack: the call of the boot entry. Events in,
 * events out.
 */
#ifndef TEC_PCR_BOOTPATH_H
#define TEC_PCR_BOOTPATH_H

#include "tec/pcr/tpmevent.h"

enum pcr_boot_path {
	PCR_BOOT_STRICT,
	PCR_BOOT_FAILED_ENTRIES,   /* at most PCR_BOOT_FAILED_MAX entries */
	PCR_BOOT_FIRMWARE_UPDATES, /* one of fwupd's programs that the image ships */
};
#define PCR_BOOT_LAST       PCR_BOOT_FIRMWARE_UPDATES
#define PCR_BOOT_FAILED_MAX 2
/* Parse "Strict", "AllowFailedEntries" or "AllowFirmwareUpdates"; anything else, and NULL, means
 * Strict. */
enum pcr_boot_path pcr_boot_path_parse(const char *text);
/* Return the level that these events require. */
enum pcr_boot_path pcr_boot_path_of(const struct pcr_events *e);

#define PCR_BOOT_CALLING   "Calling EFI Application from Boot Option"
#define PCR_BOOT_RETURNING "Returning from EFI Application from Boot Option"
/* Append `from` as if n boot entries had failed first. False: `from` has no separator in PCR 4, or
 * there would be too many events. */
bool pcr_boot_failed(const struct pcr_events *from, unsigned n, struct pcr_events *to) MUST_CHECK;
/*
 * Firmware need not measure that it calls a boot entry (before PFP 1.06; 12 of 31 logs of real
 * machines lack it). The text is constant and says nothing about what is started, so both forms are
 * accepted. How such firmware measures failed entries is unknown, so those need the call.
 */
bool pcr_boot_is_call(const struct pcr_event *e);
/* Append `from` without the call. False: it has none, or an entry failed first. */
bool pcr_boot_uncalled(const struct pcr_events *from, struct pcr_events *to) MUST_CHECK;
/*
 * Some firmware measures other events before the boot loader: which entry it boots (PFP 1.06), that
 * it omits such events, a program of its own. They belong to the platform, as events Pcr4Platform.
 * Append PCR 4 of `from` as on a platform with these events. Nothing is derived from the result: it
 * has neither the call nor the separator by which the others are made. False: too many events.
 */
bool pcr_boot_on_platform(const struct pcr_events *platform, const struct pcr_events *from,
	struct pcr_events *to) MUST_CHECK;

#endif
