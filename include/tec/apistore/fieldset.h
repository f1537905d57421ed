/* SPDX-License-Identifier: MIT */
/*
 * struct apistore_fieldset: a set of paths into an object, as managedFields hold it (FieldsV1). A step
 * of a path is a text: "f:NAME" a member, "k:{...}" the element of a list with these keys, "v:VALUE"
 * an element of a set, "i:N" an index. A path may be in the set with or without those below it.
 *
 * Embedded; all-zero is the empty set. Everything it holds is its own.
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
	struct apistore_step *at; /* owned; sorted by step once it is done */
	size_t n;
};
struct apistore_step {
	char *step;  /* owned */
	bool member; /* the path to here is in the set */
	struct apistore_fieldset below;
};

void apistore_fieldset_fini(struct apistore_fieldset *s);
#define cleanup_apistore_fieldset __attribute__((cleanup(apistore_fieldset_fini)))
bool apistore_fieldset_is_empty(const struct apistore_fieldset *s);
bool apistore_fieldset_equal(const struct apistore_fieldset *a, const struct apistore_fieldset *b);

/* Builds a set: what is added in any order (nothing, when neither holds), then done. */
void apistore_fieldset_add(struct apistore_fieldset *s, const char *step, bool member,
	struct apistore_fieldset *take_below);
void apistore_fieldset_done(struct apistore_fieldset *s);

/* NULL: no such step. Borrowed. */
const struct apistore_step *apistore_fieldset_find(
	const struct apistore_fieldset *s, const char *step);
struct apistore_fieldset apistore_fieldset_copy(const struct apistore_fieldset *s);
struct apistore_fieldset apistore_fieldset_union(
	const struct apistore_fieldset *a, const struct apistore_fieldset *b);
struct apistore_fieldset apistore_fieldset_both(
	const struct apistore_fieldset *a, const struct apistore_fieldset *b);
/* Those of a that are not in b; what is below a path of b stays. */
struct apistore_fieldset apistore_fieldset_without(
	const struct apistore_fieldset *a, const struct apistore_fieldset *b);
/* Replaces s. */
void apistore_fieldset_become(struct apistore_fieldset *s, struct apistore_fieldset take_with);

/* fn is given each path as kube-apiserver prints it: .spec.ports[port=80,protocol="TCP"].name */
void apistore_fieldset_each(
	const struct apistore_fieldset *s, void (*fn)(void *arg, const char *path), void *arg);

/* One step: ".name", "[key=value]". */
void apistore_fieldset_print_step(struct strbuf *out, const char *step);

/* The value of fieldsV1. The caller puts it. */
struct json_object *apistore_fieldset_json(const struct apistore_fieldset *s);
/* ERR_INVALID: it is none; out is initialised in every case. Depth is bounded by who parsed it. */
int apistore_fieldset_read(
	struct json_object *o, struct apistore_fieldset *out, struct err *err) MUST_CHECK;

#endif
