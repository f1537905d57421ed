/* SPDX-License-Identifier: MIT */
/*
 * Marks: annotations in which the operator notes on an object what it did or is about to do for it.
 * The text is "UID PAYLOAD" with the uid of the very object it stands on. The uid of an object is
 * not known before the API server made it, so a mark that came with a create never counts.
 *
 * An announcement is a mark whose payload is a list of SHA-256 hashes in lower-case hex, oldest
 * first: of the contents that this operator may have sent to be created for the object. A Secret is
 * adopted only when its content has one of them.
 */
#ifndef TEC_MODEL_MARK_H
#define TEC_MODEL_MARK_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "tec/base/bytes.h"

#define MODEL_MARK_HASHES_MAX 4

/* The payload of the mark in this annotation of o; NULL: there is none, or it is another object's.
 * Borrowed from o. */
const char *model_mark(struct json_object *o, const char *annotation);
/* "UID PAYLOAD"; the caller frees. */
char *model_mark_text(const char *uid, const char *payload);
/* Whether an announcement (NULL: there is none) has this hash. */
bool model_mark_announces(const char *hashes, const char *hex);
/* The announcement with hex added at its end; of MODEL_MARK_HASHES_MAX the oldest goes, whose
 * create is over by now. The caller frees. */
char *model_mark_announce(const char *hashes, const char *hex);

#endif
