/* SPDX-License-Identifier: MIT */
/* The findings of a system check, one line each: what was checked, whether it is good, and what
 * to do. Used by tecctl doctor and tecctl bootstrap check. */
#ifndef TEC_REPORT_FINDING_H
#define TEC_REPORT_FINDING_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/report/world.h"

enum report_is { REPORT_IS_OK, REPORT_IS_NOTE, REPORT_IS_NO };

struct report_findings {
	struct json_object *all; /* owned array of {check, is, text, next}, in order */
	unsigned n_no;           /* findings with REPORT_IS_NO: the check failed */
	/* Called once for each finding as it is added; may be NULL. The finding is borrowed. */
	void (*said)(void *arg, struct json_object *finding);
	void *arg;
};

void report_findings_init(struct report_findings *f);
void report_findings_fini(struct report_findings *f);
/* Adds a finding. next is the advice; NULL: no action is needed. */
void report_found(struct report_findings *f, enum report_is is, const char *what, const char *next,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Appends a finding as one line for people, without the newline. */
void report_finding_line(struct json_object *finding, bool colours, struct strbuf *out);

/* Adds a condition of the TrustedExecutionCluster; adds nothing if it has none of this type. */
void report_found_condition(
	struct report_findings *f, struct json_object *cluster, const char *type);
/* Adds who holds the operator's Lease. lease NULL: why it could not be read; ERR_NOT_FOUND: there is
 * none. */
void report_found_leader(
	struct report_findings *f, struct json_object *lease, const struct err *why, int64_t now_s);
/* Adds how many Pods of the operator's Deployment are ready. */
void report_found_pods(struct report_findings *f, struct json_object *deployment);
/* Adds whether the server's APIResourceList (NULL: empty) has our four kinds. false: one is
 * missing. */
bool report_found_kinds(struct report_findings *f, struct json_object *resources);
/* Adds how many images are in force; adds nothing if their list could not be read. */
void report_found_images(struct report_findings *f, const struct report_world *w);
/* Adds whether the operator has observed the current generation. */
void report_found_observed(struct report_findings *f, struct json_object *cluster);
/* Adds when the certificate in a Secret expires; a note from 30 days before. */
void report_found_end(struct report_findings *f, const char *what, const char *secret,
	int64_t end_s, int64_t now_s);

#endif
