/* SPDX-License-Identifier: MIT */
/* What a person can do about a condition that is not True, looked up by object kind and reason. */
#ifndef TEC_REPORT_ADVICE_H
#define TEC_REPORT_ADVICE_H

#include <stdbool.h>

#include "tec/base/str.h"
#include "tec/report/world.h"

/* Appends one sentence of advice with name inserted for the object. false: the reason is unknown
 * or needs no action; nothing is appended. */
bool report_advice(enum report_kind kind, const char *reason, const char *name, struct strbuf *out);
/* Whether the reason resolves without action: it is shown as waiting, not as an error. */
bool report_passes(enum report_kind kind, const char *reason);

#endif
