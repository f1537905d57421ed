/* SPDX-License-Identifier: MIT */
/*
 * JSON patch (RFC 6902, with pointers of RFC 6901), with kube-apiserver's deviations: negative
 * indices count from the end, replace creates a missing member, and text before the first '/' of a
 * pointer is ignored.
 */
#ifndef TEC_APISTORE_JSONPATCH_H
#define TEC_APISTORE_JSONPATCH_H

#include <json-c/json.h>

#include "tec/base/err.h"

#define APISTORE_JSONPATCH_OPS  10000
#define APISTORE_JSONPATCH_COPY (3u << 20) /* bytes that all copy operations may add together */

/* Check that patch is a list of operations. ERR_INVALID with http 400, or 413 if it has too
 * many. */
int apistore_jsonpatch_check(struct json_object *patch, struct err *err) MUST_CHECK;
/*
 * Change *o in place and possibly replace it, so pass a copy of a shared object. patch must have
 * passed the check, and is not modified. ERR_INVALID: an operation failed, or the result is nested
 * deeper than a body may be; *o then has no defined content but is still owned by the caller.
 */
int apistore_jsonpatch_apply(
	struct json_object **o, struct json_object *patch, struct err *err) MUST_CHECK;

#endif
