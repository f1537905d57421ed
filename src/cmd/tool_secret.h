/* SPDX-License-Identifier: MIT */
/* What tecctl reads from a Secret: certificates, never a key. */
#ifndef TEC_CMD_TOOL_SECRET_H
#define TEC_CMD_TOOL_SECRET_H

#include "tool_session.h"

#include "tec/base/str.h"
#include "tec/model/cluster.h"

/* Appends data.MEMBER ("ca.crt"). */
int tool_secret_member(struct tool *t, const char *name, const char *member, struct strbuf *out,
	struct err *err) MUST_CHECK;

/* Appends ca.crt as nodes are told to trust it: certificates only, and only those that
 * spec.tls.caSHA256 lists, if it lists any. */
int tool_secret_ca(struct tool *t, const struct model_cluster *c, const char *secret,
	struct strbuf *out, struct err *err) MUST_CHECK;

#endif
