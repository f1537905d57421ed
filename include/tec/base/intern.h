/* SPDX-License-Identifier: MIT */
/*
 * Texts of which one copy is kept, however many hold them: long names that several structs know,
 * ten thousand times. Each holder has a reference; the text lives, at one address, until the last
 * one is given back. For one thread, as all objects (kobj/meta.h). Never key material.
 */
#ifndef TEC_BASE_INTERN_H
#define TEC_BASE_INTERN_H

const char *intern_ref(const char *text); /* NULL stays NULL */
void intern_unref(const char *interned);  /* what intern_ref() returned; NULL is fine */

#endif
