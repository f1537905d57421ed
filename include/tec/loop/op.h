/* SPDX-License-Identifier: MIT */
/*
 * struct op: an asynchronous call. Every asynchronous function follows these rules:
 *  - `done` runs exactly once, from the loop, and never before the starting function has returned,
 *    even if the result is already known;
 *  - after op_cancel() or op_scope_cancel() `done` never runs;
 *  - the op leaves its scope and clears the owner's handle before `done`, so that `done` may cancel
 *    other ops or free its owner.
 *
 * The owner embeds `struct op_scope ops`, passes it to the calls it starts, and begins its _free with
 * op_scope_cancel(&self->ops). To cancel a single call, keep a handle: op_hold(&self->get,
 * k8s_call_get(...)), later op_cancel(&self->get).
 *
 * The implementer embeds `struct op` as the FIRST member of its heap-allocated call and provides
 * `abort`, which stops the work and frees the call. On completion it calls op_finish(&call->op); after
 * that it calls done and frees the call.
 */
#ifndef TEC_LOOP_OP_H
#define TEC_LOOP_OP_H

#include <stdbool.h>
#include <stddef.h>

struct op;
typedef void (*op_abort_fn)(struct op *op);

struct op_scope {
	struct op *head; /* linked, not owned: abort frees a call's memory */
	size_t n;
};
#define OP_SCOPE_INIT                                                                              \
	{                                                                                          \
		NULL, 0                                                                            \
	}

struct op {
	struct op_scope *scope;
	struct op *next, **prevp; /* in its scope */
	struct op **handle;       /* where the owner keeps it, or NULL */
	op_abort_fn abort;
};

/* Implementer side. */
void op_begin(struct op *op, struct op_scope *scope, op_abort_fn abort);
void op_finish(
	struct op *op); /* unlinks it and clears the handle; `abort` is not called after this */

/* Owner side. */
struct op *op_hold(struct op **handle, struct op *op); /* asserts that *handle is free */
void op_cancel(struct op **handle);                    /* NULL handle content is fine */
void op_scope_cancel(struct op_scope *scope);
static inline bool op_scope_is_empty(const struct op_scope *scope)
{
	return scope->head == NULL;
}

#endif
