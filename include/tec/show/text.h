/* SPDX-License-Identifier: MIT */
/*
 * Text as people read it in a terminal: tables with kubectl's look, ages, colours, JSON, YAML. What comes
 * from an API is another program's text: what str_is_control() names is printed as \uXXXX.
 */
#ifndef TEC_SHOW_TEXT_H
#define TEC_SHOW_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/str.h"

enum show_colour { SHOW_PLAIN, SHOW_GOOD, SHOW_WAITS, SHOW_BAD, SHOW_TITLE, SHOW_DIM };

/* text in a colour; colours false: as SHOW_PLAIN. Safe as above; NULL counts as "". */
void show_text(struct strbuf *out, bool colours, enum show_colour colour, const char *text);
/* Safe, and on one line: a line end becomes a blank. */
void show_safe(struct strbuf *out, const char *text);
/* "5m12s", "3h4m", "12d": as kubectl. Negative (a clock that is behind) is "0s". */
void show_age(struct strbuf *out, int64_t seconds);
/* Any JSON value as a document. */
void show_json(struct strbuf *out, struct json_object *o);
void show_yaml(struct strbuf *out, struct json_object *o);

#define SHOW_COLUMNS_MAX 8
struct show_table;
/* titles: NULL-terminated, SHOW_COLUMNS_MAX at most. */
struct show_table *show_table_new(const char *const *titles);
void show_table_free(struct show_table *t);
void show_table_row(struct show_table *t);
/* The next cell of the current row; what has no cell is empty. */
void show_table_cell(struct show_table *t, enum show_colour colour, const char *text);
void show_table_age(struct show_table *t, int64_t seconds); /* negative: <unknown> */
void show_table_print(
	const struct show_table *t, const char *indent, bool colours, struct strbuf *out);

#endif
