/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/patch.h"

/* RFC 6902 appendix A, RFC 6901 section 5, and what kube-apiserver does beside them. result NULL:
 * an operation fails. */
static const struct {
	const char *doc, *patch, *result;
} cases[] = {
	/* A.1 to A.16 */
	{"{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux'}]",
		"{'baz':'qux','foo':'bar'}"},
	{"{'foo':['bar','baz']}", "[{'op':'add','path':'/foo/1','value':'qux'}]",
		"{'foo':['bar','qux','baz']}"},
	{"{'baz':'qux','foo':'bar'}", "[{'op':'remove','path':'/baz'}]", "{'foo':'bar'}"},
	{"{'foo':['bar','qux','baz']}", "[{'op':'remove','path':'/foo/1'}]",
		"{'foo':['bar','baz']}"},
	{"{'baz':'qux','foo':'bar'}", "[{'op':'replace','path':'/baz','value':'boo'}]",
		"{'baz':'boo','foo':'bar'}"},
	{"{'foo':{'bar':'baz','waldo':'fred'},'qux':{'corge':'grault'}}",
		"[{'op':'move','from':'/foo/waldo','path':'/qux/thud'}]",
		"{'foo':{'bar':'baz'},'qux':{'corge':'grault','thud':'fred'}}"},
	{"{'foo':['all','grass','cows','eat']}", "[{'op':'move','from':'/foo/1','path':'/foo/3'}]",
		"{'foo':['all','cows','eat','grass']}"},
	{"{'baz':'qux','foo':['a',2,'c']}",
		"[{'op':'test','path':'/baz','value':'qux'},{'op':'test','path':'/foo/1','value':2}]",
		"{'baz':'qux','foo':['a',2,'c']}"},
	{"{'baz':'qux'}", "[{'op':'test','path':'/baz','value':'bar'}]", NULL},
	{"{'foo':'bar'}", "[{'op':'add','path':'/child','value':{'grandchild':{}}}]",
		"{'foo':'bar','child':{'grandchild':{}}}"},
	{"{'foo':'bar'}", "[{'op':'add','path':'/baz','value':'qux','xyz':123}]",
		"{'foo':'bar','baz':'qux'}"},
	{"{'foo':'bar'}", "[{'op':'add','path':'/baz/bat','value':'qux'}]", NULL},
	{"{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':10}]", "{'/':9,'~1':10}"},
	{"{'/':9,'~1':10}", "[{'op':'test','path':'/~01','value':'10'}]", NULL},
	{"{'foo':['bar']}", "[{'op':'add','path':'/foo/-','value':['abc','def']}]",
		"{'foo':['bar',['abc','def']]}"},
	/* pointers */
	{"{'a/b':1,'m~n':8,'':0,' ':7}",
		"[{'op':'test','path':'/a~1b','value':1},{'op':'test','path':'/m~0n','value':8},{'op':'test','path':'/','value':0},{'op':'test','path':'/ ','value':7}]",
		"{'a/b':1,'m~n':8,'':0,' ':7}"},
	{"{'a~':1,'a~2':2}", "[{'op':'remove','path':'/a~'},{'op':'remove','path':'/a~2'}]", "{}"},
	{"{'a':1}", "[{'op':'test','path':'','value':{'a':1}}]", "{'a':1}"},
	{"{'a':1}", "[{'op':'test','path':'','value':{'a':2}}]", NULL},
	{"{'a':{'b':1}}", "[{'op':'test','path':'x/a/b','value':1}]", "{'a':{'b':1}}"},
	{"{'a':1}", "[{'op':'test','path':'a','value':1}]", NULL},
	/* indices */
	{"{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-1'}]", "{'a':[1,2]}"},
	{"{'a':[1,2,3]}", "[{'op':'add','path':'/a/-1','value':4}]", "{'a':[1,2,3,4]}"},
	{"{'a':[1,2,3]}", "[{'op':'add','path':'/a/-4','value':0}]", "{'a':[0,1,2,3]}"},
	{"{'a':[1,2,3]}", "[{'op':'add','path':'/a/-5','value':0}]", NULL},
	{"{'a':[1]}", "[{'op':'add','path':'/a/1','value':2}]", "{'a':[1,2]}"},
	{"{'a':[1]}", "[{'op':'add','path':'/a/2','value':2}]", NULL},
	{"{'a':[1]}", "[{'op':'add','path':'/a/+0','value':2}]", "{'a':[2,1]}"},
	{"{'a':[1]}", "[{'op':'add','path':'/a/00','value':2}]", "{'a':[2,1]}"},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/1'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/-'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/-2'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/x'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/99999999999999999999'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/ 0'}]", NULL},
	{"{'a':[1]}", "[{'op':'remove','path':'/a/--1'}]", NULL},
	{"{'a':[1,2]}", "[{'op':'replace','path':'/a/-1','value':3}]", "{'a':[1,3]}"},
	{"{'a':[1]}", "[{'op':'replace','path':'/a/1','value':3}]", NULL},
	{"{'a':[{'b':1}]}", "[{'op':'add','path':'/a/0/c','value':2}]", "{'a':[{'b':1,'c':2}]}"},
	/* as kube-apiserver reads them */
	{"{}", "[{'op':'replace','path':'/a','value':1}]", "{'a':1}"},
	{"{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]", "{'b':2}"},
	{"{'a':1}", "[{'op':'replace','path':'','value':[1]}]", "[1]"},
	{"{'a':1}", "[{'op':'replace','path':'','value':5}]", "{'a':1}"},
	{"{'a':1}", "[{'op':'replace','path':''}]", "{'a':1}"},
	{"{'a':1}", "[{'op':'add','path':'','value':{'b':2}}]", NULL},
	{"{'a':1}", "[{'op':'remove','path':''}]", NULL},
	{"{'a':1}", "[{'op':'remove','path':'/b'}]", NULL},
	{"{'a':1}", "[{'op':'remove','path':'/a/b'}]", NULL},
	{"{'a':null}", "[{'op':'remove','path':'/a'}]", "{}"},
	{"{'a':null}", "[{'op':'test','path':'/a','value':null}]", "{'a':null}"},
	{"{}", "[{'op':'test','path':'/a','value':null}]", "{}"},
	{"{}", "[{'op':'test','path':'/a'}]", "{}"},
	{"{}", "[{'op':'test','path':'/a/b','value':null}]", NULL},
	{"{'a':1}", "[{'op':'test','path':'/a'}]", NULL},
	{"{}", "[{'op':'add','path':'/a'}]", "{'a':null}"},
	{"{'a':null}", "[{'op':'add','path':'/a/b','value':1}]", NULL},
	{"{'a':{'b':1,'c':2}}", "[{'op':'test','path':'/a','value':{'c':2,'b':1}}]",
		"{'a':{'b':1,'c':2}}"},
	{"{'a':[1,2]}", "[{'op':'test','path':'/a','value':[2,1]}]", NULL},
	/* move and copy */
	{"{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL},
	{"{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a'}]", "{'a':{'b':1}}"},
	{"{'a':1}", "[{'op':'move','from':'/x','path':'/b'}]", NULL},
	{"{'a':1}", "[{'op':'move','path':'/b'}]", NULL},
	{"{'a':1}", "[{'op':'move','from':'/a'}]", NULL},
	{"{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/a/c'}]", "{'a':{'b':1,'c':{'b':1}}}"},
	{"{}", "[{'op':'copy','from':'/x','path':'/b'}]", "{'b':null}"},
	{"{}", "[{'op':'copy','from':'','path':'/b'}]", NULL},
	{"{'a':1}", "[{'op':'copy','from':'/a','path':'/x/y'}]", NULL},
	{"{'a':1}", "[{'op':'copy','from':'/x/y','path':'/b'}]", NULL},
	/* what is no operation */
	{"{}", "[{'op':'spam','path':'/a'}]", NULL},
	{"{}", "[{'op':'ADD','path':'/a','value':1}]", NULL},
	{"{}", "[{'path':'/a','value':1}]", NULL},
	{"{}", "[{'op':null,'path':'/a','value':1}]", NULL},
	{"{}", "[{'op':'add','value':1}]", NULL},
	{"{}", "[null]", NULL},
	{"{'a':1}", "[]", "{'a':1}"},
	/* in order, and all or nothing is the caller's */
	{"{}", "[{'op':'add','path':'/a','value':[]},{'op':'add','path':'/a/-','value':1}]",
		"{'a':[1]}"},
};

static struct json_object *quoted(const char *text)
{
	cleanup_free char *copy = xstrdup(text);

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return json_of(copy);
}

Test(store_jsonpatch, table)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_object *o = quoted(cases[i].doc);
		cleanup_json struct json_object *p = quoted(cases[i].patch), *want = NULL,
						*before = quoted(cases[i].patch);
		struct err err = ERR_INIT;
		int rc;

		cr_expect_eq(apireq_patch_check(p, &err), 0, "%s: %s", cases[i].patch, err.text);
		rc = apireq_patch_json(&o, p, &err);
		cr_expect_eq(rc, cases[i].result ? 0 : -1, "%s %s: %s", cases[i].doc,
			cases[i].patch, err.text);
		cr_expect_eq(err.kind, rc < 0 ? ERR_INVALID : ERR_NONE);
		cr_expect(json_object_equal(p, before), "%s was changed", cases[i].patch);
		if (cases[i].result) {
			want = quoted(cases[i].result);
			cr_expect(json_object_equal(o, want), "%s %s: %s", cases[i].doc,
				cases[i].patch, json_object_to_json_string(o));
		}
		json_object_put(o);
	}
}

Test(store_jsonpatch, what_is_no_list_of_operations)
{
	static const struct {
		const char *patch, *text;
	} refused[] = {
		{"{}", "error decoding patch: must be of type array"},
		{"'x'", "error decoding patch: must be of type array"},
		{"1.5", "error decoding patch: must be of type array"},
		{"[true]", "error decoding patch: an operation must be an object"},
		{"[{'op':1}]", "error decoding patch: \"op\" must be a string"},
		{"[{'op':'add','path':[]}]", "error decoding patch: \"path\" must be a string"},
		{"[{'op':'add','path':'','from':{}}]",
			"error decoding patch: \"from\" must be a string"},
	};

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		cleanup_json struct json_object *p = quoted(refused[i].patch);
		struct err err = ERR_INIT;

		cr_expect_eq(apireq_patch_check(p, &err), -1, "%s", refused[i].patch);
		cr_expect_eq(err.http, 400);
		cr_expect_str_eq(err.text, refused[i].text);
	}
}

static struct json_object *many(const char *op, size_t n)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < n; i++)
		json_push(a, quoted(op));
	return a;
}

Test(store_jsonpatch, ten_thousand_operations_and_no_more)
{
	static const char op[] = "{'op':'test','path':'/a','value':1}";
	cleanup_json struct json_object *most = many(op, APIREQ_PATCH_OPS),
					*more = many(op, APIREQ_PATCH_OPS + 1);
	struct json_object *o = quoted("{'a':1}");
	struct err err = ERR_INIT;

	cr_expect_eq(apireq_patch_check(most, &err), 0);
	cr_expect_eq(apireq_patch_json(&o, most, &err), 0, "%s", err.text);
	json_object_put(o);
	cr_expect_eq(apireq_patch_check(more, &err), -1);
	cr_expect_eq(err.http, 413);
	cr_expect(strstr(err.text, "a JSON patch is 10000, got 10001"), "%s", err.text);
}

/* Each doubles what is there. */
Test(store_jsonpatch, copies_are_counted)
{
	cleanup_json struct json_object *p = many("{'op':'copy','from':'/a','path':'/a/-'}", 100);
	struct json_object *o = quoted("{'a':['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']}");
	struct err err = ERR_INIT;

	cr_expect_eq(apireq_patch_json(&o, p, &err), -1);
	cr_expect(strstr(err.text, "exceeding the limit 3145728"), "%s", err.text);
	json_object_put(o);
}

/* Three short operations make one level more; thousands of them must not make thousands of levels. */
Test(store_jsonpatch, moves_do_not_nest_without_end)
{
	cleanup_json struct json_object *p = json_arr();
	struct json_object *o = quoted("{'s':1}");
	struct err err = ERR_INIT;

	for (size_t i = 0; i < 3000; i++) {
		json_push(p, quoted("{'op':'add','path':'/t','value':{'b':{'b':null}}}"));
		json_push(p, quoted("{'op':'move','from':'/s','path':'/t/b/b'}"));
		json_push(p, quoted("{'op':'move','from':'/t','path':'/s'}"));
	}
	cr_expect_eq(apireq_patch_json(&o, p, &err), -1);
	cr_expect(strstr(err.text, "too deep"), "%s", err.text);
	json_object_put(o);
}

Test(store_jsonpatch, work_is_bounded)
{
	cleanup_json struct json_object *p = many("{'op':'add','path':'/a/0','value':1}", 10000);
	struct json_object *o = json_obj(), *a = json_arr();
	struct err err = ERR_INIT;

	for (size_t i = 0; i < 400000; i++)
		json_push(a, NULL);
	json_add(o, "a", a);
	cr_expect_eq(apireq_patch_json(&o, p, &err), -1);
	json_object_put(o);
}
