/* SPDX-License-Identifier: MIT */
/*
 * struct apistore_fieldset: a set of paths into an object, as stored in managedFields (FieldsV1). A
 * step of a path is a text: "f:NAME" is a member, "k:{...}" the list element with these keys,
 * "v:VALUE" an element of a set, "i:N" an index. A path and the paths below it can be members of
 * the set independently.
 *
 * Embedded; all-zero is the empty set. It owns all that it holds.
 */
#ifndef TEC_APISTORE_FIELDSET_H
#define TEC_APISTORE_FIELDSET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

struct apistore_step;
struct apistore_fieldset {
	struct apistore_step *at; /* owned; sorted by step after apistore_fieldset_done */
	size_t n;
};
struct apistore_step {
	char *step;  /* owned */
	bool member; /* the path that ends here is in the set */
	struct apistore_fieldset below;
};

void apistore_fieldset_fini(struct apistore_fieldset *s);
#define cleanup_apistore_fieldset __attribute__((cleanup(apistore_fieldset_fini)))

/* Build a set: add steps in any order and then call done, which sorts and merges them. A step
 * is not added if it is not a member and has nothing below it. */
void apistore_fieldset_add(struct apistore_fieldset *s, const char *step, bool member,
	struct apistore_fieldset *take_below);
void apistore_fieldset_done(struct apistore_fieldset *s);

/* Borrowed; NULL: no such step. */
const struct apistore_step *apistore_fieldset_find(
	const struct apistore_fieldset *s, const char *step);
enum apistore_combine {
	APISTORE_UNION,
	APISTORE_BOTH,
	/* The paths of a that are not in b. A path below one of b stays unless it is in b itself. */
	APISTORE_WITHOUT,
};
struct apistore_fieldset apistore_fieldset_combine(const struct apistore_fieldset *a,
	enum apistore_combine how, const struct apistore_fieldset *b);
/* The same in place. */
void apistore_fieldset_change(struct apistore_fieldset *s, enum apistore_combine how,
	const struct apistore_fieldset *with);

/* Call fn with each path, as kube-apiserver prints it: .spec.ports[port=80,protocol="TCP"].name */
void apistore_fieldset_each(
	const struct apistore_fieldset *s, void (*fn)(void *arg, const char *path), void *arg);

/* Append one step in that form: ".name", "[key=value]". */
void apistore_fieldset_print_step(struct strbuf *out, const char *step);

/* Return the set as a value of fieldsV1; the caller puts it. */
struct json_object *apistore_fieldset_json(const struct apistore_fieldset *s);
/* Read a value of fieldsV1. ERR_INVALID: it is not a valid one. out is initialised in every case.
 * The recursion is as deep as the value, whose parser bounds it. */
int apistore_fieldset_read(
	struct json_object *o, struct apistore_fieldset *out, struct err *err) MUST_CHECK;

#endif
