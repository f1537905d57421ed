/* SPDX-License-Identifier: MIT */
/*
 * Strategic merge patch, of built-in kinds: a merge patch that merges some lists by a key
 * (schema/merge), with the directives $patch, $deleteFromPrimitiveList, $setElementOrder and
 * $retainKeys.
 */
#ifndef TEC_APISTORE_STRATEGIC_H
#define TEC_APISTORE_STRATEGIC_H

#include <json-c/json.h>

#include "tec/apistore/typed.h"

/*
 * Changes *o, which may be another object afterwards: give it a copy of what others may hold. patch is
 * only read; both are objects. ERR_INVALID with the http status that kube-apiserver answers (400, 422,
 * 500); *o is then undefined and still the caller's.
 */
int apistore_strategic_merge(const struct apistore_place *p, struct json_object **o,
	struct json_object *patch, struct err *err) MUST_CHECK;

#endif
