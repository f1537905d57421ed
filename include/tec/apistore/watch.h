/* SPDX-License-Identifier: MIT */
/*
 * A watch: changes to the objects that a target selects, from a resourceVersion on, as lines of
 * JSON. It is only a position in the history. Its owner is told when there may be more and takes as
 * much as it can use, so a client that does not read costs no memory. It gets 410 once its position
 * is compacted away.
 *
 * The objects are borrowed and must outlive the watch.
 */
#ifndef TEC_APISTORE_WATCH_H
#define TEC_APISTORE_WATCH_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/base/body.h"

struct apistore_watch;
/* There may be more to take. Called from the loop. The owner may take at once or in a later turn,
 * and may free its watch, but no other. */
typedef void (*apistore_watch_fn)(void *arg);

/* Start a watch with the options in the query of the target, which it takes on success and on
 * failure. NULL: *refused is set. The owner starts taking without being told first. */
struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	struct apistore_target *take_t, apistore_watch_fn ready, void *arg,
	struct apistore_answer *refused);
void apistore_watch_free(struct apistore_watch *w); /* NULL is fine */

enum apistore_watch_next {
	APISTORE_WATCH_IDLE, /* nothing now; `ready` will be called */
	APISTORE_WATCH_MORE, /* take again */
	APISTORE_WATCH_END,  /* close the stream */
};
/* Append whole lines, about max bytes. */
enum apistore_watch_next apistore_watch_take(
	struct apistore_watch *w, struct body *out, size_t max);
void apistore_watch_bookmark(
	struct apistore_watch *w); /* send one next, if the client asked for them */

/* The same for every watch of these objects. */
void apistore_watch_bookmark_all(struct apistore_objects *s);
void apistore_watch_end_all(struct apistore_objects *s);
/* Drop the whole history: watches and continue tokens get 410. For tests. */
void apistore_watch_compact(struct apistore_objects *s);

#endif
