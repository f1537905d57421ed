/* SPDX-License-Identifier: MIT */
/*
 * The text of a list (store/list) in the form that a request asked for. It is produced in pieces
 * and never held as a whole.
 */
#ifndef TEC_APIREQ_LISTING_H
#define TEC_APIREQ_LISTING_H

#include "tec/store/list.h"
#include "tec/apireq/status.h"
#include "tec/apireq/request_info.h"
#include "tec/base/body.h"

struct apireq_listing;

/* Start a list with the options in the query of the target, which it takes on success and on
 * failure. NULL: *refused is set. */
struct apireq_listing *apireq_listing_start(struct store_objects *s,
	struct apireq_request_info *take_t, struct apireq_answer *refused) MUST_CHECK;
void apireq_listing_free(struct apireq_listing *l); /* NULL is fine */
/* Append whole items, about max bytes. 1: call again; 0: the list is complete; -1: the database
 * failed, and the text so far is not a complete list. */
int apireq_listing_pull(
	struct apireq_listing *l, struct body *out, size_t max, struct err *err) MUST_CHECK;

#endif
