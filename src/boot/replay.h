/* SPDX-License-Identifier: MIT */
/* Private to src/boot: the events of a log, where a variant differs from them, and why. */
#ifndef TEC_BOOT_REPLAY_H
#define TEC_BOOT_REPLAY_H

#include "tec/boot/predict.h"

struct replay_event {
	uint32_t pcr, type;
	uint8_t digest[SHA256_LEN];
	struct strbuf text; /* description of its data; not covered by the digest */
};
/* All events that extended a PCR, in log order. */
struct replay {
	struct replay_event *v; /* owned */
	size_t n;
};

/* The first difference in one PCR. */
struct boot_difference {
	bool differs;
	unsigned pcr;
	size_t number;                    /* of the event within its PCR, from 1 */
	size_t expected;                  /* index in the variant; its length: no further event */
	const struct replay_event *found; /* NULL: the log has no further event */
};

/* Append the likely reason for a difference. closest: the closest variant, including those that are
 * not accepted; it may be v. */
void boot_reason(const struct boot_variant *v, const struct boot_variant *closest,
	const struct replay *r, const struct boot_difference *d, struct strbuf *out);

#endif
