/* SPDX-License-Identifier: MIT */
/* Shared by request.c (reads, and the writes that carry an object), check.c (what such an object may
 * be) and remove.c (deletions). */
#ifndef TEC_APISTORE_WRITE_H
#define TEC_APISTORE_WRITE_H

#include "apistore_internal.h"
#include "tec/apistore/status.h"

/* One write under way; was: the object there, NULL without one. */
struct apistore_write {
	struct apistore_objects *s;
	const struct apistore_target *t;
	const struct apistore_kind *kind;
	struct apistore_key key;
	struct json_object *was;
	bool dry;
};

/* request.c: the database failed in what was done last. */
struct apistore_answer apistore_write_trouble(struct apistore_objects *s);

/* check.c: what every object must be, whatever its kind, and where it may be made. -1: refused says
 * why. The first is asked before the server's own fields are filled in, the second after. */
int apistore_check_object(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_check_meta(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;

/* remove.c: one object, or all that the target selects. */
struct apistore_answer apistore_remove_object(
	const struct apistore_write *w, struct json_object *body);
struct apistore_answer apistore_remove_all(
	const struct apistore_write *w, struct json_object *body);

#endif
