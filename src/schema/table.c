/* SPDX-License-Identifier: MIT */
/*
 * Tables: their frame, ages, the columns of crd/ and those of built-in kinds, as kubectl get -o
 * wide shows them; clients hide columns with a priority. A column whose path leads nowhere has null
 * as its cell, as with kube-apiserver.
 */
#include "config.h"

#include "tec/schema/table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/crd.h"

/* Parse an RFC 3339 time to seconds; -1: invalid. */
static int64_t seconds(const char *s)
{
	int64_t us;

	return clock_parse(s, &us) < 0 ? -1 : us / 1000000;
}

/* The steps of apimachinery's duration.HumanDuration: two units while the first is small, then
 * one. */
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

/* A column, and how its cells are made. */
struct column {
	struct schema_column c;
	struct json_object *(*cell)(const struct column *c, struct json_object *o, int64_t now_s);
	const char *other; /* a second path; NULL: none */
};

/* ---- columns of crd/ */

/* Evaluate [?(@.KEY=="VALUE")]: return the first element with that member, and move path behind
 * it. */
static struct json_object *element_at(struct json_object *o, const char **path)
{
	const char *key = *path + strlen("[?(@."),
		   *value = key + strcspn(key, "=") + strlen("==\""),
		   *end = value + strcspn(value, "\"");
	cleanup_free char *member = xstrndup(key, strcspn(key, "="));
	cleanup_free char *want = xstrndup(value, (size_t)(end - value));

	*path = end + strlen("\")]");
	for (size_t i = 0; i < json_len(o); i++)
		if (str_eq(json_get_str(json_at(o, i), member), want))
			return json_at(o, i);
	return NULL;
}

/* Evaluate a column's path. It is .a.b or .a.list[?(@.KEY=="VALUE")].c, which a test of crd/
 * ensures. Borrowed. */
static struct json_object *value_at(struct json_object *o, const char *path)
{
	while (o && *path == '.') {
		size_t n = strcspn(++path, ".[");
		cleanup_free char *name = xstrndup(path, n);

		o = json_get(o, name);
		path += n;
		if (*path == '[')
			o = element_at(o, &path);
	}
	return o;
}

/* Columns of type date are shown as ages; an empty string is "<unknown>", an invalid one
 * "<invalid>". */
static struct json_object *crd_cell(const struct column *c, struct json_object *o, int64_t now_s)
{
	struct json_object *v = value_at(o, c->c.path);
	const char *s = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
	int64_t t = seconds(s);
	char text[SCHEMA_AGE_LEN];

	if (!s || !str_eq(c->c.type, "date"))
		return s ? json_object_get(v) : NULL;
	if (t < 0)
		return json_str(*s ? "<invalid>" : "<unknown>");
	schema_age_text(now_s - t, text);
	return json_str(text);
}

/* ---- columns of built-in kinds */

/* The column's path names the member that it shows. In built-in columns an absent member is an
 * empty string; only CRD columns have null. */

static const char *text_at(struct json_object *o, const char *path)
{
	const char *s = json_get_str(o, path);

	return s ? s : "";
}

static struct json_object *take_text(char *take_s)
{
	cleanup_free char *s = take_s;

	return json_str(s);
}

static struct json_object *member(const struct column *c, struct json_object *o, int64_t now_s)
{
	struct json_object *v = json_get(o, c->c.path);

	return json_str(v ? json_object_get_string(v) : "");
}

/* The number of members or elements. */
static struct json_object *count(const struct column *c, struct json_object *o, int64_t now_s)
{
	return json_int((int64_t)(json_len(json_get(o, c->c.path)) +
				  (c->other ? json_len(json_get(o, c->other)) : 0)));
}

/* The time at the first path that has one, as an age. */
static struct json_object *age(const struct column *c, struct json_object *o, int64_t now_s)
{
	int64_t t = seconds(json_get_str(o, c->c.path));
	char text[SCHEMA_AGE_LEN] = "<unknown>";

	if (t < 0 && c->other)
		t = seconds(json_get_str(o, c->other));
	if (t >= 0)
		schema_age_text(now_s - t, text);
	return json_str(text);
}

static struct json_object *role(const struct column *c, struct json_object *o, int64_t now_s)
{
	return take_text(xasprintf("%s/%s", text_at(o, c->c.path), text_at(o, c->other)));
}

/* The subjects of the kind `other`; ServiceAccounts are shown with their namespace. */
static struct json_object *subjects(const struct column *c, struct json_object *o, int64_t now_s)
{
	struct json_object *a = json_get_arr(o, c->c.path);
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *e = json_at(a, i);

		if (!str_eq(json_get_str(e, "kind"), c->other))
			continue;
		strbuf_adds(&b, b.len ? ", " : "");
		if (str_eq(c->other, "ServiceAccount"))
			strbuf_addf(&b, "%s/", text_at(e, "namespace"));
		strbuf_adds(&b, text_at(e, "name"));
	}
	return json_str(strbuf_str(&b));
}

/* With a series, its time is shown. */
static struct json_object *last_seen(const struct column *c, struct json_object *o, int64_t now_s)
{
	static const struct column series = {.c.path = "series/lastObservedTime"},
				   first = {.c.path = "firstTimestamp", .other = "eventTime"};

	return age(json_get_obj(o, "series")                  ? &series
		   : seconds(json_get_str(o, c->c.path)) >= 0 ? c
							      : &first,
		o, now_s);
}

/* A string column with a number in it, as in kube-apiserver. With a series, its count is shown. */
static struct json_object *times(const struct column *c, struct json_object *o, int64_t now_s)
{
	int64_t n = json_get_int(o, json_get_obj(o, "series") ? c->other : c->c.path, 0);

	return json_int(n ? n : 1);
}

/* "machine/a": the kind in lower case, as in kubectl's arguments. */
static struct json_object *involved(const struct column *c, struct json_object *o, int64_t now_s)
{
	const char *name = text_at(o, c->other);
	char *text = xasprintf("%s%s%s", text_at(o, c->c.path), *name ? "/" : "", name);

	for (char *p = text; *p && *p != '/'; p++)
		*p = (char)tolower((unsigned char)*p);
	return take_text(text);
}

/* Events of core/v1 and events.k8s.io/v1 store the source in different members. */
static struct json_object *source(const struct column *c, struct json_object *o, int64_t now_s)
{
	const char *component = text_at(o, c->c.path), *host = text_at(o, c->other);

	component = *component ? component : text_at(o, "reportingComponent");
	host = *host ? host : text_at(o, "reportingInstance");
	return take_text(xasprintf("%s%s%s", component, *host ? ", " : "", host));
}

/* kube-apiserver trims messages, too: many end in a newline. */
static struct json_object *trimmed(const struct column *c, struct json_object *o, int64_t now_s)
{
	static const char blanks[] = " \t\r\n\v\f";
	const char *s = text_at(o, c->c.path);
	size_t len;

	s += strspn(s, blanks);
	for (len = strlen(s); len && strchr(blanks, s[len - 1]); len--)
		;
	return json_str_len(s, len);
}

#define COLUMN(name, priority, path, ...)                                                          \
	{                                                                                          \
		{name, "string", "", name ".", path, priority}, __VA_ARGS__                        \
	}
#define NAME(priority)                                                                             \
	{                                                                                          \
		{"Name", "string", "name", "Name of the object.", "metadata/name", priority},      \
			member, NULL                                                               \
	}
#define AGE COLUMN("Age", 0, "metadata/creationTimestamp", age, NULL)

static const struct column configmap[] = {
	NAME(0), COLUMN("Data", 0, "data", count, "binaryData"), AGE};
static const struct column secret[] = {NAME(0), COLUMN("Type", 0, "type", member, NULL),
	COLUMN("Data", 0, "data", count, NULL), AGE};
static const struct column namespace[] = {
	NAME(0), COLUMN("Status", 0, "status/phase", member, NULL), AGE};
static const struct column account[] = {NAME(0), COLUMN("Secrets", 0, "secrets", count, NULL), AGE};
static const struct column rolebinding[] = {NAME(0),
	COLUMN("Role", 0, "roleRef/kind", role, "roleRef/name"), AGE,
	COLUMN("Users", 1, "subjects", subjects, "User"),
	COLUMN("Groups", 1, "subjects", subjects, "Group"),
	COLUMN("ServiceAccounts", 1, "subjects", subjects, "ServiceAccount")};
/* Events of both groups are stored in the form of core/v1. */
static const struct column event[] = {COLUMN("Last Seen", 0, "lastTimestamp", last_seen, NULL),
	COLUMN("Type", 0, "type", member, NULL), COLUMN("Reason", 0, "reason", member, NULL),
	COLUMN("Object", 0, "involvedObject/kind", involved, "involvedObject/name"),
	COLUMN("Subobject", 1, "involvedObject/fieldPath", member, NULL),
	COLUMN("Source", 1, "source/component", source, "source/host"),
	COLUMN("Message", 0, "message", trimmed, NULL),
	COLUMN("First Seen", 1, "firstTimestamp", age, "eventTime"),
	COLUMN("Count", 1, "count", times, "series/count"), NAME(1)};

/* All kinds that are stored. */
static const struct {
	const char *kind;
	const struct column *columns;
	size_t n_columns;
} kinds[] = {
	{"ConfigMap", configmap, ARRAY_LEN(configmap)},
	{"Event", event, ARRAY_LEN(event)},
	{"Namespace", namespace, ARRAY_LEN(namespace)},
	{"Secret", secret, ARRAY_LEN(secret)},
	{"ServiceAccount", account, ARRAY_LEN(account)},
	{"RoleBinding", rolebinding, ARRAY_LEN(rolebinding)},
};

/* Return column i of a kind; false: the end. For a CRD, Name comes first. */
static bool column_at(const struct schema_kind *k, size_t i, struct column *c)
{
	static const struct column name = {
		{"Name", "string", "name", "Name of the object, unique in its namespace.",
			"metadata/name", 0},
		member, NULL};
	size_t b = 0;

	if (k->crd && i <= k->crd->n_columns) {
		*c = i ? (struct column){k->crd->columns[i - 1], crd_cell, NULL} : name;
		return true;
	}
	while (!k->crd && !str_eq(kinds[b].kind, k->kind))
		if (++b == ARRAY_LEN(kinds))
			DIE("%s has no columns", k->kind);
	if (k->crd || i >= kinds[b].n_columns)
		return false;
	*c = kinds[b].columns[i];
	return true;
}

/* ---- the frame */

static struct json_object *definitions(const struct schema_kind *k)
{
	struct json_object *a = json_arr();
	struct column column;

	for (size_t i = 0; column_at(k, i, &column); i++) {
		const struct schema_column *c = &column.c;
		struct json_object *o = json_obj();

		json_add_str(o, "name", c->name);
		json_add_str(o, "type", c->type);
		json_add_str(o, "format", c->format ? c->format : "");
		json_add_str(o, "description", c->description ? c->description : "");
		json_push(a, json_add_int(o, "priority", c->priority));
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

/* A row has the cells and, as the client chose with includeObject, the object. */
static struct json_object *row_of(const struct schema_table *t, struct json_object *o)
{
	struct json_object *cells = json_arr(), *shown = NULL;
	struct column c;

	for (size_t i = 0; column_at(t->kind, i, &c); i++)
		json_push(cells, c.cell(&c, o, t->now_s));
	if (t->include == SCHEMA_INCLUDE_METADATA)
		shown = schema_partial_metadata(o, t->version);
	else if (t->include == SCHEMA_INCLUDE_OBJECT)
		shown = json_object_get(o);
	return json_add(json_add(json_obj(), "cells", cells), "object", shown);
}

/* In a watch each event is a table of one row; only the first has column definitions. */
struct json_object *schema_table_new(const struct schema_table *t, struct json_object *o)
{
	struct json_object *table = json_obj(), *rows = json_arr();
	cleanup_free char *api = xasprintf("meta.k8s.io/%s", t->version);

	json_add_str(table, "kind", "Table");
	json_add_str(table, "apiVersion", api);
	json_add(table, "metadata", json_obj());
	json_add(table, "columnDefinitions", t->no_headers ? NULL : definitions(t->kind));
	if (o)
		json_push(rows, row_of(t, o));
	return json_add(table, "rows", rows);
}
