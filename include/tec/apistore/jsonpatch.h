/* SPDX-License-Identifier: MIT */
/*
 * JSON patch (RFC 6902, with the pointers of RFC 6901), with the liberties that kube-apiserver
 * takes: negative indices count from the end, replace makes a member that is missing, and what
 * stands before the first '/' of a pointer is ignored.
 */
#ifndef TEC_APISTORE_JSONPATCH_H
#define TEC_APISTORE_JSONPATCH_H

#include <json-c/json.h>

#include "tec/base/err.h"

#define APISTORE_JSONPATCH_OPS  10000
#define APISTORE_JSONPATCH_COPY (3u << 20) /* bytes that all copy operations together may add */

/* Is it a list of operations? ERR_INVALID with http 400, or 413 for too many. */
int apistore_jsonpatch_check(struct json_object *patch, struct err *err) MUST_CHECK;
/*
 * Changes *o, which may be another object afterwards: give it a copy of what others may hold. patch
 * has passed the check and is only read. ERR_INVALID: an operation failed, or the result is nested
 * deeper than a body may be; *o is then undefined and still the caller's.
 */
int apistore_jsonpatch_apply(
	struct json_object **o, struct json_object *patch, struct err *err) MUST_CHECK;

#endif
