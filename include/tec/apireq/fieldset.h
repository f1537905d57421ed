/* SPDX-License-Identifier: MIT */
/*
 * struct apireq_fieldset: a set of paths into an object, as stored in managedFields (FieldsV1). A
 * step of a path is a text: "f:NAME" is a member, "k:{...}" the list element with these keys,
 * "v:VALUE" an element of a set, "i:N" an index. A path and the paths below it can be members of
 * the set independently.
 *
 * Embedded; all-zero is the empty set. It owns all that it holds.
 */
#ifndef TEC_APIREQ_FIELDSET_H
#define TEC_APIREQ_FIELDSET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

struct apireq_step;
struct apireq_fieldset {
	struct apireq_step *at; /* owned; sorted by step after apireq_fieldset_done */
	size_t n;
};
struct apireq_step {
	char *step;  /* owned */
	bool member; /* the path that ends here is in the set */
	struct apireq_fieldset below;
};

void apireq_fieldset_fini(struct apireq_fieldset *s);
#define cleanup_apireq_fieldset __attribute__((cleanup(apireq_fieldset_fini)))

/* Build a set: add steps in any order and then call done, which sorts and merges them. A step
 * is not added if it is not a member and has nothing below it. */
void apireq_fieldset_add(struct apireq_fieldset *s, const char *step, bool member,
	struct apireq_fieldset *take_below);
void apireq_fieldset_done(struct apireq_fieldset *s);

/* Borrowed; NULL: no such step. */
const struct apireq_step *apireq_fieldset_find(const struct apireq_fieldset *s, const char *step);
enum apireq_combine {
	APIREQ_UNION,
	APIREQ_BOTH,
	/* The paths of a that are not in b. A path below one of b stays unless it is in b itself. */
	APIREQ_WITHOUT,
};
struct apireq_fieldset apireq_fieldset_combine(
	const struct apireq_fieldset *a, enum apireq_combine how, const struct apireq_fieldset *b);
/* The same in place. */
void apireq_fieldset_change(
	struct apireq_fieldset *s, enum apireq_combine how, const struct apireq_fieldset *with);

/* Call fn with each path, as kube-apiserver prints it: .spec.ports[port=80,protocol="TCP"].name */
void apireq_fieldset_each(
	const struct apireq_fieldset *s, void (*fn)(void *arg, const char *path), void *arg);

/* Append one step in that form: ".name", "[key=value]". */
void apireq_fieldset_print_step(struct strbuf *out, const char *step);

/* Return the set as a value of fieldsV1; the caller puts it. */
struct json_object *apireq_fieldset_json(const struct apireq_fieldset *s);
/* Read a value of fieldsV1. ERR_INVALID: it is not a valid one. out is initialised in every case.
 * The recursion is as deep as the value, whose parser bounds it. */
int apireq_fieldset_read(
	struct json_object *o, struct apireq_fieldset *out, struct err *err) MUST_CHECK;

#endif
