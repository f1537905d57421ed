/* SPDX-License-Identifier: MIT */
/*
 * A JSON array of a schema and one or two objects. A schema that is accepted prunes and defaults
 * an object once and for all; what did not change has no cause on update but from rules with
 * oldSelf and lists; a definition with it has tables and documents.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/schema/crd.h"
#include "tec/schema/openapi.h"
#include "tec/schema/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_object(const struct schema_node *s, struct json_object *o, struct json_object *old)
{
	struct schema_causes causes = {NULL, 0, 0, false};
	struct schema_texts unknown = {NULL, 0, 0}, warnings = {NULL, 0, 0};
	cleanup_free char *once = NULL, *twice = NULL, *text = NULL;

	schema_prune(s, o, &unknown);
	schema_texts_fini(&unknown);
	schema_prune(s, o, &unknown);
	assert(unknown.n == 0);
	schema_default(s, o);
	once = json_text(o);
	schema_default(s, o);
	twice = json_text(o);
	assert(strcmp(once, twice) == 0);
	schema_validate(s, o, old, &causes, &warnings);
	schema_validate_status(s, o, old, &causes, &warnings);
	text = schema_causes_text(&causes);
	json_object_put(schema_causes_json(&causes));
	schema_causes_fini(&causes);
	schema_texts_fini(&warnings);
	schema_texts_fini(&unknown);
}

/* The schema in a definition, with the rest as it must be. */
static void try_crd(struct json_object *schema, struct json_object *o)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"foos.example.com\"},\"spec\":{\"group\":\"example.com\","
		"\"scope\":\"Cluster\",\"names\":{\"plural\":\"foos\",\"singular\":\"foo\","
		"\"kind\":\"Foo\",\"listKind\":\"FooList\"},"
		"\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true}]}}";
	struct err err = ERR_INIT;
	cleanup_json struct json_object *crd =
		json_parse(text, sizeof(text) - 1, &json_limits_object, &err);
	struct json_object *v = json_object_array_get_idx(json_get_arr(crd, "spec/versions"), 0);
	struct schema_crd *c;

	json_add(v, "schema", json_add(json_obj(), "openAPIV3Schema", json_object_get(schema)));
	err = (struct err)ERR_INIT;
	c = schema_crd_new(crd, &err);
	assert((c == NULL) == err_is_set(&err));
	if (c) {
		struct schema_served served = {&c, 1};
		struct schema_table t = {.kind = &c->kind, .version = "v1"};
		cleanup_strbuf struct strbuf b = STRBUF_INIT;
		cleanup_json struct json_object *swagger = schema_openapi_v2(&served);

		json_object_put(schema_table_new(&t, &o, 1));
		json_object_put(schema_openapi_v3(&served, "example.com", "v1"));
		schema_openapi_v2_protobuf(swagger, &b);
	}
	schema_crd_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *all =
		json_parse((const char *)data, size, &json_limits_object, &err);
	struct schema_causes causes = {NULL, 0, 0, false};
	struct json_object *o, *old;
	struct schema_node *s;

	if (!json_object_is_type(all, json_type_array) || json_object_array_length(all) < 2)
		return 0;
	o = json_object_array_get_idx(all, 1);
	old = json_object_array_get_idx(all, 2);
	if (!json_object_is_type(o, json_type_object) ||
		(old && !json_object_is_type(old, json_type_object)))
		return 0;
	try_crd(json_object_array_get_idx(all, 0), o);
	s = schema_structural_new(json_object_array_get_idx(all, 0), "s", &causes);
	assert((s == NULL) == (causes.n > 0));
	if (s)
		try_object(s, o, old);
	schema_structural_free(s);
	schema_causes_fini(&causes);
	return 0;
}
