/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apistore/things.h"
#include "tec/apistore/fieldset.h"

static struct apistore_fieldset set_of(const char *text)
{
	cleanup_json struct json_object *o = json_of(text);
	struct apistore_fieldset s;
	struct err err = ERR_INIT;

	cr_assert_eq(apistore_fieldset_read(o, &s, &err), 0, "%s: %s", text, err.text);
	return s;
}

static void is(struct apistore_fieldset take_s, const char *want)
{
	cleanup_json struct json_object *o = apistore_fieldset_json(&take_s);

	same_json(o, want);
	apistore_fieldset_fini(&take_s);
}

#define A "{\"f:a\":{},\"f:b\":{\".\":{},\"f:c\":{},\"f:d\":{\"v:1\":{}}},\"f:e\":{\"f:x\":{}}}"
#define B "{\"f:a\":{\"f:z\":{}},\"f:b\":{\"f:c\":{},\"f:d\":{}},\"f:e\":{\".\":{},\"f:x\":{}}}"

Test(apistore_fieldset, operations)
{
	cleanup_apistore_fieldset struct apistore_fieldset a = set_of(A), b = set_of(B),
							   none = set_of("{}");

	is(apistore_fieldset_combine(&none, APISTORE_UNION, &a), A);
	is(apistore_fieldset_combine(&a, APISTORE_UNION, &b),
		"{\"f:a\":{\".\":{},\"f:z\":{}},\"f:b\":{\".\":{},\"f:c\":{},\"f:d\":{\".\":{},\"v:1\":{}}},\"f:e\":{\".\":{},\"f:x\":{}}}");
	is(apistore_fieldset_combine(&a, APISTORE_BOTH, &b),
		"{\"f:b\":{\"f:c\":{}},\"f:e\":{\"f:x\":{}}}");
	is(apistore_fieldset_combine(&a, APISTORE_WITHOUT, &b),
		"{\"f:a\":{},\"f:b\":{\".\":{},\"f:d\":{\"v:1\":{}}}}");
	is(apistore_fieldset_combine(&b, APISTORE_WITHOUT, &a),
		"{\"f:a\":{\"f:z\":{}},\"f:b\":{\"f:d\":{}},\"f:e\":{}}");
	is(apistore_fieldset_combine(&a, APISTORE_UNION, &none), A);
	is(apistore_fieldset_combine(&a, APISTORE_BOTH, &none), "{}");
	is(apistore_fieldset_combine(&a, APISTORE_WITHOUT, &a), "{}");
	cr_expect_eq(none.n, 0);
	apistore_fieldset_change(&a, APISTORE_WITHOUT, &b);
	is(a, "{\"f:a\":{},\"f:b\":{\".\":{},\"f:d\":{\"v:1\":{}}}}");
	a = none;
}

/* What is found step by step and what is walked side by side are the same. */
Test(apistore_fieldset, a_few_of_many)
{
	cleanup_apistore_fieldset struct apistore_fieldset few = set_of("{\"f:3\":{},\"f:x\":{}}"),
							   many = {NULL, 0};

	for (int i = 99; i >= 0; i--) {
		cleanup_free char *step = xasprintf("f:%d", i);

		apistore_fieldset_add(&many, step, true, NULL);
	}
	apistore_fieldset_done(&many);
	is(apistore_fieldset_combine(&few, APISTORE_BOTH, &many), "{\"f:3\":{}}");
	is(apistore_fieldset_combine(&few, APISTORE_WITHOUT, &many), "{\"f:x\":{}}");
}

Test(apistore_fieldset, twice_is_once)
{
	cleanup_apistore_fieldset struct apistore_fieldset s = {NULL, 0}, none = {NULL, 0};
	struct apistore_fieldset x = set_of("{\"f:x\":{}}"), y = set_of("{\"f:y\":{}}");

	apistore_fieldset_add(&s, "f:b", false, &x);
	apistore_fieldset_add(&s, "f:a", false, NULL);
	apistore_fieldset_add(&s, "f:b", true, &y);
	apistore_fieldset_done(&s);
	is(apistore_fieldset_combine(&s, APISTORE_UNION, &none),
		"{\"f:b\":{\".\":{},\"f:x\":{},\"f:y\":{}}}");
}

static void append(void *arg, const char *path)
{
	strbuf_addf(arg, "%s ", path);
}

Test(apistore_fieldset, paths_as_people_read_them)
{
	cleanup_apistore_fieldset struct apistore_fieldset s = set_of(
		"{\"f:b\":{},\"f:a\":{\"k:{\\\"protocol\\\":\\\"T\\\\\\\"P\\\",\\\"port\\\":1}\":{\".\":{},\"f:n\":{}},\"v:\\\"x\\\"\":{},\"v:5\":{},\"i:-2\":{}}}");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	apistore_fieldset_each(&s, append, &out);
	cr_expect_str_eq(strbuf_str(&out),
		".b .a[-2] .a[port=1,protocol=\"T\\\"P\"] .a[=\"x\"] .a[=5] .a[port=1,protocol=\"T\\\"P\"].n ");
}

/* Equal steps are equal texts, whoever wrote them. */
/* Its text is longer than what is parsed again. */
Test(apistore_fieldset, a_key_of_any_length_is_printed)
{
	const size_t n = 2u << 20;
	cleanup_free char *long_text = xmalloc(n + 1), *step = NULL;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	memset(long_text, 'x', n);
	long_text[n] = '\0';
	step = xasprintf("k:{\"uid\":\"%s\"}", long_text);
	apistore_fieldset_print_step(&out, step);
	cr_expect_eq(out.len, strlen(step), "[ and ] in the place of k:");
}

Test(apistore_fieldset, steps_are_written_one_way)
{
	is(set_of("{\"k:{\\\"b\\\": 1, \\\"a\\\":\\\"\\\\u0041\\\"}\":{}}"),
		"{\"k:{\\\"a\\\":\\\"A\\\",\\\"b\\\":1}\":{}}");
}

Test(apistore_fieldset, what_is_none_is_refused)
{
	static const char *const bad[] = {"[]", "5", "{\"f:a\":1}", "{\"f:a\":null}", "{\"a\":{}}",
		"{\"x:a\":{}}", "{\"f\":{}}", "{\"\":{}}", "{\"k:\":{}}", "{\"k:[]\":{}}",
		"{\"k:{\":{}}", "{\"v:\":{}}", "{\"v:{\":{}}", "{\"v:1e999\":{}}",
		"{\"k:{\\\"a\\\":[-1e999]}\":{}}", "{\"i:x\":{}}", "{\"i:\":{}}",
		"{\"f:a\":{\"f:b\":[]}}", "{\"f:a\":{\"f:b\":{\"q\":{}}}}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_json struct json_object *o = json_of(bad[i]);
		struct apistore_fieldset s;
		struct err err = ERR_INIT;

		cr_expect_eq(apistore_fieldset_read(o, &s, &err), -1, "%s", bad[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect(s.n == 0);
	}
}
