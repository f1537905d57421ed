/* SPDX-License-Identifier: MIT */
/* UUIDs from libsodium's random numbers. Upper case, braces and URN forms are refused: one value
 * has one text. */
#include "config.h"

#include "tec/base/uuid.h"

#include <sodium.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"

void uuid_new_v4(char out[UUID_TEXT_LEN + 1])
{
	static const size_t group[] = {4, 2, 2, 2, 6};
	uint8_t raw[16], *p = raw;

	if (sodium_init() < 0)
		DIE("libsodium has no random numbers");
	randombytes_buf(raw, sizeof(raw));
	raw[6] = (raw[6] & 0x0f) | 0x40; /* version 4 */
	raw[8] = (raw[8] & 0x3f) | 0x80; /* RFC 9562 variant */
	for (size_t i = 0; i < ARRAY_LEN(group); i++) {
		bytes_to_hex(p, group[i], out);
		p += group[i];
		out += 2 * group[i];
		*out++ = i + 1 < ARRAY_LEN(group) ? '-' : '\0';
	}
}

bool uuid_valid(const char *s, size_t len)
{
	if (!s || len != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool hex = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f');

		if (i == 8 || i == 13 || i == 18 || i == 23 ? s[i] != '-' : !hex)
			return false;
	}
	return true;
}
