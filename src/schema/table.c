/* SPDX-License-Identifier: MIT */
/*
 * The frame of a table, ages, and the columns of CRDs. A column whose path leads nowhere, or to a
 * value of another type, has null as cell, as kube-apiserver's.
 */
#include "config.h"

#include "tec/schema/table.h"

#include <stdio.h>
#include <string.h>

#include "schema_internal.h"
#include "table_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/jsonpath.h"

#define CREATED "When the object was made, by the server's clock."

/* ---- times */

/* Days since 1970-01-01 of the proleptic Gregorian calendar. */
static int64_t days(int64_t y, int64_t m, int64_t d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

int64_t table_seconds(const char *s)
{
	int y, mo, d, h, mi, sec, zh = 0, zm = 0, n = 0;
	const char *p;
	int64_t t;

	if (!s || !schema_format_holds("date-time", s, strlen(s)) ||
		sscanf(s, "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d%n", &y, &mo, &d, &h, &mi, &sec, &n) != 6)
		return -1;
	p = s + n;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	if ((*p == '+' || *p == '-') && sscanf(p + 1, "%2d:%2d", &zh, &zm) != 2)
		return -1;
	t = days(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec;
	return t + (*p == '-' ? 1 : -1) * (zh * 3600 + zm * 60);
}

void schema_age_text(int64_t s, char out[SCHEMA_AGE_LEN])
{
	long long m = s / 60, h = s / 3600, d = h / 24, y = d / 365;

	if (s < -1)
		snprintf(out, SCHEMA_AGE_LEN, "<invalid>");
	else if (s < 120)
		snprintf(out, SCHEMA_AGE_LEN, "%llds", s < 0 ? 0 : (long long)s);
	else if (m < 10 && s % 60)
		snprintf(out, SCHEMA_AGE_LEN, "%lldm%llds", m, (long long)s % 60);
	else if (m < 180)
		snprintf(out, SCHEMA_AGE_LEN, "%lldm", m);
	else if (h < 8 && m % 60)
		snprintf(out, SCHEMA_AGE_LEN, "%lldh%lldm", h, m % 60);
	else if (h < 48)
		snprintf(out, SCHEMA_AGE_LEN, "%lldh", h);
	else if (h < 192 && h % 24)
		snprintf(out, SCHEMA_AGE_LEN, "%lldd%lldh", d, h % 24);
	else if (d < 730)
		snprintf(out, SCHEMA_AGE_LEN, "%lldd", d);
	else if (y < 8 && d % 365)
		snprintf(out, SCHEMA_AGE_LEN, "%lldy%lldd", y, d % 365);
	else
		snprintf(out, SCHEMA_AGE_LEN, "%lldy", y);
}

/* ---- cells */

void table_text(struct table_row *r, const char *s)
{
	json_push(r->cells, json_object_new_string(s ? s : ""));
}

void table_take(struct table_row *r, char *take_text)
{
	table_text(r, take_text);
	free(take_text);
}

void table_int(struct table_row *r, int64_t v)
{
	json_push(r->cells, json_object_new_int64(v));
}

void table_member(struct table_row *r, const char *path, const char *none)
{
	struct json_object *v = json_get(r->o, path);
	const char *s = v ? json_object_get_string(v) : "";

	table_text(r, *s ? s : none);
}

void table_age(struct table_row *r, const char *path)
{
	int64_t t = table_seconds(json_get_str(r->o, path));
	char age[SCHEMA_AGE_LEN];

	if (t < 0) {
		table_text(r, "<unknown>");
		return;
	}
	schema_age_text(r->now_s - t, age);
	table_text(r, age);
}

/* ---- columns of CRDs */

static bool first_value(struct json_object *v, void *arg)
{
	struct json_object **out = arg;

	*out = json_object_get(v);
	return false;
}

/* As Go's text/template prints it: lists and maps as JSON. */
static struct json_object *text_cell(struct json_object *v)
{
	struct strbuf b = STRBUF_INIT;
	struct json_object *o;

	if (json_object_is_type(v, json_type_string))
		return json_object_get(v);
	schema_json_go(&b, v);
	o = json_object_new_string_len(strbuf_str(&b), (int)b.len);
	strbuf_fini(&b);
	return o;
}

static struct json_object *date_cell(struct json_object *v, int64_t now_s)
{
	const char *s = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
	int64_t t = table_seconds(s);
	char age[SCHEMA_AGE_LEN];

	if (!s)
		return NULL;
	if (t < 0)
		return json_object_new_string(*s ? "<invalid>" : "<unknown>");
	schema_age_text(now_s - t, age);
	return json_object_new_string(age);
}

static struct json_object *crd_cell(
	struct json_object *v, const struct schema_column *c, int64_t now_s)
{
	bool number =
		json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);

	if (!v)
		return NULL;
	if (str_eq(c->type, "string"))
		return text_cell(v);
	if (str_eq(c->type, "date"))
		return date_cell(v, now_s);
	if (str_eq(c->type, "integer") && number)
		return json_object_new_int64(json_object_get_int64(v));
	if (str_eq(c->type, "number") && number)
		return json_object_get(v);
	if (str_eq(c->type, "boolean") && json_object_is_type(v, json_type_boolean))
		return json_object_get(v);
	return NULL;
}

static const struct schema_column column_name = {
	"Name", "string", "name", "What the object is called, once in its namespace.", NULL, 0};
static const struct schema_column column_age = {
	"Age", "date", "", CREATED, ".metadata.creationTimestamp", 0};

/* The columns of a table: those of a CRD behind Name, or those of a built-in kind. */
struct columns {
	const struct schema_column **column; /* owned array */
	struct schema_jsonpath **path;       /* owned; NULL: of a built-in kind */
	size_t n;
	const struct table_kind *builtin;
};

static void add_column(struct columns *c, const struct schema_column *column)
{
	struct err err = ERR_INIT;

	ARRAY_GROW(c->column, c->n);
	ARRAY_GROW(c->path, c->n);
	c->column[c->n] = column;
	c->path[c->n] = column->path ? schema_jsonpath_new(column->path, &err) : NULL;
	c->n++;
}

static struct columns columns_of(const struct schema_kind *k)
{
	struct columns c = {.builtin = k->crd ? NULL : table_builtin(k->group, k->kind)};

	if (c.builtin) {
		for (size_t i = 0; i < c.builtin->n_columns; i++)
			add_column(&c, &c.builtin->columns[i]);
		return c;
	}
	add_column(&c, &column_name);
	for (size_t i = 0; i < k->crd->n_columns; i++)
		add_column(&c, &k->crd->columns[i]);
	if (!k->crd->n_columns)
		add_column(&c, &column_age);
	return c;
}

static void columns_fini(struct columns *c)
{
	for (size_t i = 0; i < c->n; i++)
		schema_jsonpath_free(c->path[i]);
	free(c->column);
	free(c->path);
}

static void fill_by_path(struct table_row *r, const struct columns *c)
{
	table_member(r, "metadata/name", "");
	for (size_t i = 1; i < c->n; i++) {
		struct json_object *v = NULL;

		if (c->path[i])
			schema_jsonpath_find(c->path[i], r->o, first_value, &v);
		json_push(r->cells, crd_cell(v, c->column[i], r->now_s));
		json_object_put(v);
	}
}

/* ---- the frame */

static struct json_object *definitions(const struct columns *c)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < c->n; i++) {
		const struct schema_column *column = c->column[i];
		struct json_object *o = json_obj();

		json_add_str(o, "name", column->name);
		json_add_str(o, "type", column->type);
		json_add_str(o, "format", column->format);
		if (*column->description || !column->path) {
			json_add_str(o, "description", column->description);
		} else {
			cleanup_free char *text = xasprintf(
				"Custom resource definition column (in JSONPath format): %s",
				column->path);

			json_add_str(o, "description", text);
		}
		json_add_int(o, "priority", column->priority);
		json_push(a, o);
	}
	return a;
}

struct json_object *schema_partial_metadata(struct json_object *o, const char *version)
{
	struct json_object *partial = json_obj(), *metadata = json_get(o, "metadata");
	cleanup_free char *api = xasprintf("meta.k8s.io/%s", version);

	json_add_str(partial, "kind", "PartialObjectMetadata");
	json_add_str(partial, "apiVersion", api);
	return json_add(partial, "metadata", metadata ? json_object_get(metadata) : json_obj());
}

static struct json_object *row_object(const struct schema_table *t, struct json_object *o)
{
	switch (t->include) {
	case SCHEMA_INCLUDE_METADATA:
		return schema_partial_metadata(o, t->version);
	case SCHEMA_INCLUDE_OBJECT:
		return json_object_get(o);
	case SCHEMA_INCLUDE_NONE:
		break;
	}
	return NULL;
}

struct json_object *schema_table_new(
	const struct schema_table *t, struct json_object *const *objects, size_t n)
{
	struct json_object *table = json_obj(), *rows = json_arr();
	cleanup_free char *api = xasprintf("meta.k8s.io/%s", t->version);
	struct columns c = columns_of(t->kind);

	json_add_str(table, "kind", "Table");
	json_add_str(table, "apiVersion", api);
	json_add(table, "metadata", json_obj());
	json_add(table, "columnDefinitions", t->no_headers ? NULL : definitions(&c));
	for (size_t i = 0; i < n; i++) {
		struct table_row r = {json_arr(), objects[i], t->now_s};
		struct json_object *row = json_obj();

		if (c.builtin)
			c.builtin->fill(&r);
		else
			fill_by_path(&r, &c);
		json_add(row, "cells", r.cells);
		json_push(rows, json_add(row, "object", row_object(t, objects[i])));
	}
	columns_fini(&c);
	return json_add(table, "rows", rows);
}
