/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/yaml.h"

/* The canonical JSON of a YAML text, or "!" and the error. The caller frees. */
static char *convert(const char *text)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = yaml_parse(text, strlen(text), &err);

	cr_expect_eq(o == NULL, err_is_set(&err), "%s", text);
	if (o)
		json_canonical(&s, o);
	else
		strbuf_addf(&s, "!%s", err.text);
	return strbuf_steal(&s);
}

Test(base_yaml, scalars_of_the_core_schema)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{"a: 1", "{\"a\":1}"},
		{"a: -1", "{\"a\":-1}"},
		{"a: 0", "{\"a\":0}"},
		{"a: 007", "{\"a\":\"007\"}"},
		{"a: +1", "{\"a\":\"+1\"}"},
		{"a: -0", "{\"a\":\"-0\"}"},
		{"a: 0x10", "{\"a\":\"0x10\"}"},
		{"a: 1.5", "{\"a\":\"1.5\"}"},
		{"a: 1e3", "{\"a\":\"1e3\"}"},
		{"a: 9223372036854775807", "{\"a\":9223372036854775807}"},
		{"a: 9223372036854775808", "{\"a\":\"9223372036854775808\"}"},
		{"a: true", "{\"a\":true}"},
		{"a: False", "{\"a\":false}"},
		{"a: yes", "{\"a\":\"yes\"}"},
		{"a: on", "{\"a\":\"on\"}"},
		{"a: null", "{\"a\":null}"},
		{"a: ~", "{\"a\":null}"},
		{"a:", "{\"a\":null}"},
		{"a: \"1\"", "{\"a\":\"1\"}"},
		{"a: 'true'", "{\"a\":\"true\"}"},
		{"a: ''", "{\"a\":\"\"}"},
		{"a: !!str 1", "{\"a\":\"1\"}"},
		{"a: ! 1", "{\"a\":\"1\"}"},
		{"a: 2026-01-02", "{\"a\":\"2026-01-02\"}"},
		{"a: .inf", "{\"a\":\".inf\"}"},
		{"a: 1_000", "{\"a\":\"1_000\"}"},
		{"a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}"},
		{"a: >-\n  x\n  y\n", "{\"a\":\"x y\"}"},
		{"a: \"\\u00e9\"", "{\"a\":\"\xc3\xa9\"}"},
		{"just text", "\"just text\""},
		{"a: 1\n---\n", "{\"a\":1}"},
		{"a: 1\n---\n# nothing\n---\n...\n", "{\"a\":1}"},
		{"12", "12"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *got = convert(t[i].in);

		cr_expect_str_eq(got, t[i].want, "%s gave %s", t[i].in, got);
	}
}

/* The same as a body for kube-apiserver: test_two_servers_bodies.py. */
Test(base_yaml, scalars_as_go_resolves_them)
{
	static const struct {
		const char *in, *want;
	} t[] = {
		{"yes", "true"},
		{"y", "true"},
		{"On", "true"},
		{"NO", "false"},
		{"off", "false"},
		{"yEs", "\"yEs\""},
		{"'yes'", "\"yes\""},
		{"!!str yes", "\"yes\""},
		{"010", "8"},
		{"0x10", "16"},
		{"0b11", "3"},
		{"0o17", "15"},
		{"+7", "7"},
		{"-7", "-7"},
		{"1_000", "1000"},
		{"08", "8.0"},
		{"0x", "\"0x\""},
		{"0x-1", "\"0x-1\""},
		{"0.5", "0.5"},
		{".5", "0.5"},
		{"1.", "1.0"},
		{"1e3", "1000.0"},
		{"1e", "\"1e\""},
		{".", "\".\""},
		{"1e999", "\"1e999\""},
		{"1.5.1", "\"1.5.1\""},
		{"2026-01-02", "\"2026-01-02\""},
		{"~", NULL},
		{"0.25e1", "2.5"},
		{"0x1111111111111111111111111111111111111111111111111111111111111111111111111111111111",
			"\"0x1111111111111111111111111111111111111111111111111111111111111111111111111111111111\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *text = xasprintf("a: [%s]", t[i].in);
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o = yaml_parse_go(text, strlen(text), &err);
		struct json_object *v = json_object_array_get_idx(json_get_arr(o, "a"), 0);

		if (!t[i].want) {
			cr_expect_null(v, "%s", t[i].in);
			continue;
		}
		cr_expect_str_eq(json_object_to_json_string(v), t[i].want, "%s gave %s", t[i].in,
			json_object_to_json_string(v));
	}
}

Test(base_yaml, a_kubeconfig)
{
	cleanup_free char *got =
		convert("# comment\napiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n"
			"- name: k\n  cluster:\n    server: https://10.0.0.1:6443\n"
			"    insecure-skip-tls-verify: false\nusers: []\npreferences: {}\n");

	cr_assert_str_eq(got,
		"{\"apiVersion\":\"v1\","
		"\"clusters\":[{\"cluster\":{\"insecure-skip-tls-verify\":false,"
		"\"server\":\"https://10.0.0.1:6443\"},\"name\":\"k\"}],\"current-context\":\"c\","
		"\"kind\":\"Config\",\"preferences\":{},\"users\":[]}");
}

Test(base_yaml, json_is_yaml)
{
	static const char *const t[] = {"{\"a\":[1,true,null,\"\\ud83d\\ude00\\/\"]}",
		"{\n\t\"a\": {\n\t\t\"b\": \"c\"\n\t}\n}", "[1,2]", "{}", "{\"a\": 1.5}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *got = convert(t[i]);

		cr_expect_neq(got[0], '!', "%s: %s", t[i], got);
	}
}

Test(base_yaml, refuses)
{
	static const char *const t[] = {"", "# only a comment", "---\n", "null", "~",
		"a: 1\n---\nb: 2\n", "a: 1\n---\n---\n''\n", "a: 1\na: 2\n", "{a: 1, a: 2}",
		"a: 1\n\"a\": 2\n", "? [x]\n: 1\n", "? {x: 1}\n: 1\n", "a: &x 1\nb: *x\n", "*x",
		"a: !!binary aGk=", "a: !!int 1", "a: !custom x", "!!set {a}", "a: \"\\0\"",
		"\"a\\0\": 1", "a: [1, 2", "a: {b: 1", "a: b: c", "a: 'x", "a: \"x", "\ta: 1",
		"a:\n\tb: 1", "%YAML 9.9\n---\na: 1", "a: \xff", "a: \"\xc0\x80\"", "a: \x01",
		"- a\nb: 1", "{\"a\":1,\"a\":2}", "a: @x", "a: `x", "key: [a, b}",
		"\xff\xfe"
		"a:1",
		"x: \"\\ud800\""};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *got = convert(t[i]);

		cr_expect_eq(got[0], '!', "%s gave %s", t[i], got);
		cr_expect_not_null(strstr(got, "line "), "%s gave %s", t[i], got);
	}
}

Test(base_yaml, errors_name_line_and_column)
{
	cleanup_free char *got = convert("a: 1\nb: 2\na: hunter2\n");

	cr_assert_str_eq(got, "!YAML: duplicate key at line 3 column 1");
}

Test(base_yaml, billion_laughs_stop)
{
	cleanup_free char *got =
		convert("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
			"c: [*b,*b,*b,*b,*b,*b,*b]\n");

	cr_assert_not_null(strstr(got, "alias"));
}

Test(base_yaml, depth_is_bounded)
{
	for (unsigned n = 30; n < 34; n++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;
		cleanup_free char *got = NULL;

		for (unsigned i = 0; i < n; i++)
			strbuf_addc(&s, '[');
		strbuf_addc(&s, 'x');
		for (unsigned i = 0; i < n; i++)
			strbuf_addc(&s, ']');
		got = convert(strbuf_str(&s));
		cr_expect_eq(got[0] == '!', n >= 32, "%u: %s", n, got);
	}
}

Test(base_yaml, size_and_count_are_bounded)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	cleanup_free char *many = NULL, *big = NULL;

	for (unsigned i = 0; i < 60000; i++)
		strbuf_adds(&s, "- {}\n");
	many = convert(strbuf_str(&s));
	cr_assert_not_null(strstr(many, "too many"));
	strbuf_reset(&s);
	while (s.len <= 1048576)
		strbuf_adds(&s, "# a comment that fills the file up to its limit and beyond\n");
	strbuf_adds(&s, "a: 1\n");
	big = convert(strbuf_str(&s));
	cr_assert_not_null(strstr(big, "exceed the limit of"));
}
