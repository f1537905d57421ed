/* SPDX-License-Identifier: MIT */
/* Column widths are counted in code points, which is exact for ASCII: names and reasons are
 * ASCII, and messages come last. Everything is escaped on its way into the output. */
#include "config.h"

#include "tec/report/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/utf8.h"

/* Escaped when it is set, so that widths are those of the printed text. */
struct cell {
	char *text; /* owned, safe; NULL: none */
	enum report_colour colour;
};
struct row {
	struct cell cell[REPORT_COLUMNS_MAX];
	size_t n;
};
struct report_table {
	const char *const *titles; /* borrowed, static */
	size_t n_columns;
	struct row *row; /* owned */
	size_t n;
};

/* ---- one text */

/* utf8_escape() keeps newlines and tabs, which would break a table. */
void report_safe(struct strbuf *out, const char *text)
{
	size_t from = out->len;

	if (text)
		utf8_escape(out, text, strlen(text));
	for (size_t i = from; i < out->len; i++)
		if (out->data[i] == '\n' || out->data[i] == '\t')
			out->data[i] = ' ';
}

void report_line(struct strbuf *out, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	report_safe(out, strbuf_str(&text));
	strbuf_addc(out, '\n');
}

/* json-c escapes only what JSON requires; the rest of the control characters become \uXXXX too. */
void report_json(struct strbuf *out, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

	utf8_escape(out, text, strlen(text));
	strbuf_addc(out, '\n');
}

/* Colours are SGR sequences; the text between them is escaped, so it cannot end or change them. */
void report_text(struct strbuf *out, bool colours, enum report_colour colour, const char *text)
{
	static const char *const codes[] = {[REPORT_GOOD] = "32",
		[REPORT_WAITS] = "33",
		[REPORT_BAD] = "31",
		[REPORT_TITLE] = "1",
		[REPORT_DIM] = "2"};

	if (!colours || colour == REPORT_PLAIN || !text || !*text) {
		report_safe(out, text);
		return;
	}
	strbuf_addf(out, "\033[%sm", codes[colour]);
	report_safe(out, text);
	strbuf_adds(out, "\033[0m");
}

/* The same thresholds as kubectl (HumanDuration in k8s.io/apimachinery): two units while they are
 * small, one after that. */
void report_age(struct strbuf *out, int64_t s)
{
	int64_t m = s / 60, h = m / 60, d = h / 24;

	if (s < 0)
		s = 0;
	if (s < 120)
		strbuf_addf(out, "%" PRId64 "s", s);
	else if (m < 10 && s % 60)
		strbuf_addf(out, "%" PRId64 "m%" PRId64 "s", m, s % 60);
	else if (m < 180)
		strbuf_addf(out, "%" PRId64 "m", m);
	else if (h < 8 && m % 60)
		strbuf_addf(out, "%" PRId64 "h%" PRId64 "m", h, m % 60);
	else if (h < 48)
		strbuf_addf(out, "%" PRId64 "h", h);
	else if (d < 8 && h % 24)
		strbuf_addf(out, "%" PRId64 "d%" PRId64 "h", d, h % 24);
	else if (d < 730)
		strbuf_addf(out, "%" PRId64 "d", d);
	else
		strbuf_addf(out, "%" PRId64 "y", d / 365);
}

/* ---- YAML: block style, with every scalar as JSON writes it (YAML 1.2 is a superset of JSON) */

static void yaml_value(struct strbuf *out, struct json_object *o, int depth);

/* inline_first: the first member stands on the line of the "-" of its array. */
static void yaml_object(struct strbuf *out, struct json_object *o, int depth, bool inline_first)
{
	json_object_object_foreach (o, name, v) {
		strbuf_addf(out, "%*s", inline_first ? 0 : 2 * depth, "");
		inline_first = false;
		json_quote(out, name, strlen(name));
		strbuf_addc(out, ':');
		yaml_value(out, v, json_object_is_type(v, json_type_array) ? depth : depth + 1);
	}
}

/* A sequence is not indented below its key, as kubectl prints it. */
static void yaml_array(struct strbuf *out, struct json_object *o, int depth)
{
	for (size_t i = 0; i < json_len(o); i++) {
		struct json_object *v = json_at(o, i);

		strbuf_addf(out, "%*s-", 2 * depth, "");
		if (json_len(v) && json_object_is_type(v, json_type_object)) {
			strbuf_addc(out, ' ');
			yaml_object(out, v, depth + 1, true);
		} else {
			yaml_value(out, v, depth + 1);
		}
	}
}

/* Write a value after "name:" or "-", on the same line if it is a scalar, or an empty object or
 * array. */
static void yaml_value(struct strbuf *out, struct json_object *o, int depth)
{
	if (!json_len(o)) {
		cleanup_free char *text = json_text(o);

		strbuf_addf(out, " %s\n", o ? text : "null");
		return;
	}
	strbuf_addc(out, '\n');
	if (json_object_is_type(o, json_type_object))
		yaml_object(out, o, depth, false);
	else
		yaml_array(out, o, depth);
}

/* Built aside and escaped once at the end: JSON quoting leaves some control characters as they
 * are. What yaml_value() puts between a name and its value, a blank or a newline, is dropped. */
void report_yaml(struct strbuf *out, struct json_object *o)
{
	cleanup_strbuf struct strbuf yaml = STRBUF_INIT;

	yaml_value(&yaml, o, 0);
	utf8_escape(out, yaml.data + 1, yaml.len - 1);
}

/* ---- pages */

/* Always redrawn on a terminal, as something else may have been written to it: cursor to the top
 * left corner, erase the screen (ECMA-48 CUP and ED). */
void report_watch_page(
	struct report_watch *w, bool colours, const struct strbuf *page, struct strbuf *out)
{
	if (colours)
		strbuf_addf(out, "\033[H\033[2J%s", strbuf_str(page));
	else if (!w->started || !str_eq(strbuf_str(page), strbuf_str(&w->shown)))
		strbuf_addf(out, "%s%s", w->started ? "---\n" : "", strbuf_str(page));
	w->started = true;
	strbuf_reset(&w->shown);
	strbuf_add(&w->shown, strbuf_str(page), page->len);
}

void report_watch_fini(struct report_watch *w)
{
	strbuf_fini(&w->shown);
}

/* ---- tables */

/* Cells are kept until the table is printed: widths depend on all rows. */
struct report_table *report_table_new(const char *const *titles)
{
	struct report_table *t = xcalloc(1, sizeof(*t));

	t->titles = titles;
	while (t->n_columns < REPORT_COLUMNS_MAX && titles[t->n_columns])
		t->n_columns++;
	return t;
}

void report_table_row(struct report_table *t)
{
	ARRAY_GROW(t->row, t->n);
	memset(&t->row[t->n++], 0, sizeof(*t->row));
}

/* A row with too many cells is a bug of the caller, which no input can cause. */
void report_table_cell(struct report_table *t, enum report_colour colour, const char *text)
{
	struct row *r = &t->row[t->n - 1];
	cleanup_strbuf struct strbuf safe = STRBUF_INIT;

	if (r->n == t->n_columns)
		DIE("a row of a table has more than its %zu columns", t->n_columns);
	report_safe(&safe, text);
	r->cell[r->n++] = (struct cell){strbuf_steal(&safe), colour};
}

void report_table_age(struct report_table *t, int64_t seconds)
{
	cleanup_strbuf struct strbuf age = STRBUF_INIT;

	if (seconds >= 0)
		report_age(&age, seconds);
	report_table_cell(t, REPORT_PLAIN, seconds < 0 ? "<unknown>" : strbuf_str(&age));
}

/* Count code points: bytes that are not UTF-8 continuation bytes. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; text && *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Trailing empty cells are dropped, so that no line ends in spaces. Three spaces between columns,
 * as kubectl. */
static void print_row(const struct report_table *t, const struct cell *cells, const size_t *widths,
	const char *indent, bool colours, struct strbuf *out)
{
	size_t last = t->n_columns;

	while (last > 0 && !width(cells[last - 1].text))
		last--;
	strbuf_adds(out, indent);
	for (size_t i = 0; i < last; i++) {
		report_text(out, colours, cells[i].colour, cells[i].text);
		if (i + 1 < last)
			strbuf_addf(out, "%*s", (int)(widths[i] - width(cells[i].text)) + 3, "");
	}
	strbuf_addc(out, '\n');
}

/* Columns are as wide as their widest cell; the last one is not padded. */
void report_table_print(
	struct report_table *t, const char *indent, bool colours, struct strbuf *out)
{
	size_t widths[REPORT_COLUMNS_MAX] = {0};
	struct cell titles[REPORT_COLUMNS_MAX] = {{NULL, REPORT_PLAIN}};

	for (size_t k = 0; k < t->n_columns; k++) {
		titles[k] = (struct cell){(char *)(uintptr_t)t->titles[k], REPORT_TITLE};
		widths[k] = width(t->titles[k]);
		for (size_t i = 0; i < t->n; i++) {
			size_t w = width(t->row[i].cell[k].text);

			widths[k] = w > widths[k] ? w : widths[k];
		}
	}
	print_row(t, titles, widths, indent, colours, out);
	for (size_t i = 0; i < t->n; i++) {
		print_row(t, t->row[i].cell, widths, indent, colours, out);
		for (size_t k = 0; k < t->row[i].n; k++)
			free(t->row[i].cell[k].text);
	}
	free(t->row);
	free(t);
}
