/* SPDX-License-Identifier: MIT */
/*
 * Bodies of type application/vnd.kubernetes.protobuf as JSON: kubectl sends ConfigMaps, Secrets,
 * ServiceAccounts, RoleBindings, what it asks about them and options of a deletion in that form, and does
 * not try another one. Bytes in, an object out.
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
