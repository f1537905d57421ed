/* SPDX-License-Identifier: MIT */
/*
 * Link and unlink ops; nothing is allocated here. An op without `abort` is finished. To finish or
 * cancel it again is a bug of its implementer and aborts the process.
 */
#include "config.h"

#include "tec/loop/op.h"

#include "tec/base/mem.h"

/* The newest op is the head of the scope, so that op_scope_cancel() cancels in reverse order of
 * starting. */
void op_begin(struct op *op, struct op_scope *scope, op_abort_fn abort_fn)
{
	if (!abort_fn)
		DIE("an op without abort");
	op->abort = abort_fn;
	op->handle = NULL;
	op->scope = scope;
	scope->n++;
	op->next = scope->head;
	op->prevp = &scope->head;
	if (op->next)
		op->next->prevp = &op->next;
	scope->head = op;
}

/* Clear every link, so that a second end is detected and the owner's handle never dangles. */
void op_finish(struct op *op)
{
	if (!op->abort)
		DIE("an op ended twice");
	*op->prevp = op->next;
	if (op->next)
		op->next->prevp = op->prevp;
	op->scope->n--;
	op->scope = NULL;
	op->next = NULL;
	op->prevp = NULL;
	op->abort = NULL;
	if (op->handle)
		*op->handle = NULL;
	op->handle = NULL;
}

/* An owner that may start a call while one is in flight must cancel the first: overwriting its
 * handle would leave that call without an owner. */
struct op *op_hold(struct op **handle, struct op *op)
{
	if (*handle)
		DIE("a handle already holds a call in flight");
	if (op->handle)
		DIE("a call already has a handle");
	op->handle = handle;
	*handle = op;
	return op;
}

/* Detach before abort, which frees the op. */
static void cancel(struct op *op)
{
	op_abort_fn abort_fn = op->abort;

	op_finish(op);
	abort_fn(op);
}

/* The handle is cleared by op_finish(), so a second op_cancel() has no effect. */
void op_cancel(struct op **handle)
{
	if (*handle)
		cancel(*handle);
}

/* Read the head again each time, because an abort may cancel other ops of the scope. */
void op_scope_cancel(struct op_scope *scope)
{
	while (scope->head)
		cancel(scope->head);
}
