/* SPDX-License-Identifier: MIT */
/* Signals (SIGTERM, SIGINT, SIGHUP) delivered as calls from the loop. */
#ifndef TEC_LOOP_SIGNAL_H
#define TEC_LOOP_SIGNAL_H

#include "tec/loop/loop.h"

struct loop_signal;
typedef void (*loop_signal_fn)(int signo, void *arg);

struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_signal_fn fn, void *arg);
void loop_signal_free(struct loop_signal *s); /* NULL is fine */
void loop_ignore_sigpipe(void);

#endif
