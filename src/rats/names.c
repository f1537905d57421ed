/* SPDX-License-Identifier: MIT */
/*
 * The identity's name is cut out of the base64 text at fixed places, as the policy does it
 * (etc/tpm.rego): the first 44 characters are the same for every key, the next 240 are the top
 * 1,440 bits of the modulus. It can collide on purpose; who writes it must compare the value, not
 * the name.
 */
#include "config.h"

#include "tec/rats/names.h"

#include <stdio.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/uuid.h"

#define NAME_PREFIX "ak."
#define BLANKS      " \t\r\n"
#define CUT_FROM    44
#define CUT_LEN     240
#define B64_MIN     392 /* an RSA-2048 key; the policy looks at nothing shorter */

_Static_assert(sizeof(NAME_PREFIX) - 1 + CUT_LEN == RATS_IDENTITY_NAME_LEN, "name length");

/* From the first CUT_FROM + CUT_LEN characters of the base64 text. */
static void put_name(const char *b64, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	char *to = out + sizeof(NAME_PREFIX) - 1;

	memcpy(out, NAME_PREFIX, sizeof(NAME_PREFIX) - 1);
	for (size_t i = 0; i < CUT_LEN; i++) {
		char c = b64[CUT_FROM + i];

		to[i] = c == '+' ? '-' : c == '/' ? '_' : c;
	}
	to[CUT_LEN] = '\0';
}

int rats_identity_name_pem(const char *pem, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	static const char begin[] = "-----BEGIN PUBLIC KEY-----";
	const char *p = strstr(pem, begin);
	char b64[CUT_FROM + CUT_LEN];
	size_t n = 0;

	if (!p)
		return -1;
	p += sizeof(begin) - 1;
	while (n < sizeof(b64)) {
		size_t run, room = sizeof(b64) - n;

		p += strspn(p, BLANKS);
		run = strcspn(p, BLANKS "-");
		if (run == 0)
			return -1; /* it ends too early */
		memcpy(b64 + n, p, run < room ? run : room);
		n += run < room ? run : room;
		p += run;
	}
	put_name(b64, out);
	return 0;
}

int rats_identity_name(const uint8_t *der, size_t len, char out[RATS_IDENTITY_NAME_LEN + 1])
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	if (bytes_b64_len(len) < B64_MIN)
		return -1;
	bytes_to_b64(&b64, der, len);
	put_name(b64.data, out);
	return 0;
}

bool rats_is_identity_name(const char *name)
{
	return str_starts(name, NAME_PREFIX);
}

void rats_identity_value(
	const uint8_t *der, size_t len, const char *machine_uuid, struct strbuf *out)
{
	strbuf_adds(out, "{\"ak\":\"");
	bytes_to_b64(out, der, len);
	strbuf_adds(out, "\",\"machine\":");
	json_quote(out, machine_uuid, strlen(machine_uuid));
	strbuf_addc(out, '}');
}

void rats_resource_path(const char *machine_uuid, char out[RATS_RESOURCE_PATH_MAX])
{
	out[0] = '\0';
	if (uuid_valid(machine_uuid, strlen(machine_uuid)))
		snprintf(out, RATS_RESOURCE_PATH_MAX, "default/%s/root", machine_uuid);
}

bool rats_resource_id(const char *path, char id[UUID_TEXT_LEN + 1])
{
	const char *p = strchr(path, '/');

	if (!p || strlen(p + 1) < UUID_TEXT_LEN || !uuid_valid(p + 1, UUID_TEXT_LEN))
		return false;
	memcpy(id, p + 1, UUID_TEXT_LEN);
	id[UUID_TEXT_LEN] = '\0';
	return true;
}
