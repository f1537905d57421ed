/* SPDX-License-Identifier: MIT */
/* Validates the metadata of an object that is to be stored. */
#ifndef TEC_SRC_APISTORE_META_H
#define TEC_SRC_APISTORE_META_H

#include <json-c/json.h>

#include "tec/schema/cause.h"
#include "tec/schema/kind.h"

/* Add all errors to causes. name: of the object, "" without one. was: the current object, NULL if
 * there is none. k may be NULL. */
void apistore_meta_check(const struct schema_kind *k, const char *name, struct json_object *was,
	struct json_object *o, struct schema_causes *causes);
/* Add warnings about metadata of custom resources that is accepted but discouraged. */
void apistore_meta_warn(struct json_object *o, struct schema_texts *out);

#endif
