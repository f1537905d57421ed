/* SPDX-License-Identifier: MIT */
/*
 * Compare a node's TCG2 event log with the prediction for an image, to find out why a node is
 * refused. Bytes in, a report for people out; text from the log is escaped. A damaged log is
 * ERR_INVALID; a log that differs is not an error.
 */
#ifndef TEC_MEASURE_COMPARE_H
#define TEC_MEASURE_COMPARE_H

#include "tec/measure/predict.h"

struct measure_comparison {
	bool matches;
	size_t variant;       /* the one that matches, or the closest accepted one */
	struct strbuf report; /* owned; lines */
};
#define MEASURE_COMPARISON_INIT                                                                    \
	{                                                                                          \
		false, 0, STRBUF_INIT                                                              \
	}
void measure_comparison_fini(struct measure_comparison *c);
#define cleanup_boot_comparison __attribute__((cleanup(measure_comparison_fini)))

/*
 * Only PCRs that the variants contain are compared; at least one variant is required. A log can
 * match only variants on an accepted path; the others help to explain a difference. An empty log
 * matches nothing: the report then explains why it is empty and lists the predicted PCRs.
 */
int measure_compare_log(const struct measure_variants *variants, enum pcr_boot_path accepted,
	const void *log, size_t len, struct measure_comparison *out, struct err *err) MUST_CHECK;
/* For an image that is refused because of `why`: report only what the log shows. Nothing
 * matches. */
int measure_compare_refused(const char *why, const void *log, size_t len,
	struct measure_comparison *out, struct err *err) MUST_CHECK;

#endif
