/* SPDX-License-Identifier: MIT */
/*
 * The whole system at a glance. The findings are one JSON document, which -o json prints; the
 * text for people is rendered from that document alone.
 */
#ifndef TEC_SHOW_STATUS_H
#define TEC_SHOW_STATUS_H

#include "tec/base/str.h"
#include "tec/show/text.h"
#include "tec/show/world.h"

/* The caller releases the document with json_object_put(). */
struct json_object *show_status(const struct show_world *w);
void show_status_text(struct json_object *status, bool colours, struct strbuf *out);

/*
 * The state of an object in one word: "Ready", or the reason of the first condition that is not
 * True, in the order in which they become true (of a Machine: KeyReady, AttestationKeyBound,
 * Delivered). Both strings are borrowed from the object; message may be NULL.
 */
struct show_state {
	const char *word, *message;
	enum { SHOW_STATE_GOOD, SHOW_STATE_PASSES, SHOW_STATE_ACT } how;
};
struct show_state show_state_of(enum show_kind kind, struct json_object *o);
/* By the word alone, as documents carry no more than that. */
enum show_colour show_state_colour(enum show_kind kind, const char *word);
/* Of a condition: its status, or whether its reason resolves without action. */
enum show_colour show_condition_colour(enum show_kind kind, struct json_object *condition);

#endif
