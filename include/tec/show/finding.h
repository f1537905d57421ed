/* SPDX-License-Identifier: MIT */
/* What a check of the system finds, one line each: what was looked at, whether it is as it should be,
 * and what to do. Of tecctl doctor and tecctl bootstrap check. */
#ifndef TEC_SHOW_FINDING_H
#define TEC_SHOW_FINDING_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

enum show_is { SHOW_IS_OK, SHOW_IS_NOTE, SHOW_IS_NO };

struct show_findings {
	struct json_object *all; /* owned: {check, is, text, next}, in order */
	unsigned n_no;
	/* Called for each; NULL: nobody. The finding is borrowed. */
	void (*said)(void *arg, struct json_object *finding);
	void *arg;
};

void show_findings_init(struct show_findings *f);
void show_findings_fini(struct show_findings *f);
/* next NULL: nothing is to be done. */
void show_found(struct show_findings *f, enum show_is is, const char *what, const char *next,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
/* A finding as one line for people, without its end. */
void show_finding_line(struct json_object *finding, bool colours, struct strbuf *out);

/* A condition of the TrustedExecutionCluster; nothing when it has none of this type. */
void show_found_condition(struct show_findings *f, struct json_object *cluster, const char *type);
/* Whether the operator has observed the current generation. */
void show_found_observed(struct show_findings *f, struct json_object *cluster);
/* When the certificate in a Secret ends. */
void show_found_end(struct show_findings *f, const char *what, const char *secret, int64_t end_s,
	int64_t now_s);

#endif
