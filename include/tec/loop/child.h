/* SPDX-License-Identifier: MIT */
/*
 * Run a child process and collect its output: for work that may block (exec credential plugins, TPM
 * access). stdin is /dev/null or `input`. stdout is collected up to `max_out` bytes; if there are
 * more, the child is killed and the error is ERR_INVALID. The last 512 bytes of stderr are added to
 * the error text. The child is killed at the deadline, when the op is cancelled and when this process
 * dies (PDEATHSIG). It starts with an empty signal mask and only descriptors 0-2.
 */
#ifndef TEC_LOOP_CHILD_H
#define TEC_LOOP_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"

struct child_spec {
	const char *file;        /* path to execute; NULL: argv[0], looked up in PATH */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated "NAME=value", added to ours; may be NULL */
	bool bare_env;           /* the child gets only env and does not inherit ours */
	const void *input;       /* may be NULL */
	size_t input_len;
	size_t max_out;       /* bytes of stdout */
	uint32_t deadline_ms; /* from the start; 0: none */
	/* Receives stderr as it arrives, with done's arg; must not cancel the op. The error text then
	 * omits stderr. May be NULL. */
	void (*said)(void *arg, const char *data, size_t len);
};

/* err kind NONE means exit status 0. `out` is borrowed for the call and wiped afterwards, as it may
 * hold a secret. */
typedef void (*child_done_fn)(void *arg, const struct err *err, const char *out, size_t out_len);

/* Copies the spec. A failed fork or exec is reported through done. */
struct op *child_start(struct loop *l, struct op_scope *scope, const struct child_spec *spec,
	child_done_fn done, void *arg);

#endif
