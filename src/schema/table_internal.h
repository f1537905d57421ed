/* SPDX-License-Identifier: MIT */
/*
 * Between table.c and the columns of the built-in kinds (table_builtin.c, table_event.c).
 */
#ifndef SCHEMA_TABLE_INTERNAL_H
#define SCHEMA_TABLE_INTERNAL_H

#include <json-c/json.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/schema/crd.h"

/* One row in the making. */
struct table_row {
	struct json_object *cells; /* an array */
	struct json_object *o;
	int64_t now_s;
};

void table_text(struct table_row *r, const char *s); /* NULL: "" */
void table_take(struct table_row *r, char *take_text);
void table_int(struct table_row *r, int64_t v);
/* The member at a path, and what stands for it when it is absent or empty. */
void table_member(struct table_row *r, const char *path, const char *none);
/* The time at a path as an age; "<unknown>" without one. */
void table_age(struct table_row *r, const char *path);
/* RFC 3339 as seconds; -1: it is none. */
int64_t table_seconds(const char *s);

/* An array's; 0 for NULL. */
static inline size_t table_length(struct json_object *a)
{
	return a ? json_object_array_length(a) : 0;
}

struct table_kind {
	const char *group, *kind;
	const struct schema_column *columns; /* behind none: Name is one of them */
	size_t n_columns;
	void (*fill)(struct table_row *r);
};
/* Never NULL. */
const struct table_kind *table_builtin(const char *group, const char *kind);
void table_fill_event(struct table_row *r);

#endif
