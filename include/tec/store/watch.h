/* SPDX-License-Identifier: MIT */
/*
 * A watch: changes to the objects of a resource, from a resourceVersion on. It is only a position
 * in the history. Its owner is told when there may be more and takes as much as it can use, so a
 * client that does not read costs no memory. The watch ends with ERR_GONE once its position is
 * compacted away.
 *
 * The objects are borrowed and must outlive the watch.
 */
#ifndef TEC_STORE_WATCH_H
#define TEC_STORE_WATCH_H

#include "tec/store/objects.h"
#include "tec/store/selector.h"

struct store_watch;
/* There may be more to take. Called from the loop. The owner may take at once or in a later turn,
 * and may free its watch, but no other. */
typedef void (*store_watch_fn)(void *arg);

/* What to watch. Texts and selector are borrowed and must outlive the watch. */
struct store_watch_options {
	const char *resource, *ns;           /* ns NULL: all */
	const struct store_selector *select; /* NULL: all */
	uint64_t at;                         /* all changes after this version */
	bool initial;                        /* give all objects first, instead of `at` */
	bool initial_bookmark;               /* and then a bookmark */
	bool bookmarks;                      /* give those of store_watch_bookmark() */
};
/* The owner starts taking without being told first. */
struct store_watch *store_watch_new(struct store_objects *s, const struct store_watch_options *of,
	store_watch_fn ready, void *arg);
void store_watch_free(struct store_watch *w); /* NULL is fine */

enum store_watch_next {
	STORE_WATCH_IDLE, /* nothing now; `ready` will be called */
	STORE_WATCH_MORE, /* take again */
	STORE_WATCH_END,  /* close the stream */
};
/* Receives what is taken. */
struct store_watch_sink {
	/* A change, or an object that exists (ADDED). An object that no longer matches the selector
	 * is DELETED. False: enough for now. */
	bool (*event)(void *arg, enum store_event type, const struct store_version *v);
	/* All changes up to `at` were given; initial_end: and all objects. */
	void (*bookmark)(void *arg, uint64_t at, bool initial_end);
	void *arg;
};
/* STORE_WATCH_END with err set: the reason. */
enum store_watch_next store_watch_take(
	struct store_watch *w, const struct store_watch_sink *to, struct err *err);
void store_watch_bookmark(struct store_watch *w); /* give one next, if they are wanted */

/* The same for every watch of these objects, or end them all. */
void store_watch_all(struct store_objects *s, bool end);
/* Drop the whole history: watches and continue tokens expire. For tests. */
void store_watch_compact(struct store_objects *s);

#endif
