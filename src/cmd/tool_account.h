/* SPDX-License-Identifier: MIT */
/* The account with which another operator reads the cluster that it follows: created at one
 * cluster, given to the other as a kubeconfig in a Secret. Both steps may be repeated. */
#ifndef TEC_CMD_TOOL_ACCOUNT_H
#define TEC_CMD_TOOL_ACCOUNT_H

#include "tool_session.h"

#define TOOL_ACCOUNT        "tec-follow" /* name of the account, and of the Secret */
#define TOOL_ACCOUNT_MEMBER "kubeconfig" /* of the Secret */

/* Creates the account at the server that t uses and appends a kubeconfig with its token, based
 * on the kubeconfig file of t. */
int tool_account_make(struct tool *t, struct strbuf *kubeconfig, struct err *err) MUST_CHECK;
/* Stores the kubeconfig in the Secret at the server that t uses. */
int tool_account_give(struct tool *t, const struct strbuf *kubeconfig, struct err *err) MUST_CHECK;
/* The version of the operator at the server ("0.3.0"); NULL: unknown. The caller frees. -1:
 * interrupted or unreachable. */
int tool_operator_version(struct tool *t, char **version, struct err *err) MUST_CHECK;
/* Seconds by which the server's clock is ahead of ours; 0 also if these credentials may not ask. */
int tool_clock_skew(struct tool *t, int64_t *skew_s, struct err *err) MUST_CHECK;

#endif
