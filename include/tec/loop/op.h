/* SPDX-License-Identifier: MIT */
/*
 * struct op: a call that ends later. Rules every async function keeps:
 *  - `done` runs exactly once, from the loop, never before the starting call returned, even if the
 * answer is known;
 *  - after op_cancel() or op_scope_cancel() it never runs;
 *  - the op leaves its scope and clears the owner's handle before `done`, so `done` may cancel
 * siblings or free its owner.
 *
 * Owner: embeds `struct op_scope ops`, starts calls with it, begins its _free with
 * op_scope_cancel(&self->ops). To cancel one call, keep a handle: op_hold(&self->get,
 * k8s_call_get(...)); later op_cancel(&self->get).
 *
 * Implementer: embeds `struct op` as FIRST member of its heap-allocated call and provides `abort`,
 * which stops the work and frees the call. On completion it calls op_finish(&call->op), then done,
 * and frees the call (in any order after op_finish).
 */
#ifndef TEC_LOOP_OP_H
#define TEC_LOOP_OP_H

#include <stdbool.h>
#include <stddef.h>

struct op;
typedef void (*op_abort_fn)(struct op *op);

struct op_scope {
	struct op *head; /* the scope does not own the calls' memory; abort frees it */
	size_t n;
};
#define OP_SCOPE_INIT                                                                              \
	{                                                                                          \
		NULL, 0                                                                            \
	}

struct op {
	struct op_scope *scope;
	struct op *next, **prevp; /* in its scope */
	struct op **handle;       /* the owner's copy, or NULL */
	op_abort_fn abort;
};

/* Implementer side. */
void op_begin(struct op *op, struct op_scope *scope, op_abort_fn abort);
void op_finish(struct op *op); /* unlinks, clears the handle; `abort` will not be called any more */

/* Owner side. */
struct op *op_hold(struct op **handle, struct op *op); /* asserts that *handle is free */
void op_cancel(struct op **handle);                    /* NULL handle content is fine */
void op_scope_cancel(struct op_scope *scope);
static inline bool op_scope_is_empty(const struct op_scope *scope)
{
	return scope->head == NULL;
}

#endif
