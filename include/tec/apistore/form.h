/* SPDX-License-Identifier: MIT */
/*
 * The representation that a client asks for in its Accept header: whole objects, rows of a Table
 * (kubectl get), or only metadata; and the conversion of an object's text to it.
 *
 * An object of a kind without a schema (NULL) is always sent whole.
 */
#ifndef TEC_APISTORE_FORM_H
#define TEC_APISTORE_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/body.h"
#include "tec/schema/table.h"

/* One media range of an Accept header. */
struct apistore_media {
	char type[128];
	char as[64], group[64], version[32]; /* "" without the parameter */
};
/* Read the next media range and advance *p past it. False: no more. Ranges with q=0, which the
 * client does not accept, and ranges that are too long are skipped. */
bool apistore_form_next_media(const char **p, struct apistore_media *out);

enum apistore_shape { APISTORE_SHAPE_OBJECT, APISTORE_SHAPE_TABLE, APISTORE_SHAPE_METADATA };

struct apistore_form {
	enum apistore_shape shape;
	bool beta; /* as meta.k8s.io/v1beta1 instead of v1 */
	enum schema_include include;
};

/* Choose the first range that can be served. accept NULL: anything. False: there is none. */
bool apistore_form_choose(const char *accept, struct apistore_form *out);
/* Set the query parameter includeObject; false: it is not a valid value. */
bool apistore_form_set_include(struct apistore_form *f, const char *include);

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
