/* SPDX-License-Identifier: MIT */
/*
 * Why a node does not get its disk key, as far as the API can say: what has to be so, in the order in
 * which it comes about, and the last refusals, compared with what is approved.
 */
#ifndef TEC_SHOW_WHY_H
#define TEC_SHOW_WHY_H

#include "tec/base/str.h"
#include "tec/show/world.h"

/* The caller puts it. Needs every list of the world. */
struct json_object *show_why(const struct show_world *w, struct json_object *machine);
void show_why_text(struct json_object *why, bool colours, struct strbuf *out);

#endif
