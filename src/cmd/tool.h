/* SPDX-License-Identifier: MIT */
/* The commands of tecctl: each returns 0, a positive exit status, or -1 with err set. */
#ifndef TEC_CMD_TOOL_H
#define TEC_CMD_TOOL_H

#include "tool_session.h"

int tool_look(struct tool *t, struct err *err); /* status, why, show, explain, and each list */
int tool_machine_delete(struct tool *t, struct err *err);
int tool_approve(struct tool *t, struct err *err);
int tool_deny(struct tool *t, struct err *err);
int tool_rebind(struct tool *t, struct err *err);
int tool_server_lost(struct tool *t, struct err *err);
int tool_image_approve(struct tool *t, struct err *err);
int tool_image_verify(struct tool *t, struct err *err);
int tool_ignition(struct tool *t, struct err *err);
int tool_backup(struct tool *t, struct err *err);
int tool_doctor(struct tool *t, struct err *err);
int tool_bootstrap_check(struct tool *t, struct err *err);
int tool_bootstrap_servers(struct tool *t, struct err *err);
/* These use no server or several, so they are called without tool_connect(). */
int tool_follow(struct tool *t, struct err *err);
int tool_promote(struct tool *t, struct err *err);
int tool_retire(struct tool *t, struct err *err);
int tool_bootstrap_ca(struct tool *t, struct err *err);
int tool_bootstrap_cert(struct tool *t, struct err *err);

#endif
