/* SPDX-License-Identifier: MIT */
/*
 * Decodes the JSON of a built-in kind as Go's decoder would, by the table of schema/fields.h:
 * unknown members are dropped, null counts as absent, and times are rewritten in Go's format.
 */
#ifndef TEC_SRC_APIREQ_DECODE_H
#define TEC_SRC_APIREQ_DECODE_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* Decode o in place. For a kind that is not in the table (a custom kind, or NULL) only the metadata
 * is decoded. The paths of dropped unknown members are added to unknown, in the order of the body.
 * ERR_INVALID: a value has the wrong type. */
int apireq_decode(const struct schema_kind *k, struct json_object *o, struct schema_texts *unknown,
	struct err *err) MUST_CHECK;

#endif
