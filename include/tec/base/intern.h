/* SPDX-License-Identifier: MIT */
/*
 * Interned strings: a single shared copy of texts and bytes that many structs hold, ten thousand
 * times. Each holder owns a reference; the copy keeps its address until the last is released.
 * For one thread only, like all objects (kobj/meta.h). Never for key material.
 */
#ifndef TEC_BASE_INTERN_H
#define TEC_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

const char *intern_ref(const char *text); /* NULL stays NULL */
const uint8_t *intern_ref_bytes(const void *bytes, size_t len);
void intern_unref(const void *interned); /* what one of these returned; NULL is fine */

#endif
