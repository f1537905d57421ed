/* SPDX-License-Identifier: MIT */
/*
 * struct schema_crd: one of our CustomResourceDefinitions (crd/), parsed. The files are part of the
 * program, and a unit test checks each of them, so only patterns and rules are checked here. It
 * keeps its own copy of what it needs; its members are read-only and live as long as it does.
 */
#ifndef TEC_SCHEMA_CRD_H
#define TEC_SCHEMA_CRD_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/schema/kind.h"
#include "tec/schema/structural.h"

struct schema_column {
	const char *name, *type, *format, *description,
		*path; /* format, description: NULL when absent */
	int priority;
};

struct schema_crd {
	struct json_object *o;         /* owned: the definition, which contains all strings */
	struct schema_kind kind;       /* kind.crd points here */
	struct schema_node *schema;    /* owned */
	struct json_object *openapi;   /* openAPIV3Schema as given; borrowed from o */
	struct schema_column *columns; /* owned; from additionalPrinterColumns */
	size_t n_columns;
};

/* Parse a definition. o is not changed; the caller owns the result. ERR_INVALID: a bad pattern or
 * rule. */
struct schema_crd *schema_crd_new(struct json_object *o, struct err *err) MUST_CHECK;
void schema_crd_free(struct schema_crd *c); /* NULL is fine */

#endif
