/* SPDX-License-Identifier: MIT */
/*
 * Names and values of our objects in Trustee; pure text. Identity: the name is "ak." + characters
 * 44..283 of the key's base64 DER with '+' -> '-', '/' -> '_'; the value is a list of
 * {"ak":"<base64>","machine":"<uuid>"}, one entry for each key with this name. Resource: the path
 * is "default/<uuid>/root".
 */
#ifndef TEC_RATS_NAMES_H
#define TEC_RATS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/base/uuid.h"

#define RATS_IDENTITY_NAME_LEN 243
#define RATS_RESOURCE_PATH_MAX 64

/* Needs a DER SPKI of an RSA key of at least 2048 bits (pki/spki.h); -1 for shorter input. */
int rats_identity_name(const uint8_t *der, size_t len, char out[RATS_IDENTITY_NAME_LEN + 1])
	__attribute__((warn_unused_result));
/* Whether a reference value is an identity. */
bool rats_is_identity_name(const char *name);
/* Append one entry of the list. */
void rats_identity_value(
	const uint8_t *der, size_t len, const char *machine_uuid, struct strbuf *out);
/* "" if the text is not a UUID: it could contain '/' or "..". */
void rats_resource_path(const char *machine_uuid, char out[RATS_RESOURCE_PATH_MAX]);
/* The id in "default/<id>/root"; false: no id. */
bool rats_resource_id(const char *path, char id[UUID_TEXT_LEN + 1]);
/* Whether the path is exactly "default/<id>/root": a Machine's disk key. */
bool rats_resource_is_root(const char *path, char id[UUID_TEXT_LEN + 1]);

#endif
