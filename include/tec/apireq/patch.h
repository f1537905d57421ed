/* SPDX-License-Identifier: MIT */
/*
 * The kinds of patch that an API server accepts besides apply. All change an object in place, so pass
 * a copy of a shared one; a patch is not modified. After an error the object has no defined content
 * but is still owned by the caller.
 */
#ifndef TEC_APIREQ_PATCH_H
#define TEC_APIREQ_PATCH_H

#include <json-c/json.h>

#include "tec/apireq/typed.h"
#include "tec/base/err.h"

#define APIREQ_PATCH_OPS  10000
#define APIREQ_PATCH_COPY (3u << 20) /* bytes that all copy operations may add together */

/* JSON merge patch (RFC 7386). Both are JSON objects. */
void apireq_patch_merge(struct json_object *o, struct json_object *patch);
/*
 * Strategic merge patch of built-in kinds: a merge patch that also merges lists of type map or set
 * (schema/merge). It supports the directives that client-side apply sends: $setElementOrder,
 * $deleteFromPrimitiveList, and "$patch: delete" in an element. Both are JSON objects. ERR_INVALID
 * with http 400.
 */
int apireq_patch_strategic(const struct apireq_place *p, struct json_object *o,
	struct json_object *patch, struct err *err) MUST_CHECK;
/*
 * JSON patch (RFC 6902, with pointers of RFC 6901), with kube-apiserver's deviations: negative
 * indices count from the end, replace creates a missing member, and text before the first '/' of a
 * pointer is ignored. *o may be replaced. patch must have passed the check below. ERR_INVALID: an
 * operation failed, or the result is nested deeper than a body may be.
 */
int apireq_patch_json(
	struct json_object **o, struct json_object *patch, struct err *err) MUST_CHECK;
/* Check that patch is a list of operations. ERR_INVALID with http 400, or 413 if it has too
 * many. */
int apireq_patch_check(struct json_object *patch, struct err *err) MUST_CHECK;

#endif
