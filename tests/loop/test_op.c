/* SPDX-License-Identifier: MIT */
/* The rules of asynchronous calls, on a small call whose answer is known at once or after a time.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/loop/op.h"
#include "tec/loop/timer.h"

static struct loop *loop;
static unsigned n_live; /* calls not yet freed */

static void setup(void)
{
	alarm(60); /* ends a test that hangs; Criterion's .timeout leaks in its runner */
	clock_fake_start(1000, 0);
	loop = loop_new();
}

static void teardown(void)
{
	cr_assert_eq(n_live, 0);
	loop_free(loop);
	clock_fake_stop();
}

TestSuite(loop_op, .init = setup, .fini = teardown);

/* ---- an implementer */

typedef void (*call_done_fn)(void *arg, int answer);

struct call {
	struct op op; /* first */
	struct timer timer;
	call_done_fn done;
	void *arg;
	int answer;
};

static void call_free(struct call *c)
{
	timer_fini(&c->timer);
	free(c);
	n_live--;
}

static void call_abort(struct op *op)
{
	call_free((struct call *)op);
}

static void call_finish(void *arg)
{
	struct call *c = arg;

	op_finish(&c->op);
	c->done(c->arg, c->answer);
	call_free(c);
}

static struct op *call_start(
	struct op_scope *scope, unsigned after_ms, int answer, call_done_fn done, void *arg)
{
	struct call *c = xcalloc(1, sizeof(*c));

	n_live++;
	c->done = done;
	c->arg = arg;
	c->answer = answer;
	timer_init(&c->timer, loop, call_finish, c);
	timer_set(&c->timer, after_ms);
	op_begin(&c->op, scope, call_abort);
	return &c->op;
}

/* ---- an owner */

struct owner {
	struct op_scope ops;
	struct op *get, *put;
	unsigned n_done;
	int sum;
	bool free_in_done, cancel_put, start_again;
};

static struct owner *owner_new(void)
{
	return xcalloc(1, sizeof(struct owner));
}

static void owner_free(struct owner *o)
{
	op_scope_cancel(&o->ops);
	cr_assert(op_scope_is_empty(&o->ops));
	cr_assert_null(o->get);
	cr_assert_null(o->put);
	free(o);
}

static void on_done(void *arg, int answer)
{
	struct owner *o = arg;

	o->n_done++;
	o->sum += answer;
	if (answer == 1)
		cr_assert_null(o->get, "the handle is clear before done");
	if (o->cancel_put)
		op_cancel(&o->put);
	if (o->start_again) {
		o->start_again = false;
		op_hold(&o->get,
			call_start(&o->ops, 0, 1, on_done, o)); /* the handle is free again */
	}
	if (o->free_in_done)
		owner_free(o);
}

Test(loop_op, done_never_runs_before_the_call_returned)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o)); /* the answer is known */
	cr_assert_not_null(o->get);
	cr_assert_eq(o->n_done, 0);
	cr_assert(!op_scope_is_empty(&o->ops));
	loop_turn(loop, 0);
	cr_assert_eq(o->n_done, 1);
	cr_assert_null(o->get);
	cr_assert(op_scope_is_empty(&o->ops));
	owner_free(o);
}

Test(loop_op, done_runs_exactly_once)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 10, 1, on_done, o));
	loop_advance(loop, 1000);
	cr_assert_eq(o->n_done, 1);
	op_cancel(&o->get); /* over: nothing to cancel */
	op_scope_cancel(&o->ops);
	loop_advance(loop, 1000);
	cr_assert_eq(o->n_done, 1);
	owner_free(o);
}

Test(loop_op, a_cancelled_call_never_calls_back)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o));
	op_cancel(&o->get);
	cr_assert_null(o->get);
	cr_assert_eq(n_live, 0);
	op_cancel(&o->get);
	loop_advance(loop, 1000);
	cr_assert_eq(o->n_done, 0);
	owner_free(o);
}

Test(loop_op, the_scope_cancels_everything)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o));
	call_start(&o->ops, 5, 2, on_done, o); /* without a handle */
	op_hold(&o->put, call_start(&o->ops, 10, 4, on_done, o));
	op_scope_cancel(&o->ops);
	cr_assert_null(o->get);
	cr_assert_null(o->put);
	cr_assert_eq(n_live, 0);
	loop_advance(loop, 1000);
	cr_assert_eq(o->n_done, 0);
	owner_free(o);
}

Test(loop_op, calls_of_one_scope_end_in_any_order)
{
	struct owner *o = owner_new();

	call_start(&o->ops, 20, 2, on_done, o);
	call_start(&o->ops, 10, 4, on_done, o);
	call_start(&o->ops, 30, 8, on_done, o);
	loop_advance(loop, 10);
	cr_assert_eq(o->sum, 4);
	loop_advance(loop, 10);
	cr_assert_eq(o->sum, 6);
	loop_advance(loop, 10);
	cr_assert_eq(o->sum, 14);
	cr_assert(op_scope_is_empty(&o->ops));
	owner_free(o);
}

Test(loop_op, done_may_cancel_a_sibling_that_is_due)
{
	struct owner *o = owner_new();

	o->cancel_put = true;
	op_hold(&o->get, call_start(&o->ops, 10, 1, on_done, o));
	op_hold(&o->put, call_start(&o->ops, 10, 100, on_done, o));
	loop_advance(loop, 1000);
	cr_assert_eq(o->n_done, 1);
	cr_assert_eq(o->sum, 1);
	owner_free(o);
}

Test(loop_op, done_may_free_its_owner)
{
	struct owner *o = owner_new();

	o->free_in_done = true;
	op_hold(&o->get, call_start(&o->ops, 10, 1, on_done, o));
	op_hold(&o->put, call_start(&o->ops, 10, 2, on_done, o));
	call_start(&o->ops, 10, 2, on_done, o);
	loop_advance(loop, 1000);
	cr_assert_eq(n_live, 0);
}

Test(loop_op, done_may_use_its_handle_again)
{
	struct owner *o = owner_new();

	o->start_again = true;
	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o));
	loop_turn(loop, 0);
	cr_assert_eq(o->n_done, 1);
	cr_assert_not_null(o->get);
	loop_drain(loop);
	cr_assert_eq(o->n_done, 2);
	owner_free(o);
}

Test(loop_op, the_owner_may_die_while_calls_are_in_flight)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 10, 1, on_done, o));
	call_start(&o->ops, 20, 1, on_done, o);
	owner_free(o);
	loop_advance(loop, 1000);
	cr_assert_eq(n_live, 0);
}

Test(loop_op, holding_two_calls_aborts, .signal = SIGABRT)
{
	struct owner *o = owner_new();

	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o));
	op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o));
}

Test(loop_op, two_handles_of_one_call_abort, .signal = SIGABRT)
{
	struct owner *o = owner_new();

	op_hold(&o->put, op_hold(&o->get, call_start(&o->ops, 0, 1, on_done, o)));
}

static void no_abort(struct op *op)
{
}

Test(loop_op, finishing_twice_aborts, .signal = SIGABRT)
{
	struct op_scope scope = OP_SCOPE_INIT;
	struct op op;

	op_begin(&op, &scope, no_abort);
	op_finish(&op);
	op_finish(&op);
}

Test(loop_op, an_op_needs_an_abort, .signal = SIGABRT)
{
	struct op_scope scope = OP_SCOPE_INIT;
	struct op op;

	op_begin(&op, &scope, NULL);
}
