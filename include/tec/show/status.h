/* SPDX-License-Identifier: MIT */
/*
 * The whole system at a glance. What is found is one JSON document, which -o json prints; the text
 * for people is made of that document and of nothing else.
 */
#ifndef TEC_SHOW_STATUS_H
#define TEC_SHOW_STATUS_H

#include "tec/base/str.h"
#include "tec/show/world.h"

/* The caller puts it. */
struct json_object *show_status(const struct show_world *w);
void show_status_text(struct json_object *status, bool colours, struct strbuf *out);

/*
 * In a word: "Ready", or why not. Both are borrowed from the object, message may be NULL. Of a
 * Machine it is the first of KeyReady, AttestationKeyBound and Delivered that is not true.
 */
struct show_state {
	const char *word, *message;
	enum { SHOW_STATE_GOOD, SHOW_STATE_PASSES, SHOW_STATE_ACT } how;
};
struct show_state show_state_of(enum show_kind kind, struct json_object *o);

#endif
