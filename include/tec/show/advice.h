/* SPDX-License-Identifier: MIT */
/* What a person can do about a condition that is not as it should be, from its kind and reason. */
#ifndef TEC_SHOW_ADVICE_H
#define TEC_SHOW_ADVICE_H

#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/show/world.h"

/* Appends one sentence, with name in the place of the object's; false: it is not known, or nothing
 * has to be done. */
bool show_advice(enum show_kind kind, const char *reason, const char *name, struct strbuf *out);
/* Nothing needs to be done but to wait. */
bool show_passes(enum show_kind kind, const char *reason);

#endif
