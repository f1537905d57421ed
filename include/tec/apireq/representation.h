/* SPDX-License-Identifier: MIT */
/*
 * The representation of objects in an answer: whole objects, rows of a Table (kubectl get), or only
 * metadata; and the conversion of an object's text to it.
 *
 * An object of a kind without a schema (NULL) is always sent whole.
 */
#ifndef TEC_APIREQ_REPRESENTATION_H
#define TEC_APIREQ_REPRESENTATION_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "tec/base/body.h"
#include "tec/schema/table.h"

enum apireq_shape { APIREQ_SHAPE_OBJECT, APIREQ_SHAPE_TABLE, APIREQ_SHAPE_METADATA };

struct apireq_representation {
	enum apireq_shape shape;
	bool beta; /* as meta.k8s.io/v1beta1 instead of v1 */
	enum schema_include include;
};

/* Where an object appears: a table has its column definitions only in the first one. */
enum apireq_representation_part {
	APIREQ_REPRESENTATION_FIRST,
	APIREQ_REPRESENTATION_NEXT,
	APIREQ_REPRESENTATION_ITEM
};
/* Append an object as the request for this group asked for it; an item of a list without a comma.
 * False: it is sent as it is stored, and nothing was appended. */
bool apireq_representation_add(const struct apireq_representation *f, const struct schema_kind *k,
	enum apireq_representation_part part, const char *group, const char *text, size_t len,
	struct body *out);
/* Append a list up to its first item; metadata: the members of its metadata as text. The caller
 * ends the list with "]}". */
void apireq_representation_head(const struct apireq_representation *f, const struct schema_kind *k,
	const char *metadata, struct body *out);

/*
 * Events of both API groups are one set of objects. They are stored in the core/v1 form and converted
 * from and to events.k8s.io/v1 for requests to that group. Only the names of members differ.
 */
/* Is this the group whose members have other names than the stored ones? */
bool apireq_representation_renames(const char *group);
/* Convert an Event in place, to the core form or from it; o NULL is fine. */
void apireq_representation_rename(struct json_object *o, bool to_core);

#endif
