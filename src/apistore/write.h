/* SPDX-License-Identifier: MIT */
/* Shared by request.c (reads, creates, and the end of every write), change.c (updates and patches),
 * check.c, meta.c and admit.c (validation), options.c and remove.c (deletions). */
#ifndef TEC_APISTORE_WRITE_H
#define TEC_APISTORE_WRITE_H

#include "tec/apistore/gc.h"
#include "tec/apistore/managed.h"
#include "tec/apistore/request.h"
#include "tec/apistore/status.h"
#include "tec/base/json.h"

/* fieldValidation: what to do about unknown and duplicate fields. */
enum apistore_fields { APISTORE_FIELDS_IGNORE, APISTORE_FIELDS_WARN, APISTORE_FIELDS_STRICT };

/* One write in progress. was: the current object, NULL if there is none. */
struct apistore_write {
	struct apistore_objects *s;
	const struct apistore_target *t;
	const struct apistore_kind *kind;
	struct apistore_key key;
	struct json_object *was;
	bool dry;
	bool create;      /* must not replace an existing object */
	bool has_version; /* a create with a resourceVersion, refused late as in kube-apiserver */
	bool patched;     /* a patch other than apply */
	enum apistore_fields fields;
	enum apistore_policy policy;   /* of a deletion */
	struct schema_texts *warnings; /* borrowed; added to */
	char manager[APISTORE_MANAGER_MAX + 1];
	bool applied; /* an apply, which has set managedFields */
};

/* request.c: the answer after a database failure. */
struct apistore_answer apistore_write_trouble(struct apistore_objects *s);
/* Limits of a body: a few times what our kinds need. */
extern const struct json_limits apistore_write_limits;
/* Set a member of o to that of from; remove it if from is NULL or lacks it. */
void apistore_write_copy(struct json_object *o, struct json_object *from, const char *name);
/* The end of every write except a deletion: restore what only the server sets, validate, store. */
struct apistore_answer apistore_write_store(
	const struct apistore_write *w, struct json_object *take_o);

/* Describe the field manager. version: the object's apiVersion; now: a buffer of CLOCK_RFC3339_LEN
 * bytes, which the result borrows. */
struct apistore_manager apistore_write_manager(
	const struct apistore_write *w, const char *version, char *now);

/* change.c: parse the body of a patch by its content type. NULL: *refused is set. */
struct json_object *apistore_change_read(const struct apistore_write *w,
	const struct apistore_request *r, struct apistore_answer *refused);
/* The answer if the result of a patch is not an object of its kind. */
struct apistore_answer apistore_change_invalid(const char *why);
struct apistore_answer apistore_change(
	const struct apistore_write *w, const struct apistore_request *r, struct json_object *body);

/* check.c: checks that hold for every kind. -1: *refused is set. The first checks the body as
 * received: its kind and version must be those of the path, and a PUT of a custom resource must
 * name the version it replaces. The second runs before the server fills in its fields, the third
 * after. */
int apistore_check_version(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_check_object(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_check_meta(const struct apistore_write *w, struct apistore_answer *refused) MUST_CHECK;

/* meta.c: validate the metadata and add errors to causes; k may be NULL. The second adds warnings
 * about metadata of custom resources that is accepted but discouraged. */
void apistore_meta_check(const struct apistore_write *w, const struct schema_kind *k,
	struct json_object *o, struct schema_causes *causes);
void apistore_meta_warn(struct json_object *o, struct schema_texts *out);

/* admit.c: apply the schema of the kind. Decoding comes first and checks types; reading prunes
 * unknown fields and sets defaults; checking, at the end, validates. -1: *refused is set. */
int apistore_admit_decode(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_admit_read(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;
int apistore_admit_check(const struct apistore_write *w, struct json_object *o,
	struct apistore_answer *refused) MUST_CHECK;

/* options.c: read the options of a write from the query, and from the body of a DELETE (of other
 * methods it is not read and may be NULL). -1: *refused is set. */
int apistore_options_read(struct apistore_write *w, const struct apistore_request *r,
	struct json_object *body, struct apistore_answer *refused) MUST_CHECK;

/* remove.c: delete one object, or all that the target selects. */
struct apistore_answer apistore_remove_object(
	const struct apistore_write *w, struct json_object *body);
struct apistore_answer apistore_remove_all(const struct apistore_write *w);

#endif
