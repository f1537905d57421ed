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

/* ---- cells */

/* A row under construction. */
struct row {
	struct json_object *cells; /* an array */
	struct json_object *o;
	int64_t now_s;
};

static void push_text(struct row *r, const char *s)
{
	json_push_str(r->cells, s ? s : "");
}

static void push_take(struct row *r, char *take_text)
{
	push_text(r, take_text);
	free(take_text);
}

static void push_int(struct row *r, int64_t v)
{
	json_push(r->cells, json_int(v));
}

/* In built-in columns an absent member is an empty string; only CRD columns have null. */
static void push_member(struct row *r, const char *path)
{
	struct json_object *v = json_get(r->o, path);

	push_text(r, v ? json_object_get_string(v) : "");
}

/* Append the time at a path as an age. */
static void push_time(struct row *r, const char *path)
{
	int64_t t = seconds(json_get_str(r->o, path));
	char age[SCHEMA_AGE_LEN] = "<unknown>";

	if (t >= 0)
		schema_age_text(r->now_s - t, age);
	push_text(r, age);
}

static void push_name(struct row *r)
{
	push_member(r, "metadata/name");
}

static void push_age(struct row *r)
{
	push_time(r, "metadata/creationTimestamp");
}

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
static struct json_object *crd_cell(
	struct json_object *v, const struct schema_column *c, int64_t now_s)
{
	const char *s = json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
	int64_t t = seconds(s);
	char age[SCHEMA_AGE_LEN];

	if (!s || !str_eq(c->type, "date"))
		return s ? json_object_get(v) : NULL;
	if (t < 0)
		return json_str(*s ? "<invalid>" : "<unknown>");
	schema_age_text(now_s - t, age);
	return json_str(age);
}

/* The server puts Name before the columns of a CRD. */
static void fill_by_path(struct row *r, const struct schema_crd *crd)
{
	push_name(r);
	for (size_t i = 0; i < crd->n_columns; i++)
		json_push(r->cells,
			crd_cell(value_at(r->o, crd->columns[i].path), &crd->columns[i], r->now_s));
}

/* ---- columns of built-in kinds */

#define NAME                                                                                       \
	{                                                                                          \
		.name = "Name", .type = "string", .format = "name",                                \
		.description = "Name of the object."                                               \
	}
#define COLUMN(n)                                                                                  \
	{                                                                                          \
		.name = n, .type = "string", .format = "", .description = n "."                    \
	}
#define WIDE(n)                                                                                    \
	{                                                                                          \
		.name = n, .type = "string", .format = "", .description = n ".", .priority = 1     \
	}
#define AGE COLUMN("Age")

static size_t members(struct json_object *o, const char *path)
{
	return json_len(json_get_obj(o, path));
}

static const struct schema_column configmap[] = {NAME, COLUMN("Data"), AGE};
/* Data is the number of keys, not their size. */
static void fill_configmap(struct row *r)
{
	push_name(r);
	push_int(r, (int64_t)(members(r->o, "data") + members(r->o, "binaryData")));
	push_age(r);
}

static const struct schema_column secret[] = {NAME, COLUMN("Type"), COLUMN("Data"), AGE};
static void fill_secret(struct row *r)
{
	push_name(r);
	push_member(r, "type");
	push_int(r, (int64_t)members(r->o, "data"));
	push_age(r);
}

static const struct schema_column namespace[] = {NAME, COLUMN("Status"), AGE};
static void fill_namespace(struct row *r)
{
	push_name(r);
	push_member(r, "status/phase");
	push_age(r);
}

static const struct schema_column account[] = {NAME, COLUMN("Secrets"), AGE};
static void fill_account(struct row *r)
{
	push_name(r);
	push_int(r, (int64_t)json_len(json_get_arr(r->o, "secrets")));
	push_age(r);
}

/* ServiceAccounts are shown with their namespace. */
static void push_subjects(struct row *r, const char *kind)
{
	struct json_object *a = json_get_arr(r->o, "subjects");
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *e = json_at(a, i);
		const char *ns = json_get_str(e, "namespace"), *name = json_get_str(e, "name");

		if (!str_eq(json_get_str(e, "kind"), kind))
			continue;
		strbuf_adds(&b, b.len ? ", " : "");
		if (str_eq(kind, "ServiceAccount"))
			strbuf_addf(&b, "%s/", ns ? ns : "");
		strbuf_adds(&b, name ? name : "");
	}
	push_take(r, strbuf_steal(&b));
}

static const struct schema_column rolebinding[] = {
	NAME, COLUMN("Role"), AGE, WIDE("Users"), WIDE("Groups"), WIDE("ServiceAccounts")};
static void fill_rolebinding(struct row *r)
{
	const char *kind = json_get_str(r->o, "roleRef/kind"),
		   *name = json_get_str(r->o, "roleRef/name");

	push_name(r);
	push_take(r, xasprintf("%s/%s", kind ? kind : "", name ? name : ""));
	push_age(r);
	push_subjects(r, "User");
	push_subjects(r, "Group");
	push_subjects(r, "ServiceAccount");
}

static const struct schema_column event[] = {COLUMN("Last Seen"), COLUMN("Type"), COLUMN("Reason"),
	COLUMN("Object"), WIDE("Subobject"), WIDE("Source"), COLUMN("Message"), WIDE("First Seen"),
	WIDE("Count"),
	{.name = "Name",
		.type = "string",
		.format = "name",
		.description = "Name of the object.",
		.priority = 1}};

/* Events of core/v1 and events.k8s.io/v1 store the source in different members. */
static const char *either(struct json_object *o, const char *path, const char *other)
{
	const char *s = json_get_str(o, path);

	return s && *s ? s : json_get_str(o, other);
}

/* "machine/a": the kind in lower case, as in kubectl's arguments. */
static void push_event_object(struct row *r)
{
	const char *kind = json_get_str(r->o, "involvedObject/kind"),
		   *name = json_get_str(r->o, "involvedObject/name");
	char *text =
		xasprintf("%s%s%s", kind ? kind : "", name && *name ? "/" : "", name ? name : "");

	for (char *p = text; *p && *p != '/'; p++)
		*p = (char)tolower((unsigned char)*p);
	push_take(r, text);
}

/* kube-apiserver trims messages, too: many end in a newline. */
static char *trim(const char *s)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t len;

	s = s ? s + strspn(s, blanks) : "";
	for (len = strlen(s); len && strchr(blanks, s[len - 1]); len--)
		;
	return xstrndup(s, len);
}

/* Events of both groups are stored in the form of core/v1. With a series, its count and time are
 * shown. */
static void fill_event(struct row *r)
{
	const char *first = seconds(json_get_str(r->o, "firstTimestamp")) >= 0 ? "firstTimestamp"
									       : "eventTime",
		   *last = seconds(json_get_str(r->o, "lastTimestamp")) >= 0 ? "lastTimestamp"
									     : first,
		   *source = either(r->o, "source/component", "reportingComponent"),
		   *host = either(r->o, "source/host", "reportingInstance");
	bool series = json_get_obj(r->o, "series") != NULL;
	int64_t count = json_get_int(r->o, series ? "series/count" : "count", 0);

	push_time(r, series ? "series/lastObservedTime" : last);
	push_member(r, "type");
	push_member(r, "reason");
	push_event_object(r);
	push_member(r, "involvedObject/fieldPath");
	push_take(r, xasprintf("%s%s%s", source ? source : "", host && *host ? ", " : "",
			     host ? host : ""));
	push_take(r, trim(json_get_str(r->o, "message")));
	push_time(r, first);
	/* A string column with a number in it, as in kube-apiserver. */
	push_int(r, count ? count : 1);
	push_name(r);
}

#define KIND(k, c, f)                                                                              \
	{                                                                                          \
		k, c, ARRAY_LEN(c), f                                                              \
	}
/* All kinds that are stored; Event is the same in both groups. */
static const struct builtin {
	const char *kind;
	const struct schema_column *columns;
	size_t n_columns;
	void (*fill)(struct row *r);
} kinds[] = {
	KIND("ConfigMap", configmap, fill_configmap),
	KIND("Event", event, fill_event),
	KIND("Namespace", namespace, fill_namespace),
	KIND("Secret", secret, fill_secret),
	KIND("ServiceAccount", account, fill_account),
	KIND("RoleBinding", rolebinding, fill_rolebinding),
};

/* A kind without columns is a bug of this table. */
static const struct builtin *builtin_of(const struct schema_kind *k)
{
	size_t i = 0;

	while (!str_eq(kinds[i].kind, k->kind))
		if (++i == ARRAY_LEN(kinds))
			DIE("%s has no columns", k->kind);
	return &kinds[i];
}

/* ---- the frame */

static void push_definition(struct json_object *list, const struct schema_column *c)
{
	struct json_object *o = json_obj();

	json_add_str(o, "name", c->name);
	json_add_str(o, "type", c->type);
	json_add_str(o, "format", c->format);
	json_add_str(o, "description", c->description);
	json_push(list, json_add_int(o, "priority", c->priority));
}

/* Built-in kinds list all their columns; for a CRD, Name comes first. */
static struct json_object *definitions(const struct schema_kind *k)
{
	static const struct schema_column name = {
		"Name", "string", "name", "Name of the object, unique in its namespace.", NULL, 0};
	const struct schema_column *columns = k->crd ? k->crd->columns : builtin_of(k)->columns;
	size_t n = k->crd ? k->crd->n_columns : builtin_of(k)->n_columns;
	struct json_object *a = json_arr();

	if (k->crd)
		push_definition(a, &name);
	for (size_t i = 0; i < n; i++)
		push_definition(a, &columns[i]);
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

/* The client chooses with includeObject; metadata is the default. */
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

/* A row has the cells and, as the client asked for it, the object. */
static struct json_object *row_of(const struct schema_table *t, struct json_object *o)
{
	struct row r = {json_arr(), o, t->now_s};

	if (t->kind->crd)
		fill_by_path(&r, t->kind->crd);
	else
		builtin_of(t->kind)->fill(&r);
	return json_add(json_add(json_obj(), "cells", r.cells), "object", row_object(t, o));
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
