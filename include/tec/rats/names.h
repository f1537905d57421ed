/* SPDX-License-Identifier: MIT */
/*
 * Names and values of what Trustee holds for us: pure text. Identity: name "ak." + characters
 * 44..283 of the key's base64 DER with '+' -> '-', '/' -> '_'; value: a list of
 * {"ak":"<base64>","machine":"<uuid>"}, one of each key with this name. Resource: path
 * "default/<uuid>/root".
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

/* Needs a DER SPKI of an RSA key of at least 2048 bits (pki/spki.h); shorter input gives -1. */
int rats_identity_name(const uint8_t *der, size_t len, char out[RATS_IDENTITY_NAME_LEN + 1])
	__attribute__((warn_unused_result));
/* An identity's name, and not another reference value's. */
bool rats_is_identity_name(const char *name);
/* One entry of the list. */
void rats_identity_value(
	const uint8_t *der, size_t len, const char *machine_uuid, struct strbuf *out);
/* "" for a text that is not a UUID: it may hold '/' or "..". */
void rats_resource_path(const char *machine_uuid, char out[RATS_RESOURCE_PATH_MAX]);
/* The id in "default/<id>/root"; false: there is none. */
bool rats_resource_id(const char *path, char id[UUID_TEXT_LEN + 1]);
/* The path is exactly "default/<id>/root": a Machine's disk key. */
bool rats_resource_is_root(const char *path, char id[UUID_TEXT_LEN + 1]);

#endif
