/* SPDX-License-Identifier: MIT */
/*
 * Text for a terminal: tables in kubectl's style, ages, colours, JSON, YAML. What comes from an
 * API is untrusted: characters that utf8_is_control() reports are printed as \uXXXX, so they
 * cannot drive the terminal.
 */
#ifndef TEC_SHOW_TEXT_H
#define TEC_SHOW_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

#include "tec/base/utf8.h"

enum show_colour { SHOW_PLAIN, SHOW_GOOD, SHOW_WAITS, SHOW_BAD, SHOW_TITLE, SHOW_DIM };

/* Appends text in a colour; plain if colours is false. Escaped as above; NULL counts as "". */
void show_text(struct strbuf *out, bool colours, enum show_colour colour, const char *text);
/* Appends text escaped and on one line: newlines and tabs become spaces. */
void show_safe(struct strbuf *out, const char *text);
/* Appends a line with its newline, escaped as a whole: any argument may be another program's. */
void show_line(struct strbuf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends an age as kubectl prints it: "5m12s", "3h4m", "12d". Negative (clock skew) is "0s". */
void show_age(struct strbuf *out, int64_t seconds);
/* Append any JSON value as a document. */
void show_json(struct strbuf *out, struct json_object *o);
void show_yaml(struct strbuf *out, struct json_object *o);

/* Pages that are printed again when they change. Zeroed before the first one. */
struct show_watch {
	struct strbuf shown; /* owned: the last page */
	bool started;        /* there was a page */
};
/* Appends what has to be printed for this page: nothing if it equals the last one. With colours the
 * page is drawn again in place. */
void show_watch_page(
	struct show_watch *w, bool colours, const struct strbuf *page, struct strbuf *out);
void show_watch_fini(struct show_watch *w);

#define SHOW_COLUMNS_MAX 8
struct show_table;
/* titles: static, NULL-terminated, at most SHOW_COLUMNS_MAX. */
struct show_table *show_table_new(const char *const *titles);
void show_table_row(struct show_table *t);
/* Sets the next cell of the current row; cells that are not set stay empty. */
void show_table_cell(struct show_table *t, enum show_colour colour, const char *text);
void show_table_age(struct show_table *t, int64_t seconds); /* negative: <unknown> */
/* Appends the table and frees it. */
void show_table_print(
	struct show_table *take_t, const char *indent, bool colours, struct strbuf *out);

#endif
