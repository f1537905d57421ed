/* SPDX-License-Identifier: MIT */
/*
 * The content of a Secret as one hash: over all members of data, names and values, in the order of
 * their names. Before the operator creates a Secret, it announces (model/mark.h) this hash on the
 * object for which it creates it.
 */
#ifndef TEC_MODEL_CONTENT_H
#define TEC_MODEL_CONTENT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/base/bytes.h"
#include "tec/base/secret.h"

#define MODEL_CONTENT_MEMBERS_MAX 16

/* Hash a Secret's object. False, with hex empty: it has no data, too many members, or one that is
 * not a string. */
bool model_content_sha256(struct json_object *o, char hex[SHA256_HEX_LEN + 1]);
/* Hash a Secret's JSON text, as it will be sent. */
bool model_content_of_text(const struct secret *text, char hex[SHA256_HEX_LEN + 1]);

#endif
