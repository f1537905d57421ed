/* SPDX-License-Identifier: MIT */
/* JSON merge patch (RFC 7386). o is changed in place, so pass a copy of a shared object. */
#ifndef TEC_APISTORE_PATCH_H
#define TEC_APISTORE_PATCH_H

#include <json-c/json.h>

/* Both are JSON objects; patch is not modified. */
void apistore_patch_merge(struct json_object *o, struct json_object *patch);

#endif
