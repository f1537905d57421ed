/* SPDX-License-Identifier: MIT */
/* UUIDs from random numbers and from given bytes. Upper case, braces and the URN form are refused, so
 * that one value has one text. */
#include "config.h"

#include "tec/base/uuid.h"

#include "tec/base/bytes.h"
#include "tec/base/mem.h"

static const size_t group[] = {4, 2, 2, 2, 6}; /* bytes between the hyphens */

/* 122 random bits, fit for names that must not be guessed. */
void uuid_new_v4(char out[UUID_TEXT_LEN + 1])
{
	uint8_t raw[UUID_LEN];

	bytes_random(raw, sizeof(raw));
	raw[6] = (raw[6] & 0x0f) | 0x40; /* version 4 */
	raw[8] = (raw[8] & 0x3f) | 0x80; /* RFC 9562 variant */
	uuid_from_bytes(raw, out);
}

void uuid_from_bytes(const uint8_t raw[UUID_LEN], char out[UUID_TEXT_LEN + 1])
{
	for (size_t i = 0; i < ARRAY_LEN(group); i++) {
		bytes_to_hex(raw, group[i], out);
		raw += group[i];
		out += 2 * group[i];
		*out++ = i + 1 < ARRAY_LEN(group) ? '-' : '\0';
	}
}

/* Callers have checked the text with uuid_valid(), so a failure is a bug. */
void uuid_to_bytes(const char text[UUID_TEXT_LEN], uint8_t raw[UUID_LEN])
{
	for (size_t i = 0; i < ARRAY_LEN(group); i++) {
		if (bytes_from_hex(text, 2 * group[i], raw) < 0)
			DIE("%.36s is not a UUID", text);
		text += 2 * group[i] + 1;
		raw += group[i];
	}
}

/* Positions 8, 13, 18 and 23 hold the hyphens between the groups. */
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
