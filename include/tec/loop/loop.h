/* SPDX-License-Identifier: MIT */
/*
 * struct loop: the one event loop of a process, over libevent. Everything runs on its thread.
 *
 * Timers are kept in a heap here and driven by clock_boot_ms(), so a test with a fake clock can run
 * hours in no time: loop_advance() moves the fake clock from deadline to deadline and runs what is
 * due. loop_defer() runs a function in the next turn: the only legal way to call back "later, but
 * at once".
 */
#ifndef TEC_LOOP_LOOP_H
#define TEC_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct loop;

struct loop *loop_new(void);
void loop_free(struct loop *l); /* asserts that no timer, deferred call, signal or child is left */
void loop_run(struct loop *l);  /* until loop_stop() */
void loop_stop(struct loop *l);
/* One turn: runs deferred calls, due timers and ready descriptors (not in every turn, while calls are
 * deferred in each); waits at most max_wait_ms for
 * something to happen. */
void loop_turn(struct loop *l, uint32_t max_wait_ms);
/* Fake clock only: advances by `ms`, stopping at every deadline on the way, and drains deferred
 * calls at each. */
void loop_advance(struct loop *l, uint64_t ms);
/* Runs turns without waiting until nothing is deferred, due or ready. */
void loop_drain(struct loop *l);

/* For net/ and loop/ only. */
struct event_base *loop_base(struct loop *l);

/* A deferred call. Embedded by its owner; defer_cancel() in the owner's _free. Adding a pending one
 * changes nothing. */
typedef void (*loop_fn)(void *arg);
struct defer {
	struct loop *loop; /* NULL: not pending */
	struct defer *next, **prevp;
	loop_fn fn;
	void *arg;
};
void defer_call(struct defer *d, struct loop *l, loop_fn fn, void *arg);
void defer_cancel(struct defer *d);

/* Readiness of a descriptor (level-triggered, persistent): want_read/want_write. Used by loop/child
 * and net/httpc. */
struct loop_fd;
typedef void (*loop_fd_fn)(int fd, bool readable, bool writable, void *arg);
struct loop_fd *loop_fd_new(
	struct loop *l, int fd, bool want_read, bool want_write, loop_fd_fn fn, void *arg);
void loop_fd_free(struct loop_fd *f); /* does not close fd; NULL is fine */

#endif
