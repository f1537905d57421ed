/* SPDX-License-Identifier: MIT */
/* RFC 9562 UUIDs in lower-case text form, the only form that this system stores, compares or
 * accepts. */
#ifndef TEC_BASE_UUID_H
#define TEC_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UUID_TEXT_LEN 36
#define UUID_LEN      16

void uuid_new_v4(char out[UUID_TEXT_LEN + 1]);
/* Format these 16 bytes; the caller has set version and variant. */
void uuid_from_bytes(const uint8_t raw[UUID_LEN], char out[UUID_TEXT_LEN + 1]);
/* text must be valid (uuid_valid). */
void uuid_to_bytes(const char text[UUID_TEXT_LEN], uint8_t raw[UUID_LEN]);
bool uuid_valid(const char *s, size_t len); /* 8-4-4-4-12 lower-case hex, any version */

#endif
