/* SPDX-License-Identifier: MIT */
/*
 * Strategic merge patch of built-in kinds: a merge patch that also merges lists of type map or set
 * (schema/merge). It supports the directives that client-side apply sends: $setElementOrder,
 * $deleteFromPrimitiveList, and "$patch: delete" in an element.
 */
#ifndef TEC_APISTORE_STRATEGIC_H
#define TEC_APISTORE_STRATEGIC_H

#include <json-c/json.h>

#include "tec/apistore/typed.h"

/*
 * Change o in place, so pass a copy of a shared object. patch is not modified; both are JSON
 * objects. ERR_INVALID with http 400; o then has no defined content.
 */
int apistore_strategic_merge(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err) MUST_CHECK;

#endif
