/* SPDX-License-Identifier: MIT */
/*
 * The identity's name is cut from the base64 text at fixed offsets, as the policy does
 * (etc/tpm.rego): the first 44 characters are the same for every key, the next 240 are the top
 * 1,440 bits of the modulus. Somebody can make keys with the same name on purpose, so the value
 * lists all keys of that name, and a reader compares the whole key.
 */
#include "config.h"

#include "tec/rats/names.h"

#include <stdio.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/uuid.h"

#define NAME_PREFIX "ak."
#define CUT_FROM    44
#define CUT_LEN     240
#define B64_MIN     392 /* an RSA-2048 key; the policy looks at nothing shorter */

_Static_assert(CUT_FROM % 4 == 0 && CUT_LEN % 4 == 0, "four characters are three bytes");
_Static_assert(sizeof(NAME_PREFIX) - 1 + CUT_LEN == RATS_IDENTITY_NAME_LEN, "name length");

/* Both cuts are multiples of 4 characters, so they fall on byte boundaries of the DER. */
int rats_identity_name(const uint8_t *der, size_t len, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	cleanup_strbuf struct strbuf name = STRBUF_INIT;

	if (bytes_b64_len(len) < B64_MIN)
		return -1;
	strbuf_adds(&name, NAME_PREFIX);
	bytes_to_b64url(&name, der + CUT_FROM / 4 * 3, CUT_LEN / 4 * 3);
	memcpy(out, name.data, RATS_IDENTITY_NAME_LEN + 1);
	return 0;
}

/* No other reference value we write has this prefix. */
bool rats_is_identity_name(const char *name)
{
	return str_starts(name, NAME_PREFIX);
}

/* Append one list entry; the policy compares `ak` with the evidence as text. */
void rats_identity_value(
	const uint8_t *der, size_t len, const char *machine_uuid, struct strbuf *out)
{
	strbuf_adds(out, "{\"ak\":\"");
	bytes_to_b64(out, der, len);
	json_quote_after(out, "\",\"machine\":", machine_uuid);
	strbuf_addc(out, '}');
}

void rats_resource_path(const char *machine_uuid, char out[RATS_RESOURCE_PATH_MAX])
{
	out[0] = '\0';
	if (uuid_valid(machine_uuid, strlen(machine_uuid)))
		snprintf(out, RATS_RESOURCE_PATH_MAX, "default/%s/root", machine_uuid);
}

/* Accept any repository and tag: the path may come from a list of what Trustee stores. */
bool rats_resource_id(const char *path, char id[UUID_TEXT_LEN + 1])
{
	const char *p = strchr(path, '/');

	if (!p || strlen(p + 1) < UUID_TEXT_LEN || !uuid_valid(p + 1, UUID_TEXT_LEN))
		return false;
	memcpy(id, p + 1, UUID_TEXT_LEN);
	id[UUID_TEXT_LEN] = '\0';
	return true;
}

/* Compare with the canonical path, so that "default/<id>/root/x" does not match. */
bool rats_resource_is_root(const char *path, char id[UUID_TEXT_LEN + 1])
{
	char root[RATS_RESOURCE_PATH_MAX];

	if (!rats_resource_id(path, id))
		return false;
	rats_resource_path(id, root);
	return str_eq(path, root);
}
