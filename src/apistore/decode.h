/* SPDX-License-Identifier: MIT */
/*
 * What Go's decoder makes of the JSON of a built-in kind, by the table of protobuf_fields.h: members
 * that the type does not have go, null is nothing, times get the text that Go writes.
 */
#ifndef TEC_SRC_APISTORE_DECODE_H
#define TEC_SRC_APISTORE_DECODE_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* The table has it. */
bool apistore_decode_knows(const struct schema_kind *k);
/* Of a kind that the table does not have (a custom one; NULL), only the metadata is decoded. Paths of
 * what went are added to unknown, in the order of the body. ERR_INVALID: a value that is not of its
 * type. */
int apistore_decode(const struct schema_kind *k, struct json_object *o,
	struct schema_texts *unknown, struct err *err) MUST_CHECK;

#endif
