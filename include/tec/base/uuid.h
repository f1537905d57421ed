/* SPDX-License-Identifier: MIT */
/* RFC 9562 UUIDs in their lower-case text form: the only form this system stores, compares or
 * accepts. */
#ifndef TEC_BASE_UUID_H
#define TEC_BASE_UUID_H

#include <stdbool.h>
#include <stddef.h>

#define UUID_TEXT_LEN 36

void uuid_new_v4(char out[UUID_TEXT_LEN + 1]);
bool uuid_valid(const char *s, size_t len); /* 8-4-4-4-12 lower-case hex, any version */

#endif
