/* SPDX-License-Identifier: MIT */
/* What a person can do about a condition that is not True, looked up by object kind and reason. */
#ifndef TEC_SHOW_ADVICE_H
#define TEC_SHOW_ADVICE_H

#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/show/world.h"

/* Appends one sentence of advice with name inserted for the object. false: the reason is unknown
 * or needs no action; nothing is appended. */
bool show_advice(enum show_kind kind, const char *reason, const char *name, struct strbuf *out);
/* Whether the reason resolves without action: it is shown as waiting, not as an error. */
bool show_passes(enum show_kind kind, const char *reason);

#endif
