/* SPDX-License-Identifier: MIT */
/* What the tool reads of a Secret: certificates, never a key. */
#ifndef TEC_CMD_TOOL_SECRET_H
#define TEC_CMD_TOOL_SECRET_H

#include "tool.h"

#include "tec/base/str.h"

/* Appends data.MEMBER ("ca.crt"). */
int tool_secret_member(struct tool *t, const char *name, const char *member, struct strbuf *out,
	struct err *err) MUST_CHECK;

#endif
