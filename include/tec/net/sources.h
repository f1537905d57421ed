/* SPDX-License-Identifier: MIT */
/*
 * struct sources: one record for each source address (addr_source), for at most `max` sources. When
 * all records are in use, that of the source that was used least recently is given to a new one, so
 * that memory does not grow with the number of attackers.
 */
#ifndef TEC_NET_SOURCES_H
#define TEC_NET_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/net/addr.h"

struct sources;
struct sources *sources_new(uint32_t max, size_t record_size);
void sources_free(struct sources *s); /* NULL is fine */
/* The source's record, or NULL. It is borrowed until the next sources_use(). */
void *sources_find(const struct sources *s, const uint8_t source[ADDR_SOURCE_LEN]);
/* The same, but the source is now the most recently used one, and its record is created if it has
 * none: *fresh is then set, and the record is zeroed. */
void *sources_use(struct sources *s, const uint8_t source[ADDR_SOURCE_LEN], bool *fresh);

#endif
