/* SPDX-License-Identifier: MIT */
/* Shared by request.c (reads, creates, and the end of every write), change.c (updates and patches),
 * check.c (what an object may be) and remove.c (deletions). */
#ifndef TEC_APISTORE_WRITE_H
#define TEC_APISTORE_WRITE_H

#include "apistore_internal.h"
#include "tec/apistore/gc.h"
#include "tec/apistore/managed.h"
#include "tec/apistore/request.h"
#include "tec/apistore/status.h"
#include "tec/base/json.h"

/* What becomes of fields that the schema does not know or that are there twice. */
enum apistore_fields { APISTORE_FIELDS_IGNORE, APISTORE_FIELDS_WARN, APISTORE_FIELDS_STRICT };

/* One write under way; was: the object there, NULL without one. */
struct apistore_write {
	struct apistore_objects *s;
	const struct apistore_target *t;
	const struct apistore_kind *kind;
	struct apistore_key key;
	struct json_object *was;
	bool dry;
	bool create;      /* what is there already is not replaced */
	bool has_version; /* a new object that names one: for the store to refuse, as upstream does */
	bool patched;     /* by a patch that is no apply */
	enum apistore_fields fields;
	enum apistore_policy policy;   /* of a deletion */
	struct schema_texts *warnings; /* of its fields and finalizers; added to */
	char manager[APISTORE_MANAGER_MAX + 1];
	bool applied; /* managedFields are there already */
};

/* request.c: the database failed in what was done last. */
struct apistore_answer apistore_write_trouble(struct apistore_objects *s);
/* What a body may be: a few times what our kinds need. */
extern const struct json_limits apistore_write_limits;
/* o's member becomes that of from; it goes when from is NULL or has none. */
void apistore_write_copy(struct json_object *o, struct json_object *from, const char *name);
/* The end of every write that carries an object: keeps what only the server decides, refuses what may
 * not be, stores. */
struct apistore_answer apistore_write_store(
	const struct apistore_write *w, struct json_object *take_o);

/* Who writes. version: the object's apiVersion; now: CLOCK_RFC3339_LEN bytes for the time. */
struct apistore_manager apistore_write_manager(
	const struct apistore_write *w, const char *version, char *now);

/* change.c: PUT and PATCH. The body of a patch, by its content type; NULL: refused says why. */
struct json_object *apistore_change_read(const struct apistore_write *w,
	const struct apistore_request *r, struct apistore_answer *refused);
/* What a patch makes is no object of its kind. */
struct apistore_answer apistore_change_invalid(const char *why);
struct apistore_answer apistore_change(
	const struct apistore_write *w, const struct apistore_request *r, struct json_object *body);

/* check.c: what every object must be, whatever its kind, and where it may be made. -1: refused says
 * why. The first looks at the body as it came: a new object is of the path's kind and version, as all
 * after it goes by the path; a custom resource to be replaced says too which one was seen. The second
 * is asked before the server's own fields are filled in, the third after. */
int apistore_check_version(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_check_object(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_check_meta(const struct apistore_write *w, struct apistore_answer *refused) MUST_CHECK;

/* meta.c: the metadata that a client gives, added to the causes. k may be NULL. The other: what is
 * taken of a custom resource and should not be so. */
void apistore_meta_check(const struct apistore_write *w, const struct schema_kind *k,
	struct json_object *o, struct schema_causes *causes);
void apistore_meta_warn(struct json_object *o, struct schema_texts *out);

/* admit.c: what the schema of the kind makes of an object. Decoding is for built-in kinds, before all
 * else; reading drops what is not known and fills in defaults; checking, at the end, is validation.
 * -1: refused says why. */
int apistore_admit_decode(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_admit_read(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_admit_check(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;

/* options.c: what the query and the body of a DELETE (else not looked at, may be NULL) say of how to
 * write. -1: refused says why. */
int apistore_options_read(struct apistore_write *w, const struct apistore_request *r,
	struct json_object *body, struct apistore_answer *refused) MUST_CHECK;

/* remove.c: one object, or all that the target selects. */
struct apistore_answer apistore_remove_object(
	const struct apistore_write *w, struct json_object *body);
struct apistore_answer apistore_remove_all(const struct apistore_write *w);

#endif
