/* SPDX-License-Identifier: MIT */
/* The owners whose dependents gc.c must check: uids that were deleted, or did not exist when a
 * reference named them. */
#ifndef TEC_APISTORE_MISSING_H
#define TEC_APISTORE_MISSING_H

#include <sys/queue.h>

#include "tec/apistore/db.h"

TAILQ_HEAD(apistore_missing, apistore_missing_owner);

void apistore_missing_init(struct apistore_missing *m);
void apistore_missing_fini(struct apistore_missing *m);
/* Add an owner; uid NULL: all owners that are missing, whatever their uid. */
void apistore_missing_add(struct apistore_missing *m, const char *uid);
/* Visit the next dependents of the first owner in the list, at most max; the owner is removed after
 * its last one. fn may write and add owners. Returns the number of objects visited, or -1. */
int apistore_missing_take(struct apistore_missing *m, struct apistore_db *db, unsigned max,
	apistore_key_fn fn, void *arg, struct err *err) MUST_CHECK;

#endif
