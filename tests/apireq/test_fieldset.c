/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/fieldset.h"

static struct apireq_fieldset set_of(const char *text)
{
	cleanup_json struct json_object *o = json_of(text);
	struct apireq_fieldset s;
	struct err err = ERR_INIT;

	cr_assert_eq(apireq_fieldset_read(o, &s, &err), 0, "%s: %s", text, err.text);
	return s;
}

static void is(struct apireq_fieldset take_s, const char *want)
{
	cleanup_json struct json_object *o = apireq_fieldset_json(&take_s);

	same_json(o, want);
	apireq_fieldset_fini(&take_s);
}

#define A "{\"f:a\":{},\"f:b\":{\".\":{},\"f:c\":{},\"f:d\":{\"v:1\":{}}},\"f:e\":{\"f:x\":{}}}"
#define B "{\"f:a\":{\"f:z\":{}},\"f:b\":{\"f:c\":{},\"f:d\":{}},\"f:e\":{\".\":{},\"f:x\":{}}}"

Test(apireq_fieldset, operations)
{
	cleanup_apireq_fieldset struct apireq_fieldset a = set_of(A), b = set_of(B),
						       none = set_of("{}");

	is(apireq_fieldset_combine(&none, APIREQ_UNION, &a), A);
	is(apireq_fieldset_combine(&a, APIREQ_UNION, &b),
		"{\"f:a\":{\".\":{},\"f:z\":{}},\"f:b\":{\".\":{},\"f:c\":{},\"f:d\":{\".\":{},\"v:1\":{}}},\"f:e\":{\".\":{},\"f:x\":{}}}");
	is(apireq_fieldset_combine(&a, APIREQ_BOTH, &b),
		"{\"f:b\":{\"f:c\":{}},\"f:e\":{\"f:x\":{}}}");
	is(apireq_fieldset_combine(&a, APIREQ_WITHOUT, &b),
		"{\"f:a\":{},\"f:b\":{\".\":{},\"f:d\":{\"v:1\":{}}}}");
	is(apireq_fieldset_combine(&b, APIREQ_WITHOUT, &a),
		"{\"f:a\":{\"f:z\":{}},\"f:b\":{\"f:d\":{}},\"f:e\":{}}");
	is(apireq_fieldset_combine(&a, APIREQ_UNION, &none), A);
	is(apireq_fieldset_combine(&a, APIREQ_BOTH, &none), "{}");
	is(apireq_fieldset_combine(&a, APIREQ_WITHOUT, &a), "{}");
	cr_expect_eq(none.n, 0);
	apireq_fieldset_change(&a, APIREQ_WITHOUT, &b);
	is(a, "{\"f:a\":{},\"f:b\":{\".\":{},\"f:d\":{\"v:1\":{}}}}");
	a = none;
}

/* What is found step by step and what is walked side by side are the same. */
Test(apireq_fieldset, a_few_of_many)
{
	cleanup_apireq_fieldset struct apireq_fieldset few = set_of("{\"f:3\":{},\"f:x\":{}}"),
						       many = {NULL, 0};

	for (int i = 99; i >= 0; i--) {
		cleanup_free char *step = xasprintf("f:%d", i);

		apireq_fieldset_add(&many, step, true, NULL);
	}
	apireq_fieldset_done(&many);
	is(apireq_fieldset_combine(&few, APIREQ_BOTH, &many), "{\"f:3\":{}}");
	is(apireq_fieldset_combine(&few, APIREQ_WITHOUT, &many), "{\"f:x\":{}}");
}

Test(apireq_fieldset, twice_is_once)
{
	cleanup_apireq_fieldset struct apireq_fieldset s = {NULL, 0}, none = {NULL, 0};
	struct apireq_fieldset x = set_of("{\"f:x\":{}}"), y = set_of("{\"f:y\":{}}");

	apireq_fieldset_add(&s, "f:b", false, &x);
	apireq_fieldset_add(&s, "f:a", false, NULL);
	apireq_fieldset_add(&s, "f:b", true, &y);
	apireq_fieldset_done(&s);
	is(apireq_fieldset_combine(&s, APIREQ_UNION, &none),
		"{\"f:b\":{\".\":{},\"f:x\":{},\"f:y\":{}}}");
}

static void append(void *arg, const char *path)
{
	strbuf_addf(arg, "%s ", path);
}

Test(apireq_fieldset, paths_as_people_read_them)
{
	cleanup_apireq_fieldset struct apireq_fieldset s = set_of(
		"{\"f:b\":{},\"f:a\":{\"k:{\\\"protocol\\\":\\\"T\\\\\\\"P\\\",\\\"port\\\":1}\":{\".\":{},\"f:n\":{}},\"v:\\\"x\\\"\":{},\"v:5\":{},\"i:-2\":{}}}");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	apireq_fieldset_each(&s, append, &out);
	cr_expect_str_eq(strbuf_str(&out),
		".b .a[-2] .a[port=1,protocol=\"T\\\"P\"] .a[=\"x\"] .a[=5] .a[port=1,protocol=\"T\\\"P\"].n ");
}

/* Equal steps are equal texts, whoever wrote them. */
/* Its text is longer than what is parsed again. */
Test(apireq_fieldset, a_key_of_any_length_is_printed)
{
	const size_t n = 2u << 20;
	cleanup_free char *long_text = xmalloc(n + 1), *step = NULL;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	memset(long_text, 'x', n);
	long_text[n] = '\0';
	step = xasprintf("k:{\"uid\":\"%s\"}", long_text);
	apireq_fieldset_print_step(&out, step);
	cr_expect_eq(out.len, strlen(step), "[ and ] in the place of k:");
}

Test(apireq_fieldset, steps_are_written_one_way)
{
	is(set_of("{\"k:{\\\"b\\\": 1, \\\"a\\\":\\\"\\\\u0041\\\"}\":{}}"),
		"{\"k:{\\\"a\\\":\\\"A\\\",\\\"b\\\":1}\":{}}");
}

Test(apireq_fieldset, what_is_none_is_refused)
{
	static const char *const bad[] = {"[]", "5", "{\"f:a\":1}", "{\"f:a\":null}", "{\"a\":{}}",
		"{\"x:a\":{}}", "{\"f\":{}}", "{\"\":{}}", "{\"k:\":{}}", "{\"k:[]\":{}}",
		"{\"k:{\":{}}", "{\"v:\":{}}", "{\"v:{\":{}}", "{\"v:1e999\":{}}",
		"{\"k:{\\\"a\\\":[-1e999]}\":{}}", "{\"i:x\":{}}", "{\"i:\":{}}",
		"{\"f:a\":{\"f:b\":[]}}", "{\"f:a\":{\"f:b\":{\"q\":{}}}}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_json struct json_object *o = json_of(bad[i]);
		struct apireq_fieldset s;
		struct err err = ERR_INIT;

		cr_expect_eq(apireq_fieldset_read(o, &s, &err), -1, "%s", bad[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect(s.n == 0);
	}
}
