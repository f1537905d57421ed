/* SPDX-License-Identifier: MIT */
/* The documents that kubectl explain and kubectl's own validation read. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/openapi.h"

struct fixture {
	struct schema_crd *crds[2];
	struct schema_served served;
};

static void start(struct fixture *f)
{
	f->crds[0] = load_crd("crd/machines.yaml");
	f->crds[1] = load_crd("crd/trustedexecutionclusters.yaml");
	f->served = (struct schema_served){f->crds, 2};
}

static void stop(struct fixture *f)
{
	schema_crd_free(f->crds[0]);
	schema_crd_free(f->crds[1]);
}

#define MACHINE "io.trusted-execution-clusters.v1alpha1.Machine"

/* Every $ref of o leads to a member of schemas. */
static void assert_refs(struct json_object *o, const char *prefix, struct json_object *schemas)
{
	if (json_object_is_type(o, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(o); i++)
			assert_refs(json_object_array_get_idx(o, i), prefix, schemas);
	} else if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach (o, name, v) {
			if (str_eq(name, "$ref")) {
				const char *ref = json_object_get_string(v);

				cr_assert(str_starts(ref, prefix), "%s", ref);
				cr_assert(json_object_object_get_ex(
						  schemas, ref + strlen(prefix), NULL),
					"%s", ref);
			} else
				assert_refs(v, prefix, schemas);
		}
	}
}

Test(schema_openapi, v3_describes_ours)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *doc =
		schema_openapi_v3(&f.served, "trusted-execution-clusters.io", "v1alpha1");
	struct json_object *schemas = json_get_obj(doc, "components/schemas"),
			   *m = json_object_object_get(schemas, MACHINE), *gvk, *paths, *item;

	cr_assert_str_eq(json_get_str(doc, "openapi"), "3.0.0");
	cr_assert(json_get_str(m, "properties/spec/properties/id/description"));
	gvk = json_object_array_get_idx(json_get_arr(m, "x-kubernetes-group-version-kind"), 0);
	cr_assert_str_eq(json_get_str(gvk, "kind"), "Machine");
	cr_assert(json_object_object_get(schemas, MACHINE "List"));
	paths = json_get_obj(doc, "paths");
	item = json_object_object_get(paths,
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{namespace}/machines/{name}");
	cr_assert_str_eq(
		json_get_str(item, "patch/x-kubernetes-group-version-kind/kind"), "Machine");
	assert_refs(doc, "#/components/schemas/", schemas);
	cr_assert_null(schema_openapi_v3(&f.served, "nope.example.com", "v1"));
	stop(&f);
}

Test(schema_openapi, v3_names_builtin_kinds)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *doc = schema_openapi_v3(&f.served, "", "v1");
	struct json_object *schemas = json_get_obj(doc, "components/schemas"),
			   *secret = json_object_object_get(schemas, "io.k8s.api.core.v1.Secret");

	cr_assert(json_get_obj(secret, "properties/stringData"));
	cr_assert_null(json_get_obj(secret, "properties/spec"));
	cr_assert(json_get_obj(json_object_object_get(schemas, "io.k8s.api.core.v1.Namespace"),
		"properties/spec"));
	cr_assert_null(json_object_object_get(schemas, MACHINE));
	assert_refs(doc, "#/components/schemas/", schemas);
	stop(&f);
}

Test(schema_openapi, the_index_changes_with_a_document)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *all = schema_openapi_index(&f.served), *less = NULL;
	struct json_object *paths = json_get_obj(all, "paths"), *ours, *core, *other;
	static const char group[] = "apis/trusted-execution-clusters.io/v1alpha1";

	f.served.n = 1;
	less = schema_openapi_index(&f.served);
	other = json_get_obj(less, "paths");
	ours = json_object_object_get(paths, group);
	core = json_object_object_get(paths, "api/v1");
	cr_assert(str_starts(json_get_str(ours, "serverRelativeURL"),
		"/openapi/v3/apis/trusted-execution-clusters.io/v1alpha1?hash="));
	cr_assert_str_eq(json_get_str(core, "serverRelativeURL"),
		json_get_str(json_object_object_get(other, "api/v1"), "serverRelativeURL"));
	cr_assert_str_neq(json_get_str(ours, "serverRelativeURL"),
		json_get_str(json_object_object_get(other, group), "serverRelativeURL"));
	stop(&f);
}

Test(schema_openapi, v2_has_only_what_v2_has)
{
	struct fixture f;

	start(&f);
	cleanup_json struct json_object *doc = schema_openapi_v2(&f.served);
	struct json_object *d = json_get_obj(doc, "definitions"),
			   *m = json_object_object_get(d, MACHINE);
	cleanup_free char *text = json_text(m);

	cr_assert_str_eq(json_get_str(doc, "swagger"), "2.0");
	cr_assert(json_get_str(m, "properties/spec/properties/id/description"));
	cr_assert(!strstr(text, "anyOf") && !strstr(text, "nullable"));
	assert_refs(doc, "#/definitions/", d);
	stop(&f);
}

/* ---- the protobuf, read back */

struct field {
	unsigned number, wire;
	uint64_t value;
	const char *data;
	size_t len;
};

static uint64_t varint(const char **p, const char *end)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char c;

		cr_assert_lt(*p, end);
		c = (unsigned char)*(*p)++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return v;
	}
	cr_assert_fail("a number does not end");
	return 0;
}

static bool next_field(const char **p, const char *end, struct field *f)
{
	uint64_t tag;

	if (*p == end)
		return false;
	tag = varint(p, end);
	*f = (struct field){.number = (unsigned)(tag >> 3), .wire = tag & 7};
	if (f->wire == 0)
		f->value = varint(p, end);
	else if (f->wire == 2)
		f->len = varint(p, end);
	else
		cr_assert_eq(f->wire, 1);
	if (f->wire == 1)
		f->len = 8;
	cr_assert_leq(f->len, (size_t)(end - *p));
	f->data = *p;
	*p += f->len;
	return true;
}

/* The n-th field of this number; false: there is none. */
static bool get(struct field in, unsigned number, size_t n, struct field *out)
{
	const char *p = in.data, *end = in.data + in.len;

	while (next_field(&p, end, out))
		if (out->number == number && n-- == 0)
			return true;
	return false;
}

/* In a list of {name = 1, value = 2}. */
static struct field named(struct field in, unsigned number, const char *name)
{
	struct field e, f, v;

	for (size_t i = 0; get(in, number, i, &e); i++)
		if (get(e, 1, 0, &f) && f.len == strlen(name) && memcmp(f.data, name, f.len) == 0) {
			cr_assert(get(e, 2, 0, &v));
			return v;
		}
	cr_assert_fail("no %s", name);
	return in;
}

static void assert_text(struct field in, unsigned number, const char *text)
{
	struct field f;

	cr_assert(
		get(in, number, 0, &f) && f.len == strlen(text) && memcmp(f.data, text, f.len) == 0,
		"%s", text);
}

Test(schema_openapi, the_protobuf_says_the_same)
{
	struct fixture f;
	struct strbuf b = STRBUF_INIT;
	struct field doc, d, schema, p, op, any, prop;

	start(&f);
	cleanup_json struct json_object *swagger = schema_openapi_v2(&f.served);

	schema_openapi_v2_protobuf(swagger, &b);
	doc = (struct field){.data = b.data, .len = b.len};
	assert_text(doc, 1, "2.0");
	cr_assert(get(doc, 9, 0, &d) && get(doc, 8, 0, &p));
	schema = named(d, 1, MACHINE);
	any = named(schema, 31, "x-kubernetes-group-version-kind");
	assert_text(any, 2,
		"[{\"group\":\"trusted-execution-clusters.io\",\"kind\":\"Machine\",\"version\":\"v1alpha1\"}]");
	cr_assert(get(schema, 25, 0, &prop));
	prop = named(prop, 1, "metadata");
	assert_text(prop, 1, "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
	op = named(p, 2,
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/{namespace}/machines/{name}");
	cr_assert(get(op, 8, 0, &op));
	cr_assert(get(op, 8, 0, &p) && get(p, 1, 0, &p) && get(p, 2, 0, &p) && get(p, 3, 0, &p));
	assert_text(p, 4, "dryRun");
	assert_text(p, 6, "string");
	strbuf_fini(&b);
	stop(&f);
}
