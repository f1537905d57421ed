/* SPDX-License-Identifier: MIT */
/*
 * What firmware measures before it starts the boot loader: PCR 4 up to there, and PCR 7 up to the
 * first authority (TCG PFP 1.06 sections 3.3.4.5, 3.3.4.8, 8.4.2). Most firmware measures the usual
 * events. File FirmwareEvents of a platform lists those of other firmware, one per line, for PCR 4,
 * PCR 7 or both; a register that is not listed has the usual ones:
 *
 *   4 EV_EFI_ACTION "Booting to Boot0001 Option"
 *   4 EV_OMIT_BOOT_DEVICE_EVENTS "BOOT ATTEMPTS OMITTED"
 *   4 EV_SEPARATOR
 *   4 EV_EFI_BOOT_SERVICES_APPLICATION SHA256 description
 *   7 EV_EFI_VARIABLE_DRIVER_CONFIG dbx
 *   7 EV_EFI_ACTION "DMA Protection Disabled\0"
 *   7 EV_SEPARATOR
 *
 * Texts are measured without a NUL unless they end in \0, separators as four zero bytes. Each
 * register has one separator. PCR 7 lists SecureBoot, PK, KEK, db and dbx, then perhaps dbt and dbr,
 * in this order; their contents are the platform's variables.
 */
#ifndef TEC_MEASURE_FIRMWARE_H
#define TEC_MEASURE_FIRMWARE_H

#include "tec/measure/vars.h"
#include "tec/pcr/tpmevent.h"

#define MEASURE_FIRMWARE_MAX 32

struct measure_firmware_event {
	enum pcr_event_id id; /* of an unusual event in PCR 7: that of the variable before it */
	enum pcr_event_type type;
	unsigned pcr;
	int variable;               /* index in pcr_platform_files; -1: digest and label count */
	uint8_t digest[SHA256_LEN]; /* of a variable: not set */
	char *label;                /* owned; for people, escaped */
};
struct measure_firmware {
	struct measure_firmware_event v[MEASURE_FIRMWARE_MAX];
	size_t n;
	bool usual4;             /* PCR 4 is the usual one */
	const char *application; /* a program of its own, borrowed from v; NULL: none */
};
void measure_firmware_fini(struct measure_firmware *f);
#define cleanup_firmware __attribute__((cleanup(measure_firmware_fini)))

/* Read the events of a platform; vars NULL or without the file: the usual ones. ERR_INVALID names the
 * line. out is initialised. */
int measure_firmware_read(
	const struct measure_vars *vars, struct measure_firmware *out, struct err *err) MUST_CHECK;
/* ERR_INVALID: the firmware starts a program of its own, and AllowFirmwareApplications is not true. */
int measure_firmware_check(const struct measure_firmware *f, const struct measure_vars *vars,
	struct err *err) MUST_CHECK;
/*
 * Read a platform from a log: measure_vars_from_log(), and FirmwareEvents if its firmware measures
 * other than the usual events. Appends lines for people to notes: what was found, and what a
 * platform cannot carry, so that this log will not match.
 */
int measure_firmware_from_log(const void *log, size_t len, struct measure_vars *out,
	struct strbuf *notes, struct err *err) MUST_CHECK;

#endif
