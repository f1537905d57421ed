/* SPDX-License-Identifier: MIT */
/*
 * Text for a terminal: tables in kubectl's style, ages, colours, JSON, YAML. What comes from an
 * API is untrusted: characters that utf8_is_control() reports are printed as \uXXXX, so they
 * cannot drive the terminal.
 */
#ifndef TEC_REPORT_TEXT_H
#define TEC_REPORT_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/str.h"

#include "tec/base/utf8.h"

enum report_colour {
	REPORT_PLAIN,
	REPORT_GOOD,
	REPORT_WAITS,
	REPORT_BAD,
	REPORT_TITLE,
	REPORT_DIM
};

/* Appends text in a colour; plain if colours is false. Escaped as above; NULL counts as "". */
void report_text(struct strbuf *out, bool colours, enum report_colour colour, const char *text);
/* Appends text escaped and on one line: newlines and tabs become spaces. */
void report_safe(struct strbuf *out, const char *text);
/* Appends a line with its newline, escaped as a whole: any argument may be another program's. */
void report_line(struct strbuf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Appends an age as kubectl prints it: "5m12s", "3h4m", "12d". Negative (clock skew) is "0s". */
void report_age(struct strbuf *out, int64_t seconds);
/* Append any JSON value as a document. */
void report_json(struct strbuf *out, struct json_object *o);
void report_yaml(struct strbuf *out, struct json_object *o);

/* Pages that are printed again when they change. Zeroed before the first one. */
struct report_watch {
	struct strbuf shown; /* owned: the last page */
	bool started;        /* there was a page */
};
/* Appends what has to be printed for this page: nothing if it equals the last one. With colours the
 * page is drawn again in place. */
void report_watch_page(
	struct report_watch *w, bool colours, const struct strbuf *page, struct strbuf *out);
void report_watch_fini(struct report_watch *w);

#define REPORT_COLUMNS_MAX 8
struct report_table;
/* titles: static, NULL-terminated, at most REPORT_COLUMNS_MAX. */
struct report_table *report_table_new(const char *const *titles);
void report_table_row(struct report_table *t);
/* Sets the next cell of the current row; cells that are not set stay empty. */
void report_table_cell(struct report_table *t, enum report_colour colour, const char *text);
void report_table_age(struct report_table *t, int64_t seconds); /* negative: <unknown> */
/* Appends the table and frees it. */
void report_table_print(
	struct report_table *take_t, const char *indent, bool colours, struct strbuf *out);

#endif
