/* SPDX-License-Identifier: MIT */
/* The account with which another operator reads a cluster that it follows: made at the one, given to the
 * other as a kubeconfig in a Secret. Both may be repeated. */
#ifndef TEC_CMD_TOOL_ACCOUNT_H
#define TEC_CMD_TOOL_ACCOUNT_H

#include "tool.h"

#define TOOL_ACCOUNT        "tec-follow" /* the Secret with the kubeconfig has this name too */
#define TOOL_ACCOUNT_MEMBER "kubeconfig" /* of it */

/* At the server that t uses, from a file's kubeconfig. Appends the kubeconfig, which has a token. */
int tool_account_make(struct tool *t, struct strbuf *kubeconfig, struct err *err) MUST_CHECK;
/* Puts it into the Secret of the server that t uses. */
int tool_account_give(struct tool *t, const struct strbuf *kubeconfig, struct err *err) MUST_CHECK;
/* "0.3.0", of the operator there; NULL: not known. The caller frees. -1: interrupted or unreachable. */
int tool_operator_version(struct tool *t, char **version, struct err *err) MUST_CHECK;
/* By how much the server's clock is ahead of ours. 0 also when these credentials may not ask. */
int tool_clock_skew(struct tool *t, int64_t *skew_s, struct err *err) MUST_CHECK;

#endif
