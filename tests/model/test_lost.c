/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/cluster.h"
#include "tec/model/lost.h"

#define T1    "2026-01-02T03:04:05Z"
#define T1_S  INT64_C(1767323045)
#define ENTRY "{\"address\":\"a:1\",\"at\":\"" T1 "\",\"by\":\"ann\"}"
#define OTHER "{\"address\":\"b:1\",\"at\":\"2026-01-01T00:00:00Z\"}"

Test(model_lost, only_entries_with_an_address_and_a_time_count)
{
	static const struct {
		const char *text;
		size_t n;
		bool has;
		int64_t since_s;
	} rows[] = {
		{NULL, 0, false, INT64_MAX},
		{"", 0, false, INT64_MAX},
		{"{}", 0, false, INT64_MAX},
		{"[" ENTRY, 0, false, INT64_MAX},
		{"[]", 0, false, INT64_MAX},
		{"[" ENTRY "]", 1, true, T1_S},
		{"[\"a:1\"," ENTRY ",7]", 1, true, T1_S},
		{"[" ENTRY "," OTHER "]", 2, true, 1767225600},
		{"[" OTHER "]", 1, false, 1767225600},
		{"[{\"address\":\"a:1\"}]", 0, false, INT64_MAX},
		{"[{\"address\":\"a:1\",\"at\":\"today\"}]", 0, false, INT64_MAX},
		{"[{\"address\":\"\",\"at\":\"" T1 "\"}]", 0, false, INT64_MAX},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *list = model_lost_list(rows[i].text);

		cr_expect_eq(json_len(list), rows[i].n, "row %zu", i);
		cr_expect_eq(model_lost_find(list, "a:1") != NULL, rows[i].has, "row %zu", i);
		cr_expect_eq(model_lost_since_s(list), rows[i].since_s, "row %zu", i);
	}
}

Test(model_lost, what_is_added_is_read_back)
{
	cleanup_json struct json_object *list = model_lost_list(NULL), *back = NULL;
	cleanup_free char *text = NULL;

	model_lost_add(list, "a:1", T1_S, "ann");
	text = json_text(list);
	cr_assert_str_eq(text, "[" ENTRY "]");
	back = model_lost_list(text);
	cr_assert_str_eq(json_get_str(model_lost_find(back, "a:1"), "by"), "ann");
}

/* Spec without servers is as another operator's CRD prunes it, unless all of them are lost. */
Test(model_lost, servers_that_are_lost_were_not_pruned)
{
	static const char a[] = "{\"address\":\"a:1\",\"adminSecret\":\"s\"}",
			  c[] = "{\"address\":\"c:1\",\"adminSecret\":\"s\"}",
			  reads[] = "{\"address\":\"d:1\"}";
	const struct {
		const char *mirrored[3], *spec, *annotation;
		bool pruned;
	} rows[] = {
		{{a}, "{}", NULL, true},
		{{a}, "{}", "[" OTHER "]", true},
		{{a}, "{}", "[" ENTRY "]", false},
		{{a, c}, "{}", "[" ENTRY "]", true},
		{{a, reads}, "{}", "[" ENTRY "]", false},
		{{reads}, "{}", "[" ENTRY "]", true},
		{{NULL}, "{}", "[" ENTRY "]", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *mirror = json_obj(), *servers = json_arr();
		cleanup_json struct json_object *o = json_obj();
		cleanup_kobj const struct kobj *k = NULL;
		cleanup_free char *text = NULL;
		struct json_object *meta = json_obj(), *annotations = json_obj();
		struct err err = ERR_INIT;

		for (int n = 0; n < 3 && rows[i].mirrored[n]; n++)
			json_push(servers, json_tokener_parse(rows[i].mirrored[n]));
		json_add(mirror, "trusteeServers", json_object_get(servers));
		text = json_text(mirror);
		json_add_str(annotations, MODEL_EXTENDED_ANNOTATION, text);
		json_add_str(annotations, MODEL_LOST_ANNOTATION, rows[i].annotation);
		json_add_str(json_add_str(meta, "name", "tec"), "uid", "u");
		json_add(json_add_str(meta, "resourceVersion", "1"), "annotations", annotations);
		json_add(json_add(o, "metadata", meta), "spec", json_tokener_parse(rows[i].spec));
		k = model_cluster_extract(o, &err);
		cr_assert(k, "%s", err.text);
		cr_expect_eq(model_cluster(k)->extended_lost != NULL, rows[i].pruned, "row %zu", i);
		cr_expect_eq(model_cluster(k)->lost_servers != NULL, rows[i].annotation != NULL,
			"row %zu", i);
	}
}
