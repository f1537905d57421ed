/* SPDX-License-Identifier: MIT */
/*
 * The text of a watch (apistore/watch): events as lines of JSON, with objects in the form that the
 * request asked for. A watch that ends early reports the reason in an event of type ERROR.
 */
#ifndef TEC_APISTORE_STREAM_H
#define TEC_APISTORE_STREAM_H

#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/apistore/watch.h"
#include "tec/base/body.h"

struct apistore_stream;

/* Start a watch with the options in the query of the target, which it takes on success and on
 * failure. NULL: *refused is set. The owner starts taking without being told first. */
struct apistore_stream *apistore_stream_new(struct apistore_objects *s,
	struct apistore_target *take_t, apistore_watch_fn ready, void *arg,
	struct apistore_answer *refused);
void apistore_stream_free(struct apistore_stream *st); /* NULL is fine */
/* Append whole lines, about max bytes. */
enum apistore_watch_next apistore_stream_take(
	struct apistore_stream *st, struct body *out, size_t max);
void apistore_stream_bookmark(
	struct apistore_stream *st); /* send one next, if the client asked for them */

#endif
