/* SPDX-License-Identifier: MIT */
/* RFC 7386 merge patch. Changes o in place: give it a copy of what others may hold. */
#ifndef TEC_APISTORE_PATCH_H
#define TEC_APISTORE_PATCH_H

#include <json-c/json.h>

/* Both are JSON objects; patch is only read. */
void apistore_patch_merge(struct json_object *o, struct json_object *patch);

#endif
