/* SPDX-License-Identifier: MIT */
/*
 * struct schema_crd: one of our CustomResourceDefinitions (crd/), read. The files are part of the
 * program: a unit test checks each of them, so that nothing but patterns and rules is checked here.
 * It keeps its own copy of what it needs; its members are only read and live as long as it does.
 */
#ifndef TEC_SCHEMA_CRD_H
#define TEC_SCHEMA_CRD_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/schema/kind.h"
#include "tec/schema/structural.h"

struct schema_column {
	const char *name, *type, *format, *description, *path; /* format, description: "" without */
	int priority;
};

struct schema_crd {
	struct json_object *o;         /* owned: the definition, in which all texts are */
	struct schema_kind kind;       /* kind.crd points here */
	struct schema_node *schema;    /* owned */
	struct json_object *openapi;   /* openAPIV3Schema as given; of o */
	struct schema_column *columns; /* owned; without additionalPrinterColumns: none */
	size_t n_columns;
};

/* o is only read. The caller owns what is returned. ERR_INVALID: a pattern or rule of it. */
struct schema_crd *schema_crd_new(struct json_object *o, struct err *err) MUST_CHECK;
void schema_crd_free(struct schema_crd *c); /* NULL is fine */

#endif
