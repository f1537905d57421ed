/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "apireq/things.h"
#include "tec/apireq/patch.h"
#include "tec/schema/builtin.h"

/* Of a ServiceAccount: secrets are told apart by name, finalizers are a set. result NULL: refused. */
static const struct {
	const char *have, *patch, *result;
} cases[] = {
	/* maps are a merge patch */
	{"{'a':1,'b':{'c':1}}", "{'a':null,'b':{'d':{'e':null}}}", "{'b':{'c':1,'d':{}}}"},
	{"{'a':[1]}", "{'a':{'x':1}}", "{'a':{'x':1}}"},
	{"{'a':[1]}", "{'a':[2]}", "{'a':[2]}"},
	{"{'a':{'x':1}}", "{'a':[2]}", "{'a':[2]}"},
	{"{'a':{'x':1}}", "{'a':{'$patch':'delete'}}", NULL},
	{"{'a':{'x':1}}", "{'a':{'$patch':'replace','y':1}}", NULL},
	{"{'a':1}", "{'$retainKeys':['b'],'a':2}", NULL},
	{"{'a':1}", "{'$other':1}", NULL},
	{"{'imagePullSecrets':[{'name':'a'}]}", "{'imagePullSecrets':[{'name':'b'}]}",
		"{'imagePullSecrets':[{'name':'b'}]}"},
	/* lists with a key */
	{"{'secrets':[{'name':'a','kind':'i'},{'name':'b'}]}",
		"{'secrets':[{'name':'b','kind':'j'}]}",
		"{'secrets':[{'name':'a','kind':'i'},{'name':'b','kind':'j'}]}"},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[{'name':'b','x':null},{'name':'b','y':1}]}",
		"{'secrets':[{'name':'b','y':1},{'name':'a'}]}"},
	{"{'secrets':[{'name':'a'},{'name':'b'}]}",
		"{'secrets':[{'name':'a','$patch':'delete'},{'name':'z','$patch':'delete'}]}",
		"{'secrets':[{'name':'b'}]}"},
	{"{}", "{'secrets':[{'name':'b'},{'name':'z','$patch':'delete'}]}",
		"{'secrets':[{'name':'b'}]}"},
	{"{'secrets':[{'name':'a'},{'name':'b'}]}",
		"{'secrets':[{'$patch':'replace'},{'name':'c'}]}", NULL},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[{'$patch':'delete'}]}", NULL},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[{'name':'a','$patch':'merge'}]}", NULL},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[{'kind':'j'}]}", NULL},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[5]}", NULL},
	{"{'secrets':[{'name':'a'}]}", "{'secrets':[[]]}", NULL},
	{"{'secrets':[5,{}]}", "{'secrets':[{'name':'a'}]}", "{'secrets':[{'name':'a'},5,{}]}"},
	{"{'secrets':[]}", "{'secrets':[]}", "{'secrets':[]}"},
	{"{'secrets':[{'name':'a','l':[1,2]}]}", "{'secrets':[{'name':'a','l':[3]}]}",
		"{'secrets':[{'name':'a','l':[3]}]}"},
	/* sets of scalars */
	{"{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c','a','c']}}",
		"{'metadata':{'finalizers':['c','a','b']}}"},
	{"{'metadata':{'finalizers':['a','b','a']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','x']}}",
		"{'metadata':{'finalizers':['b']}}"},
	{"{'metadata':{'finalizers':['a','b']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':['a'],"
		"'$setElementOrder/finalizers':['c','b'],'finalizers':['c']}}",
		"{'metadata':{'finalizers':['c','b']}}"},
	{"{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
		"{'metadata':{}}"},
	{"{'metadata':{'finalizers':['a']}}", "{'metadata':{'$deleteFromPrimitiveList':['a']}}",
		NULL},
	{"{'metadata':{'finalizers':['a']}}",
		"{'metadata':{'$deleteFromPrimitiveList/finalizers':'a'}}", NULL},
	/* order */
	{"{'secrets':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
		"{'$setElementOrder/secrets':[{'name':'c'},{'name':'a'}]}",
		"{'secrets':[{'name':'b'},{'name':'c'},{'name':'a'}]}"},
	{"{'secrets':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
		"{'$setElementOrder/secrets':[{'name':'a'},{'name':'c'}],"
		"'secrets':[{'name':'b','$patch':'delete'}]}",
		"{'secrets':[{'name':'a'},{'name':'c'}]}"},
	{"{'secrets':[{'name':'a'}]}",
		"{'$setElementOrder/secrets':[{'name':'b'},{'name':'a'}],'secrets':[{'name':'b'}]}",
		"{'secrets':[{'name':'b'},{'name':'a'}]}"},
	{"{'secrets':[{'name':'a'},{'name':'a','x':1}]}",
		"{'$setElementOrder/secrets':[{'name':'a'},{'name':'a'}]}",
		"{'secrets':[{'name':'a'},{'name':'a','x':1}]}"},
	{"{}", "{'$setElementOrder/secrets':[{'name':'b'}],'secrets':[{'name':'b'}]}",
		"{'secrets':[{'name':'b'}]}"},
	{"{}", "{'$setElementOrder/secrets':[{'name':'b'}]}", "{}"},
	{"{}", "{'$setElementOrder':[]}", NULL},
	{"{}", "{'$setElementOrder/':[]}", NULL},
	{"{}", "{'$setElementOrder/secrets':5}", NULL},
	/* what is new has no directives in it */
	{"{}", "{'a':{'b':[{'$patch':'delete'},{'$retainKeys':[],'c':null,'d':1}]}}",
		"{'a':{'b':[{'d':1}]}}"},
};

static struct json_object *quoted(const char *text)
{
	cleanup_free char *copy = xstrdup(text);

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	return json_of(copy);
}

Test(store_strategic, table)
{
	const struct store_kind kind = {.schema = schema_builtin_kind("", "v1", "ServiceAccount")};
	const struct apireq_place p = apireq_place_object(&kind, NULL);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_object *o = quoted(cases[i].have);
		cleanup_json struct json_object *patch = quoted(cases[i].patch), *want = NULL,
						*before = quoted(cases[i].patch);
		struct err err = ERR_INIT;
		int rc = apireq_patch_strategic(&p, o, patch, &err);

		cr_expect_eq(rc, cases[i].result ? 0 : -1, "%s %s: %s", cases[i].have,
			cases[i].patch, err.text);
		cr_expect_eq(err.http, cases[i].result ? 0 : 400, "%s %s", cases[i].have,
			cases[i].patch);
		cr_expect(json_object_equal(patch, before), "%s was changed", cases[i].patch);
		if (cases[i].result) {
			want = quoted(cases[i].result);
			cr_expect(json_object_equal(o, want), "%s %s: %s", cases[i].have,
				cases[i].patch, json_object_to_json_string(o));
		}
		json_object_put(o);
	}
}
