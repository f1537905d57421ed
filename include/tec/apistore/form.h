/* SPDX-License-Identifier: MIT */
/*
 * How a client wants to see objects: as they are, as rows of a table (kubectl get) or only their
 * metadata; read from the Accept header. And the texts in that form, made of the text of an object.
 *
 * A kind without a schema (NULL) is shown as it is, whatever was asked for.
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
/* The range at *p, which moves behind it; false: no other is left. Those that the client does not
 * want (q=0) and those that are too long are left out. */
bool apistore_form_next_media(const char **p, struct apistore_media *out);

enum apistore_shape { APISTORE_SHAPE_OBJECT, APISTORE_SHAPE_TABLE, APISTORE_SHAPE_METADATA };

struct apistore_form {
	enum apistore_shape shape;
	bool beta; /* meta.k8s.io/v1beta1 */
	enum schema_include include;
};

/* accept NULL: any. False: none of its ranges can be served. */
bool apistore_form_choose(const char *accept, struct apistore_form *out);
/* As a client sends includeObject; false: not one of its values. */
bool apistore_form_set_include(struct apistore_form *f, const char *include);

/* An object alone; headers: with the definitions of the columns. */
void apistore_form_object(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, bool headers, struct body *out);
/* One of a list, without a comma. */
void apistore_form_item(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, struct body *out);
/* An Event as it is stored, with the names of events.k8s.io; item: of a list, without its kind. */
void apistore_form_event(const char *text, size_t len, bool item, struct body *out);
/* A list up to its first item; metadata: the inside of its metadata. Its end is "]}". */
void apistore_form_head(const struct apistore_form *f, const struct schema_kind *k,
	const char *metadata, struct body *out);

#endif
