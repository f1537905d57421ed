/* SPDX-License-Identifier: MIT */
/*
 * Strategic merge patch, of built-in kinds: a merge patch that merges lists that are maps or sets
 * (schema/merge), with what client-side apply sends: $setElementOrder, $deleteFromPrimitiveList, and
 * $patch: delete of an element.
 */
#ifndef TEC_APISTORE_STRATEGIC_H
#define TEC_APISTORE_STRATEGIC_H

#include <json-c/json.h>

#include "tec/apistore/typed.h"

/*
 * Changes o in place: give it a copy of what others may hold. patch is only read; both are objects.
 * ERR_INVALID with http status 400; o is then undefined.
 */
int apistore_strategic_merge(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err) MUST_CHECK;

#endif
