/* SPDX-License-Identifier: MIT */
/* Whose dependents gc.c has to look at: uids of owners that went, or were not there when named. */
#ifndef TEC_APISTORE_MISSING_H
#define TEC_APISTORE_MISSING_H

#include <sys/queue.h>

#include "tec/apistore/db.h"

TAILQ_HEAD(apistore_missing, apistore_missing_owner);

void apistore_missing_init(struct apistore_missing *m);
void apistore_missing_fini(struct apistore_missing *m);
/* uid NULL: whichever there are. */
void apistore_missing_add(struct apistore_missing *m, const char *uid);
/* Objects, at most max, that refer to the first owner in the list; it leaves the list after its
 * last one. fn may write, and add owners. How many objects there were, -1. */
int apistore_missing_take(struct apistore_missing *m, struct apistore_db *db, unsigned max,
	apistore_key_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
