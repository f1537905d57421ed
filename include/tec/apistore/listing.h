/* SPDX-License-Identifier: MIT */
/*
 * The text of a list (apistore/list) in the form that a request asked for. It is produced in pieces
 * and never held as a whole.
 */
#ifndef TEC_APISTORE_LISTING_H
#define TEC_APISTORE_LISTING_H

#include "tec/apistore/list.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/base/body.h"

struct apistore_listing;

/* Start a list with the options in the query of the target, which it takes on success and on
 * failure. NULL: *refused is set. */
struct apistore_listing *apistore_listing_start(struct apistore_objects *s,
	struct apistore_target *take_t, struct apistore_answer *refused) MUST_CHECK;
void apistore_listing_free(struct apistore_listing *l); /* NULL is fine */
/* Append whole items, about max bytes. 1: call again; 0: the list is complete; -1: the database
 * failed, and the text so far is not a complete list. */
int apistore_listing_pull(
	struct apistore_listing *l, struct body *out, size_t max, struct err *err) MUST_CHECK;

#endif
