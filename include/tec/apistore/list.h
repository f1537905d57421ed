/* SPDX-License-Identifier: MIT */
/*
 * A list: the objects that a target selects, as of one resourceVersion, in order of namespace and
 * name, as text in pieces: nothing of it is kept. Pages (limit, continue) are cut from the same
 * version as long as the history has it.
 */
#ifndef TEC_APISTORE_LIST_H
#define TEC_APISTORE_LIST_H

#include "tec/apistore/objects.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/base/body.h"

struct apistore_listing;

/* Takes the target. NULL: refused says why. */
struct apistore_listing *apistore_list_new(struct apistore_objects *s,
	struct apistore_target *take_t, struct apistore_answer *refused);
/* The items alone as watch events of this type, as of version `at`. Takes selectors etc. as above
 * from a target that stays with the caller. */
struct apistore_listing *apistore_list_events(
	struct apistore_objects *s, const struct apistore_target *t, uint64_t at);
void apistore_list_free(struct apistore_listing *l);           /* NULL is fine */
bool apistore_list_is_empty(const struct apistore_listing *l); /* nothing was given out so far */
/* Appends about max bytes, whole items. 1: there is more; 0: that was the end; -1: the database
 * failed, and what was given out is not a list. */
int apistore_list_pull(
	struct apistore_listing *l, struct body *out, size_t max, struct err *err) MUST_CHECK;

#endif
