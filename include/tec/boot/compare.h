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
	size_t variant;       /* that matches, or comes closest of those that are accepted */
	struct strbuf report; /* owned; lines */
};
#define BOOT_COMPARISON_INIT                                                                       \
	{                                                                                          \
		false, 0, STRBUF_INIT                                                              \
	}
void boot_comparison_fini(struct boot_comparison *c);
#define cleanup_boot_comparison __attribute__((cleanup(boot_comparison_fini)))

/*
 * Only registers that the variants have are compared; there is at least one variant. A log matches
 * a variant on an accepted path; the others are there to explain with. An empty log matches none:
 * the report then says why it is empty, and what the registers should be.
 */
int boot_compare_log(const struct boot_variants *variants, enum pcr_boot_path accepted,
	const void *log, size_t len, struct boot_comparison *out, struct err *err) MUST_CHECK;
/* Of an image that is refused, and why: what the log tells of the node. It matches nothing. */
int boot_compare_refused(const char *why, const void *log, size_t len, struct boot_comparison *out,
	struct err *err) MUST_CHECK;

#endif
