/* SPDX-License-Identifier: MIT */
/*
 * Lists: the objects that a target selects, as of one resourceVersion, ordered by namespace and
 * name. The text is produced in pieces and never held as a whole. All pages of a list (limit,
 * continue) show the same version as long as the history holds it.
 */
#ifndef TEC_APISTORE_LIST_H
#define TEC_APISTORE_LIST_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/base/body.h"

struct apistore_listing;

/* Start a list. It takes the target on success and on failure. NULL: *refused is set. */
struct apistore_listing *apistore_list_new(struct apistore_objects *s,
	struct apistore_target *take_t, struct apistore_answer *refused);
/* The same as ADDED watch events, one per item, as of version `at`: the initial events of a watch.
 * The target is borrowed and must outlive the listing. */
struct apistore_listing *apistore_list_events(
	struct apistore_objects *s, const struct apistore_target *t, uint64_t at);
void apistore_list_free(struct apistore_listing *l);           /* NULL is fine */
bool apistore_list_is_empty(const struct apistore_listing *l); /* no item was produced so far */
/* Append whole items, about max bytes. 1: call again; 0: the list is complete; -1: the database
 * failed, and the text so far is not a complete list. */
int apistore_list_pull(
	struct apistore_listing *l, struct body *out, size_t max, struct err *err) MUST_CHECK;

#endif
