/* SPDX-License-Identifier: MIT */
/* Private to the store: struct store_objects, and what its modules share. */
#ifndef TEC_STORE_INTERNAL_H
#define TEC_STORE_INTERNAL_H

#include "tec/store/objects.h"
#include "tec/loop/timer.h"

TAILQ_HEAD(store_waits, store_wait);

/* A watch, to be woken when a transaction has ended. changed: the resources with new committed
 * versions; none: it was rolled back. wake may free its own watcher, but no other. */
struct store_watcher {
	LIST_ENTRY(store_watcher) link; /* in s->watchers */
	void (*wake)(struct store_watcher *w, char *const *changed, size_t n);
};
LIST_HEAD(store_watchers, store_watcher);

/* The garbage collector, as writes see it. */
struct store_collector {
	/* Something was written that may need collection: an object with these owners, or one that
	 * was deleted (gone: its uid). */
	void (*note)(struct store_collector *c, const struct store_key *key, const char *gone,
		const char *const *owners, size_t n);
	/* The transaction was rolled back, and notes of it may be wrong. */
	void (*undone)(struct store_collector *c);
};

struct store_objects {
	struct store_db *db;
	const struct store_schema *schema; /* borrowed */
	struct loop *loop;                 /* borrowed; NULL: none */
	struct defer commit;
	struct timer settle, compact, reseal;
	bool open;          /* a transaction is open: this turn has written */
	struct err doomed;  /* set: the open transaction will be rolled back, for this reason */
	struct err trouble; /* the last database failure not yet reported */
	uint64_t committed; /* the newest version that watches may see */
	uint64_t mark;      /* the next compaction drops the history before it */
	char **changed;     /* resources written in the open transaction; owned */
	size_t n_changed;
	struct store_waits waits, ringing;
	struct store_watchers watchers;    /* borrowed */
	struct store_collector *collector; /* borrowed; NULL: collection runs only when called */
};

/* A pseudo owner uid, stored with an object whose deletion waits for garbage collection. */
#define STORE_DELETING "!deleting"

/* Begin this turn's transaction unless it is open. -1: the database failed, which is noted. */
int store_objects_begin(struct store_objects *s) MUST_CHECK;
/* Note that the open transaction wrote an object of this resource, so its watches are woken. */
void store_objects_changed(struct store_objects *s, const char *resource);
void store_objects_keep_history_from(struct store_objects *s, uint64_t rv);

#endif
