/* SPDX-License-Identifier: MIT */
/*
 * Converts bodies of type application/vnd.kubernetes.protobuf to JSON. kubectl sends ConfigMaps,
 * Secrets, ServiceAccounts, RoleBindings, access reviews and DeleteOptions in this form and does
 * not fall back to another.
 */
#ifndef TEC_APIHTTP_PROTOBUF_H
#define TEC_APIHTTP_PROTOBUF_H

#include <json-c/json.h>
#include <stddef.h>

#include "tec/base/err.h"

#define APIHTTP_PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

/* Convert a body; the caller puts the object. ERR_INVALID: the body is malformed. ERR_NOT_FOUND:
 * its kind is accepted only as JSON. */
struct json_object *apihttp_protobuf_read(const char *data, size_t len, struct err *err) MUST_CHECK;

#endif
