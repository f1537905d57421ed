/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/report/text.h"

Test(report_text, ages_look_as_in_kubectl)
{
	static const struct {
		int64_t s;
		const char *text;
	} cases[] = {
		{-5, "0s"},
		{0, "0s"},
		{119, "119s"},
		{120, "2m"},
		{312, "5m12s"},
		{600, "10m"},
		{10799, "179m"},
		{10800, "3h"},
		{11040, "3h4m"},
		{28800, "8h"},
		{172799, "47h"},
		{172800, "2d"},
		{180000, "2d2h"},
		{691200, "8d"},
		{63072000, "2y"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		report_age(&out, cases[i].s);
		cr_expect_str_eq(strbuf_str(&out), cases[i].text, "%lld", (long long)cases[i].s);
	}
}

Test(report_text, what_a_terminal_would_act_on_is_not_printed)
{
	static const char *const cases[][2] = {
		{"plain \xc3\xa9", "plain \xc3\xa9"},
		{"\033[31mred", "\\u001b[31mred"},
		{"a\r\bb", "a\\u000d\\u0008b"},
		{"two\nlines\tof", "two lines of"},
		{"\x7f\xc2\x9b"
		 "31m",
			"\\u007f\\u009b31m"}, /* DEL, and CSI in one code point */
		{"\xe2\x80\xae"
		 "exe.txt",
			"\\u202eexe.txt"}, /* turns the direction */
		{"\xe2\x81\xa6x\xe2\x80\xa8y", "\\u2066x\\u2028y"},
		{"\xff\xfe", "\\ufffd\\ufffd"},
		{"\xe2\x82", "\\ufffd\\ufffd"}, /* cut off */
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		report_safe(&out, cases[i][0]);
		cr_expect_str_eq(strbuf_str(&out), cases[i][1], "case %zu", i);
	}
}

/* Halves of a character in two arguments join before they are judged. */
Test(report_text, line_is_escaped_as_a_whole)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	report_line(&out, "a %s, %d%s%s", "b\n\033[31m", 7, "\xe2\x80", "\xae");
	cr_expect_str_eq(strbuf_str(&out), "a b \\u001b[31m, 7\\u202e\n");
}

/* Every code point of the first plane in a name and a value: nothing of it reaches a terminal, and what is
 * read back is the same. */
Test(report_text, documents_are_the_same_value_without_control_characters)
{
	for (uint32_t c = 1; c < 0x3000; c++) {
		char raw[8] = "a", *p = raw + 1;
		cleanup_json struct json_object *o = json_obj(), *back = NULL;
		cleanup_strbuf struct strbuf json = STRBUF_INIT, yaml = STRBUF_INIT;
		struct err err = ERR_INIT;

		if (c < 0x80) {
			*p++ = (char)c;
		} else if (c < 0x800) {
			*p++ = (char)(0xc0 | c >> 6);
			*p++ = (char)(0x80 | (c & 0x3f));
		} else {
			*p++ = (char)(0xe0 | c >> 12);
			*p++ = (char)(0x80 | (c >> 6 & 0x3f));
			*p++ = (char)(0x80 | (c & 0x3f));
		}
		*p = '\0';
		json_add_str(o, raw, raw);
		report_json(&json, o);
		report_yaml(&yaml, o);
		if (utf8_is_control(c)) {
			cr_assert_null(strstr(json.data, raw), "U+%04x", (unsigned)c);
			cr_assert_null(strstr(yaml.data, raw), "U+%04x", (unsigned)c);
		}
		back = json_parse(json.data, json.len, &json_limits_object, &err);
		cr_assert(json_object_equal(o, back), "U+%04x: %s", (unsigned)c, err.text);
	}
}

Test(report_text, colours_are_for_those_who_asked)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	report_text(&out, false, REPORT_BAD, "no");
	report_text(&out, true, REPORT_PLAIN, "plain");
	report_text(&out, true, REPORT_GOOD, "");
	report_text(&out, true, REPORT_GOOD, NULL);
	report_text(&out, true, REPORT_BAD, "bad\033");
	cr_expect_str_eq(strbuf_str(&out), "noplain\033[31mbad\\u001b\033[0m");
}

Test(report_text, columns_are_as_wide_as_their_widest)
{
	static const char *const titles[] = {"NAME", "STATE", "AGE", NULL};
	struct report_table *t = report_table_new(titles);
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	report_table_row(t);
	report_table_cell(t, REPORT_PLAIN, "a-long-name");
	report_table_cell(t, REPORT_GOOD, "Ready");
	report_table_age(t, 61);
	report_table_row(t);
	report_table_cell(t, REPORT_PLAIN, "\xc3\xa9");
	report_table_cell(t, REPORT_BAD, NULL);
	report_table_age(t, -1);
	report_table_row(t);
	report_table_cell(t, REPORT_PLAIN, "last");
	report_table_print(t, "  ", false, &out);
	cr_expect_str_eq(strbuf_str(&out), "  NAME          STATE   AGE\n"
					   "  a-long-name   Ready   61s\n"
					   "  \xc3\xa9                     <unknown>\n"
					   "  last\n");
}

Test(report_text, yaml_is_read_back_as_the_same)
{
	static const char *const texts[] = {
		"{\"a\":1,\"b\":[1,{\"c\":\"x: y\",\"d\":[]},[2,[3]],\"- t\"],\"e\":{},\"f\":null,\"g\":{\"h\":true}}",
		"[]",
		"[{\"a\":[{\"b\":{\"c\":{\"d\":\"\\n\"}}}]},null]",
		"{\"\":\"\"}",
	};
	static const char *const yaml[] = {
		"\"a\": 1\n\"b\":\n- 1\n- \"c\": \"x: y\"\n  \"d\": []\n-\n  - 2\n  -\n    - 3\n- \"- t\"\n\"e\": {}\n\"f\": null\n\"g\":\n  \"h\": true\n",
		"[]\n",
		"- \"a\":\n  - \"b\":\n      \"c\":\n        \"d\": \"\\n\"\n- null\n",
		"\"\": \"\"\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(texts[i], strlen(texts[i]), &json_limits_object, &err);
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		cr_assert(o, "%s", err.text);
		report_yaml(&out, o);
		cr_expect_str_eq(strbuf_str(&out), yaml[i]);
	}
}

Test(report_text, a_page_is_printed_again_only_when_it_changes)
{
	struct report_watch w = {.started = false};
	static const struct {
		const char *page, *printed;
	} cases[] = {{"a\n", "a\n"}, {"a\n", ""}, {"b\n", "---\nb\n"}, {"b\n", ""}, {"", "---\n"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_strbuf struct strbuf page = STRBUF_INIT, out = STRBUF_INIT;

		strbuf_adds(&page, cases[i].page);
		report_watch_page(&w, false, &page, &out);
		cr_expect_str_eq(strbuf_str(&out), cases[i].printed);
		strbuf_reset(&out);
		report_watch_page(&w, true, &page, &out);
		cr_expect(strstr(strbuf_str(&out), cases[i].page), "a terminal is drawn again");
	}
	report_watch_fini(&w);
}
