/* SPDX-License-Identifier: MIT */
/*
 * The representation of objects in an answer: whole objects, rows of a Table (kubectl get), or only
 * metadata; and the conversion of an object's text to it.
 *
 * An object of a kind without a schema (NULL) is always sent whole.
 */
#ifndef TEC_APISTORE_FORM_H
#define TEC_APISTORE_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/body.h"
#include "tec/schema/table.h"

enum apistore_shape { APISTORE_SHAPE_OBJECT, APISTORE_SHAPE_TABLE, APISTORE_SHAPE_METADATA };

struct apistore_form {
	enum apistore_shape shape;
	bool beta; /* as meta.k8s.io/v1beta1 instead of v1 */
	enum schema_include include;
};

/* Append a single object; headers: a table gets its column definitions. */
void apistore_form_object(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, bool headers, struct body *out);
/* Append one item of a list, without a comma. */
void apistore_form_item(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, struct body *out);
/* Append a stored Event in the form of events.k8s.io; item: of a list, without kind and
 * apiVersion. */
void apistore_form_event(const char *text, size_t len, bool item, struct body *out);
/* Append a list up to its first item; metadata: the members of its metadata as text. The caller
 * ends the list with "]}". */
void apistore_form_head(const struct apistore_form *f, const struct schema_kind *k,
	const char *metadata, struct body *out);

#endif
