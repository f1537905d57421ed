/* SPDX-License-Identifier: MIT */
/*
 * Why a node does not get its disk key, as far as the API shows it: the conditions that must
 * hold, in the order in which they come true, and the last refusals, compared with what is
 * approved.
 */
#ifndef TEC_REPORT_WHY_H
#define TEC_REPORT_WHY_H

#include "tec/base/str.h"
#include "tec/report/world.h"

/* The caller releases the result with json_object_put(). w must hold all lists. */
struct json_object *report_why(const struct report_world *w, struct json_object *machine);
void report_why_text(struct json_object *why, bool colours, struct strbuf *out);

#endif
