/* SPDX-License-Identifier: MIT */
/*
 * The whole system at a glance. The findings are one JSON document, which -o json prints; the
 * text for people is rendered from that document alone.
 */
#ifndef TEC_REPORT_STATUS_H
#define TEC_REPORT_STATUS_H

#include "tec/base/str.h"
#include "tec/report/text.h"
#include "tec/report/world.h"

/* The caller releases the document with json_object_put(). */
struct json_object *report_status(const struct report_world *w);
void report_status_text(struct json_object *status, bool colours, struct strbuf *out);

/*
 * The state of an object in one word: "Ready", or the reason of the first condition that is not
 * True, in the order in which they become true (of a Machine: KeyReady, AttestationKeyBound,
 * Delivered). Both strings are borrowed from the object; message may be NULL.
 */
struct report_state {
	const char *word, *message;
	enum { REPORT_STATE_GOOD, REPORT_STATE_PASSES, REPORT_STATE_ACT } how;
};
struct report_state report_state_of(enum report_kind kind, struct json_object *o);
/* By the word alone, as documents carry no more than that. */
enum report_colour report_state_colour(enum report_kind kind, const char *word);
/* Of a condition: its status, or whether its reason resolves without action. */
enum report_colour report_condition_colour(enum report_kind kind, struct json_object *condition);

#endif
