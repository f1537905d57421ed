/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apistore/things.h"
#include "tec/apistore/strategic.h"

/* Of a kind without a schema: lists of containers, finalizers and volumes. result NULL: refused with
 * status. */
static const struct {
	const char *have, *patch, *result;
	int status;
} cases[] = {
	/* maps are a merge patch */
	{"{'a':1,'b':{'c':1}}", "{'a':null,'b':{'d':{'e':null}}}", "{'b':{'c':1,'d':{}}}", 0},
	{"{'a':[1]}", "{'a':{'x':1}}", "{'a':{'x':1}}", 0},
	{"{'a':{'x':1}}", "{'a':{'$patch':'delete'}}", "{'a':{}}", 0},
	{"{}", "{'a':{'$patch':'delete'}}", "{}", 0},
	{"{'a':{'x':1}}", "{'a':{'$patch':'replace','y':{'z':null}}}", "{'a':{'y':{}}}", 0},
	{"{'a':{'x':1}}", "{'a':{'$patch':'merge','y':1}}", NULL, 500},
	{"{'a':{'x':1}}", "{'a':{'$patch':5}}", NULL, 500},
	{"{'a':1}", "{'$patch':'delete'}", "{}", 0},
	{"{'a':1}", "{'$patch':'replace','b':1}", "{'b':1}", 0},
	/* lists with a key */
	{"{'spec':{'containers':[{'name':'a','image':'i'},{'name':'b'}]}}",
		"{'spec':{'containers':[{'name':'b','image':'j'}]}}",
		"{'spec':{'containers':[{'name':'a','image':'i'},{'name':'b','image':'j'}]}}", 0},
	{"{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'b','x':null},{'name':'b','y':1}]}}",
		"{'spec':{'containers':[{'name':'b','y':1},{'name':'a'}]}}", 0},
	{"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		"{'spec':{'containers':[{'name':'a','$patch':'delete'},{'name':'z','$patch':'delete'}]}}",
		"{'spec':{'containers':[{'name':'b'}]}}", 0},
	{"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
		"{'spec':{'containers':[{'$patch':'replace'},{'name':'c'}]}}",
		"{'spec':{'containers':[{'name':'c'}]}}", 0},
	{"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'$patch':'delete'}]}}",
		NULL, 500},
	{"{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'a','$patch':'merge'}]}}", NULL, 500},
	{"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[{'image':'j'}]}}", NULL,
		500},
	{"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[5]}}", NULL, 500},
	{"{'spec':{'containers':[{'name':'a'}]}}", "{'spec':{'containers':[[]]}}", NULL, 422},
	{"{'spec':{'containers':[5,{}]}}", "{'spec':{'containers':[{'name':'a'}]}}", NULL, 500},
	{"{'spec':{'containers':[{}]}}", "{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'a'},{}]}}", 0},
	{"{'spec':{'containers':[]}}", "{'spec':{'containers':[]}}", "{'spec':{'containers':[]}}",
		0},
	{"{'spec':{'containers':[{'name':'a','args':[1,2]}]}}",
		"{'spec':{'containers':[{'name':'a','args':[3]}]}}",
		"{'spec':{'containers':[{'name':'a','args':[3]}]}}", 0},
	/* sets of scalars */
	{"{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c','a','c']}}",
		"{'metadata':{'finalizers':['c','a','b']}}", 0},
	{"{'metadata':{'finalizers':['a','b','a']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','x']}}",
		"{'metadata':{'finalizers':['b']}}", 0},
	{"{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
		"{'metadata':{}}", 0},
	{"{'metadata':{'finalizers':['a']}}", "{'metadata':{'$deleteFromPrimitiveList':['a']}}",
		NULL, 400},
	{"{'metadata':{'finalizers':['a']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':'a'}}", NULL, 400},
	{"{'metadata':{'finalizers':['a']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':[{}]}}", NULL, 500},
	{"{'spec':{'containers':[{}]}}", "{'spec':{'$deleteFromPrimitiveList/containers':[{}]}}",
		NULL, 500},
	/* order */
	{"{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}",
		"{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}]}}",
		"{'spec':{'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]}}", 0},
	{"{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],'containers':[{'name':'b'}]}}",
		"{'spec':{'containers':[{'name':'b'},{'name':'a'}]}}", 0},
	{"{'spec':{}}",
		"{'spec':{'$setElementOrder/containers':[{'name':'b'}],'containers':[{'name':'b'}]}}",
		"{'spec':{'containers':[{'name':'b'}]}}", 0},
	{"{'spec':{}}", "{'spec':{'$setElementOrder/containers':[{'name':'b'}]}}", "{'spec':{}}",
		0},
	{"{'spec':{'containers':[{'name':'a'}]}}",
		"{'spec':{'$setElementOrder/containers':[{'name':'a'}],'containers':[{'name':'b'}]}}",
		NULL, 500},
	{"{'spec':{}}", "{'spec':{'$setElementOrder':[]}}", NULL, 400},
	{"{'spec':{}}", "{'spec':{'$setElementOrder/containers':5}}", NULL, 500},
	/* keys that stay */
	{"{'spec':{'volumes':[{'name':'v','emptyDir':{},'x':1}]}}",
		"{'spec':{'volumes':[{'name':'v','$retainKeys':['name','configMap'],'configMap':{}}]}}",
		"{'spec':{'volumes':[{'name':'v','configMap':{}}]}}", 0},
	{"{'a':1}", "{'$retainKeys':['b'],'a':2}", NULL, 400},
	{"{'a':1}", "{'$retainKeys':'a'}", NULL, 400},
	{"{'a':1,'b':2}", "{'$retainKeys':['b',5,null],'a':null}", "{'b':2}", 0},
	/* what is new has no directives in it */
	{"{}", "{'a':{'b':[{'$patch':'delete'},{'$retainKeys':[],'c':null,'d':1}]}}",
		"{'a':{'b':[{'d':1}]}}", 0},
};

static struct json_object *quoted(const char *text)
{
	cleanup_free char *copy = xstrdup(text);

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return json_of(copy);
}

Test(apistore_strategic, table)
{
	static const struct apistore_lists lists = {apistore_lists_builtin, APISTORE_LISTS_BUILTIN};
	static const struct apistore_kind kind = {.schema = NULL};
	const struct apistore_place p = apistore_place_object(&kind, &lists);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_object *o = quoted(cases[i].have);
		cleanup_json struct json_object *patch = quoted(cases[i].patch), *want = NULL,
						*before = quoted(cases[i].patch);
		struct err err = ERR_INIT;
		int rc = apistore_strategic_merge(&p, &o, patch, &err);

		cr_expect_eq(rc, cases[i].result ? 0 : -1, "%s %s: %s", cases[i].have,
			cases[i].patch, err.text);
		cr_expect_eq(err.http, cases[i].status, "%s %s", cases[i].have, cases[i].patch);
		cr_expect(json_object_equal(patch, before), "%s was changed", cases[i].patch);
		if (cases[i].result) {
			want = quoted(cases[i].result);
			cr_expect(json_object_equal(o, want), "%s %s: %s", cases[i].have,
				cases[i].patch, json_object_to_json_string(o));
		}
		json_object_put(o);
	}
}
