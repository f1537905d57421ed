/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"

#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C64 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define D64 "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
#define E64 "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

static struct json_object *object(const char *uid, const char *mark)
{
	struct json_object *meta = json_obj();

	if (uid)
		json_add_str(meta, "uid", uid);
	if (mark)
		json_add(meta, "annotations", json_add_str(json_obj(), "x/m", mark));
	return json_add(json_obj(), "metadata", meta);
}

Test(mark, counts_only_with_the_uid_of_its_object)
{
	static const struct {
		const char *uid, *mark, *payload;
	} t[] = {
		{"u1", "u1 x", "x"},
		{"u1", "u1 x y", "x y"},
		{"u1", "u2 x", NULL},
		{"u1", "u11 x", NULL},
		{"u11", "u1 x", NULL},
		{"u1", "u1", NULL},
		{"u1", "u1 ", NULL},
		{"u1", "", NULL},
		{"u1", "x", NULL},
		{"u1", NULL, NULL},
		{NULL, " x", NULL},
		{"", " x", NULL},
		{NULL, "u1 x", NULL},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		cleanup_json struct json_object *o = object(t[i].uid, t[i].mark);
		const char *got = model_mark(o, "x/m");

		if (t[i].payload)
			cr_assert(got && strcmp(got, t[i].payload) == 0, "row %zu", i);
		else
			cr_assert_null(got, "row %zu: %s", i, got);
	}
}

Test(mark, text_is_read_back)
{
	cleanup_free char *text = model_mark_text("u1", A64);
	cleanup_json struct json_object *o = object("u1", text);

	cr_assert_str_eq(model_mark(o, "x/m"), A64);
}

Test(mark, announces_whole_hashes_of_a_well_formed_list)
{
	static const struct {
		const char *hashes, *hex;
		bool has;
	} t[] = {
		{A64, A64, true},
		{A64 " " B64, B64, true},
		{A64 " " B64 " " C64 " " D64, C64, true},
		{A64, B64, false},
		{NULL, A64, false},
		{"", A64, false},
		{A64, "", false},
		{A64, NULL, false},
		{A64, "aaaa", false},
		{A64 " ", A64, false},
		{" " A64, A64, false},
		{A64 "  " B64, A64, false},
		{A64 "," B64, A64, false},
		{A64 " " B64 " " C64 " " D64 " " E64, A64, false},
		{A64 " bbbb", A64, false},
		{"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", A64, false},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		cr_assert(model_mark_announces(t[i].hashes, t[i].hex) == t[i].has, "row %zu", i);
}

Test(mark, announcing_again_appends_and_lets_the_oldest_go)
{
	static const char *const hex[] = {A64, B64, C64, D64, E64};
	static const char *const want[] = {A64, A64 " " B64, A64 " " B64 " " C64,
		A64 " " B64 " " C64 " " D64, B64 " " C64 " " D64 " " E64};
	char *have = NULL;

	for (size_t i = 0; i < 5; i++) {
		char *next = model_mark_announce(have, hex[i]);

		cr_assert(strcmp(next, want[i]) == 0, "%zu: %s", i, next);
		free(have);
		have = next;
	}
	free(have);
}

Test(mark, a_malformed_announcement_is_replaced)
{
	cleanup_free char *next = model_mark_announce("zz", A64);

	cr_assert_str_eq(next, A64);
}
