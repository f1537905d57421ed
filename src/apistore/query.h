/* SPDX-License-Identifier: MIT */
/* The options of lists and watches in the query of a request, with the refusals of
 * kube-apiserver. */
#ifndef TEC_APISTORE_QUERY_H
#define TEC_APISTORE_QUERY_H

#include "tec/apistore/listing.h"
#include "tec/apistore/status.h"
#include "tec/apistore/watch.h"

/* Start a list. It takes the target on success and on failure. NULL: *refused is set. */
struct apistore_listing *apistore_query_list(struct apistore_objects *s,
	struct apistore_target *take_t, struct apistore_answer *refused);
/* Read the options of a watch; out borrows from t. -1: *refused is set. */
int apistore_query_watch(struct apistore_objects *s, const struct apistore_target *t,
	struct apistore_watch_options *out, struct apistore_answer *refused) MUST_CHECK;

#endif
