/* SPDX-License-Identifier: MIT */
/* What kubectl get shows. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/builtin.h"
#include "tec/schema/regex.h"
#include "tec/schema/table.h"

#define NOW 1704164645 /* 2024-01-02T03:04:05Z */

Test(schema_table, ages)
{
	static const struct {
		int64_t s;
		const char *text;
	} rows[] = {{-2, "<invalid>"}, {-1, "0s"}, {0, "0s"}, {119, "119s"}, {120, "2m"},
		{121, "2m1s"}, {599, "9m59s"}, {600, "10m"}, {10799, "179m"}, {10800, "3h"},
		{10860, "3h1m"}, {28799, "7h59m"}, {28800, "8h"}, {172799, "47h"}, {172800, "2d"},
		{176400, "2d1h"}, {691199, "7d23h"}, {691200, "8d"}, {63071999, "729d"},
		{63072000, "2y"}, {63158400, "2y1d"}, {252287999, "7y364d"}, {252288000, "8y"},
		{315360000, "10y"}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char out[SCHEMA_AGE_LEN];

		schema_age_text(rows[i].s, out);
		cr_expect_str_eq(out, rows[i].text, "%lld: %s", (long long)rows[i].s, out);
	}
}

#define META "metadata: {name: n, creationTimestamp: '2024-01-02T03:03:05Z'}"

static const struct {
	const char *group, *kind, *object, *cells;
} rows[] = {
	{"", "ConfigMap", "{" META ", data: {a: b}, binaryData: {c: d}}", "n|2|60s"},
	{"", "Secret", "{" META ", type: Opaque, data: {a: b}}", "n|Opaque|1|60s"},
	{"", "Namespace", "{" META ", status: {phase: Active}}", "n|Active|60s"},
	{"", "ServiceAccount", "{" META "}", "n|0|60s"},
	{"", "ConfigMap", "{metadata: {name: n}}", "n|0|<unknown>"},
	{"rbac.authorization.k8s.io", "RoleBinding",
		"{" META
		", roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: "
		"ServiceAccount, namespace: ns, name: s}, {kind: User, name: v}]}",
		"n|Role/r|60s|u, v||ns/s"},
	{"", "Event",
		"{" META
		", involvedObject: {kind: Pod, name: p, fieldPath: f}, type: Normal, reason: R, "
		"message: ' m ', source: {component: c, host: h}, firstTimestamp: '2024-01-02T03:02:05Z', "
		"lastTimestamp: '2024-01-02T03:04:00Z', count: 3}",
		"5s|Normal|R|pod/p|f|c, h|m|2m|3|n"},
	{"events.k8s.io", "Event",
		"{" META
		", involvedObject: {kind: Pod, name: p}, type: Normal, reason: R, message: m, "
		"reportingComponent: c, eventTime: '2024-01-02T03:04:00.123456Z'}",
		"5s|Normal|R|pod/p||c|m|5s|1|n"},
	{"events.k8s.io", "Event",
		"{" META
		", involvedObject: {kind: Pod, name: p}, type: Normal, reason: R, message: m, "
		"series: {count: 2, lastObservedTime: '2024-01-02T03:04:00Z'}}",
		"5s|Normal|R|pod/p|||m|<unknown>|2|n"},
};

static char *cells_of(struct json_object *table, size_t row)
{
	struct json_object *a =
		json_get_arr(json_object_array_get_idx(json_get_arr(table, "rows"), row), "cells");
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < json_object_array_length(a); i++) {
		struct json_object *v = json_object_array_get_idx(a, i);

		strbuf_addf(&b, "%s%s", i ? "|" : "", v ? json_object_get_string(v) : "<null>");
	}
	return strbuf_steal(&b);
}

Test(schema_table, shows_builtin_kinds)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *o = parse(rows[i].object), *table = NULL;
		struct schema_table t = {
			.kind = schema_builtin_kind(rows[i].group, "v1", rows[i].kind),
			.version = "v1",
			.now_s = NOW};
		cleanup_free char *cells = NULL;

		cr_assert(t.kind, "%s", rows[i].kind);
		table = schema_table_new(&t, o);
		cells = cells_of(table, 0);
		cr_expect_str_eq(cells, rows[i].cells, "%s: %s", rows[i].kind, cells);
		cr_expect_eq(json_object_array_length(json_get_arr(table, "columnDefinitions")),
			json_object_array_length(json_get_arr(
				json_object_array_get_idx(json_get_arr(table, "rows"), 0),
				"cells")),
			"%s", rows[i].kind);
	}
}

Test(schema_table, takes_anything_as_an_object)
{
	static const char *const odd[] = {"{}", "{metadata: 5, spec: [], status: x}",
		"{metadata: {name: [], creationTimestamp: 5}, data: 5, secrets: {}, roleRef: [], "
		"series: {count: []}, firstTimestamp: {}, subjects: [1], involvedObject: 5}"};

	for (size_t i = 0; i < schema_builtin_count(); i++)
		for (size_t j = 0;
			(schema_builtin_at(i)->verbs & SCHEMA_VERB_GET) && j < ARRAY_LEN(odd);
			j++) {
			cleanup_json struct json_object *o = parse(odd[j]), *table = NULL;
			struct schema_table t = {
				.kind = schema_builtin_at(i), .version = "v1", .now_s = NOW};

			table = schema_table_new(&t, o);
			cr_assert(table);
		}
}

Test(schema_table, shows_columns_of_a_crd)
{
	struct schema_crd *c = load_crd("crd/machines.yaml");
	struct schema_table t = {.kind = &c->kind, .version = "v1", .now_s = NOW};
	cleanup_json struct json_object
		*o = parse("{" META ", spec: {id: x}, status: {conditions: [{type: Ready, status: "
			   "'True', reason: AllGood}]}}"),
		*table = schema_table_new(&t, o), *bare = NULL;
	cleanup_free char *cells = cells_of(table, 0);
	struct json_object *row = json_object_array_get_idx(json_get_arr(table, "rows"), 0);

	cr_assert_str_eq(cells, "n|True|<null>|AllGood|x|60s");
	cr_assert_str_eq(json_get_str(row, "object/kind"), "PartialObjectMetadata");
	cr_assert_str_eq(json_get_str(row, "object/metadata/name"), "n");
	cr_assert_null(json_get(row, "object/spec"));
	t.no_headers = true;
	t.include = SCHEMA_INCLUDE_NONE;
	bare = schema_table_new(&t, o);
	row = json_object_array_get_idx(json_get_arr(bare, "rows"), 0);
	cr_assert_null(json_get(bare, "columnDefinitions"));
	cr_assert_null(json_get(row, "object"));
	json_object_put(bare);
	t.include = SCHEMA_INCLUDE_OBJECT;
	bare = schema_table_new(&t, o);
	row = json_object_array_get_idx(json_get_arr(bare, "rows"), 0);
	cr_assert_str_eq(json_get_str(row, "object/spec/id"), "x");
	schema_crd_free(c);
}

/* What a path leads to, and what is shown of it as a string and as a date. */
Test(schema_table, cells_are_what_a_path_leads_to)
{
	static const char *const values[][3] = {{"{spec: {id: x}}", "x", "<invalid>"},
		{"{spec: {id: ''}}", "", "<unknown>"}, {"{spec: {id: 5}}", "<null>", "<null>"},
		{"{spec: {id: '2024-01-02T04:03:05+01:00'}}", "2024-01-02T04:03:05+01:00", "60s"},
		{"{spec: {id: null}}", "<null>", "<null>"}, {"{spec: 5}", "<null>", "<null>"},
		{"{}", "<null>", "<null>"}};
	struct schema_column columns[] = {{"S", "string", "", "", ".spec.id", 0},
		{"D", "date", "", "", ".spec.id", 0},
		{"C", "string", "", "", ".s.c[?(@.type==\"B\")].status", 0}};
	struct schema_crd crd = {.columns = columns, .n_columns = 3};
	struct schema_table t = {.kind = &crd.kind, .version = "v1", .now_s = NOW};

	crd.kind = (struct schema_kind){.kind = "K", .crd = &crd};
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		cleanup_json struct json_object *o = parse(values[i][0]),
						*table = schema_table_new(&t, o);
		cleanup_free char *cells = cells_of(table, 0),
				  *want = xasprintf("|%s|%s|<null>", values[i][1], values[i][2]);

		cr_expect_str_eq(cells, want, "%s: %s", values[i][0], cells);
	}
	{
		cleanup_json struct json_object *o = parse(
							"{s: {c: [5, {type: A, status: x}, {type: "
							"B, status: y}, {type: B}]}}"),
						*table = schema_table_new(&t, o);
		cleanup_free char *cells = cells_of(table, 0);

		cr_expect_str_eq(cells, "|<null>|<null>|y");
	}
}

Test(schema_table, columns_of_crd_have_paths_that_are_read)
{
	static const char *const files[] = {"crd/machines.yaml", "crd/approvedimages.yaml",
		"crd/attestationkeys.yaml", "crd/trustedexecutionclusters.yaml"};
	struct err err = ERR_INIT;
	static const char known[] =
		"^(\\.[a-zA-Z]+)+(\\[\\?\\(@\\.type==\"[a-zA-Z]+\"\\)\\]\\.[a-z]+)?$";
	struct schema_regex *form = schema_regex_new(known, sizeof(known) - 1, &err);

	cr_assert_not_null(form, "%s", err.text);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct schema_crd *c = load_crd(files[i]);

		cr_expect_gt(c->n_columns, 0);
		for (size_t k = 0; k < c->n_columns; k++) {
			const struct schema_column *column = &c->columns[k];

			cr_expect(schema_regex_match(form, column->path, strlen(column->path)),
				"%s", column->path);
			cr_expect(str_eq(column->type, "string") || str_eq(column->type, "date"),
				"%s", column->name);
			cr_expect(*column->description, "%s", column->name);
		}
		schema_crd_free(c);
	}
	schema_regex_free(form);
}
