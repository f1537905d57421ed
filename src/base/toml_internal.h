/* SPDX-License-Identifier: MIT */
/* Between toml.c (structure) and toml_value.c (scalars). */
#ifndef TEC_BASE_TOML_INTERNAL_H
#define TEC_BASE_TOML_INTERNAL_H

#include "tec/base/toml.h"

struct toml {
	const char *p, *end;
	unsigned line, depth;
	struct err *err; /* borrowed; set once */
};

/* Sets the error with the line; returns -1. */
int toml_fail(struct toml *t, const char *what);
static inline int toml_peek(const struct toml *t)
{
	return t->p < t->end ? (unsigned char)*t->p : -1;
}
static inline bool toml_looking_at(const struct toml *t, const char *s)
{
	size_t n = strlen(s);

	return (size_t)(t->end - t->p) >= n && memcmp(t->p, s, n) == 0;
}
/* A basic or literal string of one line, or (multi) of several. -1: refused. */
int toml_string(struct toml *t, bool multi, struct strbuf *out);
/* A number, date, time, true or false. NULL: refused. */
struct json_object *toml_scalar(struct toml *t);

#endif
