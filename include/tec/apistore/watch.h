/* SPDX-License-Identifier: MIT */
/*
 * A watch: the changes to what a target selects, from a resourceVersion on, as the lines of a
 * watch's body. It holds a place in the history and nothing else: its owner is told that there may
 * be more and takes as much as it can use, so a client that does not read costs nothing, until its
 * place is compacted away: then it gets 410.
 *
 * The objects are borrowed and outlive the watch.
 */
#ifndef TEC_APISTORE_WATCH_H
#define TEC_APISTORE_WATCH_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/base/body.h"

struct apistore_watch;
/* There may be more to take. From the loop; it takes from a later turn or at once. */
typedef void (*apistore_watch_fn)(void *arg);

/* Takes the target with its resourceVersion, sendInitialEvents and allowWatchBookmarks. NULL:
 * refused says why. The owner takes what there is without being told first. */
struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	struct apistore_target *take_t, apistore_watch_fn ready, void *arg,
	struct apistore_answer *refused);
void apistore_watch_free(struct apistore_watch *w); /* NULL is fine */

enum apistore_watch_next {
	APISTORE_WATCH_IDLE, /* `ready` will say when */
	APISTORE_WATCH_MORE, /* take again */
	APISTORE_WATCH_END,  /* the server closes the stream */
};
/* Appends whole lines, about max bytes. */
enum apistore_watch_next apistore_watch_take(
	struct apistore_watch *w, struct body *out, size_t max);
void apistore_watch_bookmark(struct apistore_watch *w); /* if it asked for them: comes next */

/* To every watch. */
void apistore_watch_bookmark_all(struct apistore_objects *s);
void apistore_watch_end_all(struct apistore_objects *s);
/* Drops the history: older watches and continue tokens get 410. */
void apistore_watch_compact(struct apistore_objects *s);

#endif
