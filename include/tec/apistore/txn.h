/* SPDX-License-Identifier: MIT */
/*
 * The transaction of a turn of the loop. All writes in one turn share it, and it is committed in
 * the next turn. Reads see these writes at once, but answers and watches must not show them before
 * the commit: apistore_objects_when_stored() calls back after it, or after its failure. A failed
 * commit restores the state before the turn, and later writes are attempted as usual.
 */
#ifndef TEC_APISTORE_TXN_H
#define TEC_APISTORE_TXN_H

#include <stdbool.h>
#include <sys/queue.h>

#include "tec/base/err.h"
#include "tec/loop/loop.h"

struct apistore_objects;

/* Commit now. 0: all writes are durable. -1: all writes of this turn were rolled back; err says
 * why. */
int apistore_objects_commit(struct apistore_objects *s, struct err *err) MUST_CHECK;

/* A wait for the commit. fn runs once, from the loop, when all earlier writes are stored (err is
 * not set) or were rolled back (err is set). Embedded and zeroed by its owner, who must cancel it
 * before it ends. */
struct apistore_wait {
	TAILQ_ENTRY(apistore_wait) link; /* in s->waits, or in s->ringing */
	struct apistore_objects *s;      /* NULL: not waiting */
	bool ringing;                    /* in s->ringing, whose callbacks are being called */
	struct defer now;                /* calls fn when there was nothing to store */
	void (*fn)(void *arg, const struct err *err);
	void *arg;
};
void apistore_objects_when_stored(struct apistore_objects *s, struct apistore_wait *w,
	void (*fn)(void *arg, const struct err *err), void *arg);
void apistore_wait_cancel(struct apistore_wait *w);

/* Get the last database failure since the previous call. False: there was none. */
bool apistore_objects_trouble(struct apistore_objects *s, struct err *err);
/* Note a database failure: the open transaction will be rolled back. Always returns -1. */
int apistore_objects_failed(struct apistore_objects *s, const struct err *err);
bool apistore_objects_is_open(const struct apistore_objects *s); /* this turn has written */
/* Start sealing all rows again in the background, after the database key changed. */
void apistore_objects_reseal(struct apistore_objects *s);

#endif
