/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type application/vnd.kubernetes.protobuf as JSON: kubectl and every program that uses
 * client-go's typed clients send built-in kinds in that form, and do not try another one. All kinds that
 * are stored, and what is asked about them; bytes in, an object out.
 */
#ifndef TEC_APISTORE_PROTOBUF_H
#define TEC_APISTORE_PROTOBUF_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/base/err.h"

#define APISTORE_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* The caller puts it. ERR_INVALID: not the bytes of such a body. ERR_NOT_FOUND: of a kind that is only
 * read as JSON. */
struct json_object *apistore_protobuf_read(
	const char *data, size_t len, struct err *err) MUST_CHECK;

#endif
