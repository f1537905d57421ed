/* SPDX-License-Identifier: MIT */
/*
 * Marks: annotations in which the operator records on an object what it did or is about to do for
 * it. The text is "UID PAYLOAD" with the uid of that same object. An object's uid is unknown until
 * the API server has created it, so a mark that was sent with a create never counts.
 *
 * An announcement is a mark whose payload is a list of SHA-256 hashes in lower-case hex, oldest
 * first: of the contents that this operator may have sent in a create for the object. A Secret is
 * adopted only when its content has one of these hashes.
 */
#ifndef TEC_MODEL_MARK_H
#define TEC_MODEL_MARK_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "tec/base/bytes.h"

#define MODEL_MARK_HASHES_MAX 4

/* Return the payload of the mark in this annotation of o; NULL: absent, or the mark of another
 * object. Borrowed from o. */
const char *model_mark(struct json_object *o, const char *annotation);
/* "UID PAYLOAD"; the caller frees. */
char *model_mark_text(const char *uid, const char *payload);
/* Tell whether an announcement (NULL: none) contains this hash. */
bool model_mark_announces(const char *hashes, const char *hex);
/* Return the announcement with hex appended; of MODEL_MARK_HASHES_MAX the oldest is dropped, whose
 * create has ended by now. The caller frees it. */
char *model_mark_announce(const char *hashes, const char *hex);

#endif
