/* SPDX-License-Identifier: MIT */
/*
 * A watch: the changes to what a target selects, from a resourceVersion on, as the lines of a
 * watch's body. The history is kept as long as the objects, or until it is compacted.
 *
 * The callbacks come from within the write that made the change (and from apistore_watch_new for
 * those that were there): they note what they are given and call nothing here. The objects are
 * borrowed and outlive the watch.
 */
#ifndef TEC_APISTORE_WATCH_H
#define TEC_APISTORE_WATCH_H

#include "tec/apistore/objects.h"
#include "tec/apistore/target.h"

struct apistore_watch;
struct apistore_watch_ops {
	void (*line)(void *arg, const char *line, size_t len); /* with its newline */
	void (*end)(void *arg);                                /* the server closes the stream */
};

/* The target is taken, and emptied. The first line is an ERROR event with code 410, and then the
 * end, when rv is older than the history. ops is borrowed. */
struct apistore_watch *apistore_watch_new(struct apistore_objects *s,
	struct apistore_target *take_t, uint64_t rv, const struct apistore_watch_ops *ops,
	void *arg);
void apistore_watch_free(struct apistore_watch *w); /* NULL is fine */
void apistore_watch_bookmark(struct apistore_watch *w);

/* To every watch. */
void apistore_watch_bookmark_all(struct apistore_objects *s);
void apistore_watch_end_all(struct apistore_objects *s);
/* Drops the history: older watches and continue tokens get 410. */
void apistore_watch_compact(struct apistore_objects *s);

#endif
