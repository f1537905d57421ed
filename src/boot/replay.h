/* SPDX-License-Identifier: MIT */
/* Private to src/boot: a log's events, where a variant parts from them, and why. */
#ifndef TEC_BOOT_REPLAY_H
#define TEC_BOOT_REPLAY_H

#include "tec/boot/predict.h"

struct replay_event {
	uint32_t pcr, type;
	uint8_t digest[SHA256_LEN];
	struct strbuf text; /* what its data says; nothing that was measured vouches for it */
};
/* All that extended a register, in the order of the log. */
struct replay {
	struct replay_event *v; /* owned */
	size_t n;
};

/* The first one of a register. */
struct boot_difference {
	bool differs;
	unsigned pcr;
	size_t number;                    /* of the event within its register, from 1 */
	size_t expected;                  /* index in the variant; its length: nothing more was */
	const struct replay_event *found; /* NULL: the log has no more */
};

/* closest: the variant that agrees longest, also of those that are not accepted; it may be v.
 * Appends sentences. */
void boot_reason(const struct boot_variant *v, const struct boot_variant *closest,
	const struct replay *r, const struct boot_difference *d, struct strbuf *out);

#endif
