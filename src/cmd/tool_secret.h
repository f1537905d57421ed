/* SPDX-License-Identifier: MIT */
/* What the tool reads of a Secret: certificates, never a key. */
#ifndef TEC_CMD_TOOL_SECRET_H
#define TEC_CMD_TOOL_SECRET_H

#include "tool.h"

#include "tec/base/str.h"
#include "tec/model/cluster.h"

/* Appends data.MEMBER ("ca.crt"). */
int tool_secret_member(struct tool *t, const char *name, const char *member, struct strbuf *out,
	struct err *err) MUST_CHECK;

/* ca.crt of it, as nodes are told to trust it: certificates alone, and where spec.tls.caSHA256 lists some,
 * no other. */
int tool_secret_ca(struct tool *t, const struct model_cluster *c, const char *secret,
	struct strbuf *out, struct err *err) MUST_CHECK;

#endif
