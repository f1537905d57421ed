/* SPDX-License-Identifier: MIT */
/*
 * struct loop: the single event loop of a process, on top of libevent. All code runs on its thread.
 *
 * The loop keeps timers in its own heap, driven by clock_boot_ms(), so that a test with a fake clock
 * can simulate hours: loop_advance() moves the fake clock from deadline to deadline and runs what is
 * due. defer_call() runs a function in the next turn; it is the only permitted way to call back
 * without delay but after the current function has returned.
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
/* Run one turn: deferred calls, due timers and ready descriptors, waiting at most max_wait_ms for an
 * event. While every turn has deferred calls, descriptors are polled in some turns only. */
void loop_turn(struct loop *l, uint32_t max_wait_ms);
/* Fake clock only: advance by `ms`, stop at every deadline on the way and drain deferred calls there. */
void loop_advance(struct loop *l, uint64_t ms);
/* Run turns without waiting until nothing is deferred, due or ready. */
void loop_drain(struct loop *l);

/* For net/ and loop/ only. */
struct event_base *loop_base(struct loop *l);

/* A deferred call, embedded by its owner, whose _free calls defer_cancel(). defer_call() on a pending
 * one has no effect. */
typedef void (*loop_fn)(void *arg);
struct defer {
	struct loop *loop; /* NULL: not pending */
	struct defer *next, **prevp;
	loop_fn fn;
	void *arg;
};
void defer_call(struct defer *d, struct loop *l, loop_fn fn, void *arg);
void defer_cancel(struct defer *d);

/* Watch a descriptor for readiness (level-triggered, persistent). Used by loop/child, net/httpc and
 * net/h2c. */
struct loop_fd;
typedef void (*loop_fd_fn)(int fd, bool readable, bool writable, void *arg);
struct loop_fd *loop_fd_new(
	struct loop *l, int fd, bool want_read, bool want_write, loop_fd_fn fn, void *arg);
void loop_fd_free(struct loop_fd *f); /* does not close fd; NULL is fine */

#endif
