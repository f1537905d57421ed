/* SPDX-License-Identifier: MIT */
/*
 * The text of a watch (store/watch): events as lines of JSON, with objects in the form that the
 * request asked for. A watch that ends early reports the reason in an event of type ERROR.
 */
#ifndef TEC_APIREQ_STREAM_H
#define TEC_APIREQ_STREAM_H

#include "tec/apireq/status.h"
#include "tec/apireq/request_info.h"
#include "tec/store/watch.h"
#include "tec/base/body.h"

struct apireq_stream;

/* Start a watch with the options in the query of the target, which it takes on success and on
 * failure. NULL: *refused is set. The owner starts taking without being told first. */
struct apireq_stream *apireq_stream_new(struct store_objects *s, struct apireq_request_info *take_t,
	store_watch_fn ready, void *arg, struct apireq_answer *refused);
void apireq_stream_free(struct apireq_stream *st); /* NULL is fine */
/* Append whole lines, about max bytes. */
enum store_watch_next apireq_stream_take(struct apireq_stream *st, struct body *out, size_t max);
void apireq_stream_bookmark(
	struct apireq_stream *st); /* send one next, if the client asked for them */

#endif
