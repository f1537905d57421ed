/* SPDX-License-Identifier: MIT */
/*
 * A child process with its output collected: for work that may block (exec credential plugins, TPM
 * access). stdin is /dev/null or `input`; stdout is kept up to `max_out` (more: the child is
 * killed, ERR_INVALID); stderr's last 512 bytes go into the error text. The child is killed at the
 * deadline and when the op is cancelled; it dies with us (PDEATHSIG). The child gets an empty
 * signal mask and only descriptors 0-2.
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
	const char *file;        /* what is executed; NULL: argv[0], looked up in PATH */
	const char *const *argv; /* NULL-terminated */
	const char *const *env;  /* NULL-terminated "NAME=value" added to ours; may be NULL */
	bool bare_env;           /* env is all the child gets, nothing of ours */
	const void *input;       /* may be NULL */
	size_t input_len;
	size_t max_out;
	uint32_t deadline_ms;
	/* Gets what it writes to stderr as it comes, with done's arg, and may not end the op; then the
	 * error text has none of it. NULL: nobody does. */
	void (*said)(void *arg, const char *data, size_t len);
};

/* err kind NONE: exit status 0. `out` is borrowed for the call and may hold a secret: wiped
 * afterwards. */
typedef void (*child_done_fn)(void *arg, const struct err *err, const char *out, size_t out_len);

/* Copies spec. A failed fork or exec is reported through done. */
struct op *child_start(struct loop *l, struct op_scope *scope, const struct child_spec *spec,
	child_done_fn done, void *arg);

#endif
