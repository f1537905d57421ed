/* SPDX-License-Identifier: MIT */
/*
 * The TCG2 binary event log (TCG PFP section 10: a TCG_PCR_EVENT header with Spec ID, then
 * TCG_PCR_EVENT2), as found in /sys/kernel/security/tpm0/binary_bios_measurements.
 */
#ifndef TEC_PCR_EVENTLOG_H
#define TEC_PCR_EVENTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"
#include "tec/base/str.h"

struct eventlog {
	const uint8_t *data; /* borrowed */
	size_t len, pos;
	unsigned n_algs;
	struct {
		uint16_t id, size;
	} alg[8];
};
#define EVENTLOG_NO_ACTION   3u /* EV_NO_ACTION: informative, extends nothing */
#define EVENTLOG_SEPARATOR   4u
#define EVENTLOG_OMITTED     0x12u       /* EV_OMIT_BOOT_DEVICE_EVENTS */
#define EVENTLOG_VARIABLE    0x80000001u /* EV_EFI_VARIABLE_DRIVER_CONFIG */
#define EVENTLOG_APPLICATION 0x80000003u
#define EVENTLOG_DRIVER      0x80000004u
#define EVENTLOG_ACTION      0x80000007u
#define EVENTLOG_AUTHORITY   0x800000e0u
struct eventlog_event {
	uint32_t pcr;  /* below 24; any value with EV_NO_ACTION */
	uint32_t type; /* EV_* number */
	uint8_t sha256[SHA256_LEN];
	const uint8_t *data;
	uint32_t len;
};
/* Read the header. ERR_INVALID: damaged, in the SHA-1 format, or without a SHA-256 bank. */
int eventlog_open(const void *data, size_t len, struct eventlog *out, struct err *err) MUST_CHECK;
/* Read the next event. Return 1 for an event, 0 at the end, -1 if the log is damaged; it must not
 * be read further then. The header is not returned as an event. */
int eventlog_next(struct eventlog *log, struct eventlog_event *out, struct err *err) MUST_CHECK;
const char *eventlog_type_name(uint32_t type); /* "EV_SEPARATOR"; "EV_?" */
/* Append a description of the event's data for people: one printable line. EVENTLOG_BUILT_IN: of a
 * program in a firmware volume. */
#define EVENTLOG_BUILT_IN "a program of the firmware"
void eventlog_describe(const struct eventlog_event *e, struct strbuf *out);

#endif
