/* SPDX-License-Identifier: MIT */
/*
 * Interned strings: a single shared copy for long names that many structs hold, ten thousand times.
 * Each holder owns a reference; the string keeps its address until the last reference is released.
 * For one thread only, like all objects (kobj/meta.h). Never for key material.
 */
#ifndef TEC_BASE_INTERN_H
#define TEC_BASE_INTERN_H

const char *intern_ref(const char *text); /* NULL stays NULL */
void intern_unref(const char *interned);  /* what intern_ref() returned; NULL is fine */

#endif
