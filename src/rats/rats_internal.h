/* SPDX-License-Identifier: MIT */
/* Private to this folder. */
#ifndef TEC_RATS_INTERNAL_H
#define TEC_RATS_INTERNAL_H

#include "tec/base/str.h"

/* Append `before`, then s as a JSON string (evidence.c). */
void rats_write_str(struct strbuf *out, const char *before, const char *s);

#endif
