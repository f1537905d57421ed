/* SPDX-License-Identifier: MIT */
/*
 * Compares a node's TCG2 event log with what an image should have measured, for finding out why a
 * node is refused. Bytes in, an answer for people out; what the log says is escaped. A log that
 * is damaged is ERR_INVALID; one that differs is not an error.
 */
#ifndef TEC_BOOT_COMPARE_H
#define TEC_BOOT_COMPARE_H

#include "tec/boot/predict.h"

struct boot_comparison {
	bool matches;
	size_t variant;       /* that matches, or comes closest */
	struct strbuf report; /* owned; lines */
};
#define BOOT_COMPARISON_INIT                                                                       \
	{                                                                                          \
		false, 0, STRBUF_INIT                                                              \
	}
void boot_comparison_fini(struct boot_comparison *c);
#define cleanup_boot_comparison __attribute__((cleanup(boot_comparison_fini)))

/* Only registers that the variants have are compared; there is at least one variant. */
int boot_compare_log(const struct boot_variants *variants, const void *log, size_t len,
	struct boot_comparison *out, struct err *err) MUST_CHECK;

#endif
