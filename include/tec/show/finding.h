/* SPDX-License-Identifier: MIT */
/* The findings of a system check, one line each: what was checked, whether it is good, and what
 * to do. Used by tecctl doctor and tecctl bootstrap check. */
#ifndef TEC_SHOW_FINDING_H
#define TEC_SHOW_FINDING_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/show/world.h"

enum show_is { SHOW_IS_OK, SHOW_IS_NOTE, SHOW_IS_NO };

struct show_findings {
	struct json_object *all; /* owned array of {check, is, text, next}, in order */
	unsigned n_no;           /* findings with SHOW_IS_NO: the check failed */
	/* Called once for each finding as it is added; may be NULL. The finding is borrowed. */
	void (*said)(void *arg, struct json_object *finding);
	void *arg;
};

void show_findings_init(struct show_findings *f);
void show_findings_fini(struct show_findings *f);
/* Adds a finding. next is the advice; NULL: no action is needed. */
void show_found(struct show_findings *f, enum show_is is, const char *what, const char *next,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
/* Appends a finding as one line for people, without the newline. */
void show_finding_line(struct json_object *finding, bool colours, struct strbuf *out);

/* Adds a condition of the TrustedExecutionCluster; adds nothing if it has none of this type. */
void show_found_condition(struct show_findings *f, struct json_object *cluster, const char *type);
/* Adds who holds the operator's Lease. lease NULL: why it could not be read; ERR_NOT_FOUND: there is
 * none. */
void show_found_leader(
	struct show_findings *f, struct json_object *lease, const struct err *why, int64_t now_s);
/* Adds how many Pods of the operator's Deployment are ready. */
void show_found_pods(struct show_findings *f, struct json_object *deployment);
/* Adds whether the server's APIResourceList (NULL: empty) has our four kinds. false: one is
 * missing. */
bool show_found_kinds(struct show_findings *f, struct json_object *resources);
/* Adds how many images are in force; adds nothing if their list could not be read. */
void show_found_images(struct show_findings *f, const struct show_world *w);
/* Adds whether the operator has observed the current generation. */
void show_found_observed(struct show_findings *f, struct json_object *cluster);
/* Adds when the certificate in a Secret expires; a note from 30 days before. */
void show_found_end(struct show_findings *f, const char *what, const char *secret, int64_t end_s,
	int64_t now_s);

#endif
