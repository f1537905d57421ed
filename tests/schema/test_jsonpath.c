/* SPDX-License-Identifier: MIT */
/* The JSONPaths of columns. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/jsonpath.h"

static const char object[] =
	"{spec: {id: x, n: 5, list: [a, b, c], \"d.ot\": y}, status: {conditions: [{type: A, status: "
	"\"False\", n: 1}, {type: B, status: \"True\", ok: true, n: 2}, {status: odd}]}, nil: null}";

static const struct {
	const char *path, *values; /* joined with a comma */
} rows[] = {
	{".spec.id", "x"},
	{".spec.nope", ""},
	{".spec.id.deeper", ""},
	{".spec.list", "[ \"a\", \"b\", \"c\" ]"},
	{".spec.list[0]", "a"},
	{".spec.list[-1]", "c"},
	{".spec.list[3]", ""},
	{".spec.list[-4]", ""},
	{".spec.list[*]", "a,b,c"},
	{".spec['id']", "x"},
	{".spec['d.ot']", "y"},
	{".spec.d\\.ot", "y"},
	{"['spec'].id", "x"},
	{".status.conditions[*].type", "A,B"},
	{".status.conditions[?(@.type==\"B\")].status", "True"},
	{".status.conditions[?(@.type=='B')].status", "True"},
	{".status.conditions[?(@.type == \"A\")].status", "False"},
	{".status.conditions[?(@.type!=\"A\")].status", "True"},
	{".status.conditions[?(@.n==2)].type", "B"},
	{".status.conditions[?(@.ok==true)].type", "B"},
	{".status.conditions[?(@.ok)].type", "B"},
	{".status.conditions[?(@.type==\"C\")].status", ""},
	{".nil", "null"},
	{".spec.*", "x,5,[ \"a\", \"b\", \"c\" ],y"},
};

static bool collect(struct json_object *v, void *arg)
{
	struct strbuf *b = arg;

	strbuf_addf(b, "%s%s", b->len ? "," : "", v ? json_object_get_string(v) : "null");
	return true;
}

Test(schema_jsonpath, finds)
{
	cleanup_json struct json_object *o = parse(object);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;
		struct schema_jsonpath *p = schema_jsonpath_new(rows[i].path, &err);
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		cr_assert(p, "%s: %s", rows[i].path, err.text);
		schema_jsonpath_find(p, o, collect, &b);
		cr_expect_str_eq(
			strbuf_str(&b), rows[i].values, "%s: %s", rows[i].path, strbuf_str(&b));
		schema_jsonpath_free(p);
	}
}

Test(schema_jsonpath, refuses)
{
	static const char *const bad[] = {"", "spec", "..a", ".a..b", ".a[", ".a[1", ".a[1:2]",
		".a[0,1]", ".a['x", ".a[?(", ".a[?(@.x==)]", ".a[?(x==1)]", ".a[?(@.x==1]", ".a b",
		".a{.b}", ".a[x]", ".a[99999999999999999999]", ".a[?(@[?(@[?(@[?(@[?(@.a)])])])])]",
		".a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		struct schema_jsonpath *p = schema_jsonpath_new(bad[i], &err);

		cr_expect_null(p, "%s", bad[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
		schema_jsonpath_free(p);
	}
}
