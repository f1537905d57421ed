/* SPDX-License-Identifier: MIT */
/*
 * What a Secret holds, as one hash: of all members of data, names and values, in the order of their
 * names. The hash of what the operator is about to make is announced (model/mark.h) on the object
 * that it makes it for.
 */
#ifndef TEC_MODEL_CONTENT_H
#define TEC_MODEL_CONTENT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/bytes.h"
#include "tec/base/secret.h"

#define MODEL_CONTENT_MEMBERS_MAX 16

/* Of a Secret's object. False, and an empty text: it has no data, more members than that, or one
 * that is not text. */
bool model_content_sha256(struct json_object *o, char hex[SHA256_HEX_LEN + 1]);
/* Of a Secret's JSON text, as it will be sent to be created. */
bool model_content_of_text(const struct secret *text, char hex[SHA256_HEX_LEN + 1]);

#endif
