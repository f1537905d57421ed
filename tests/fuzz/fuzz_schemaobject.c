/* SPDX-License-Identifier: MIT */
/*
 * A JSON array of an object and what it was before, by a schema with every keyword that crd/ uses.
 * Pruning twice is as good as once; what did not change has no cause; the object has a table.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/schema/crd.h"
#include "tec/schema/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char definition[] =
	"{\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"foos\","
	"\"singular\":\"foo\",\"kind\":\"Foo\",\"listKind\":\"FooList\"},\"versions\":[{\"name\":\"v1\","
	"\"additionalPrinterColumns\":[{\"name\":\"S\",\"type\":\"string\",\"jsonPath\":\".status.l[?"
	"(@.k==\\\"a\\\")].v\"},{\"name\":\"D\",\"type\":\"date\",\"jsonPath\":\".spec.d\"}],"
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"required\":[\"spec\"],\"properties\":{"
	"\"spec\":{\"type\":\"object\",\"properties\":{\"e\":{\"type\":\"string\",\"enum\":[\"A\",\"B\"]},"
	"\"p\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":3,\"pattern\":\"^(a|b)+$\","
	"\"x-kubernetes-validations\":[{\"rule\":\"self == oldSelf\",\"message\":\"fixed\"}]},"
	"\"s\":{\"type\":\"array\",\"maxItems\":4,\"x-kubernetes-list-type\":\"set\",\"items\":{"
	"\"type\":\"string\"}},\"d\":{\"type\":\"string\",\"format\":\"date-time\"}},"
	"\"x-kubernetes-validations\":[{\"rule\":\"has(self.e) || size(self.s) != 1\",\"message\":\"no\","
	"\"fieldPath\":\".s\"}]},\"status\":{\"type\":\"object\",\"properties\":{\"l\":{\"type\":\"array\","
	"\"minItems\":1,\"maxItems\":4,\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":"
	"[\"k\"],\"items\":{\"type\":\"object\",\"required\":[\"k\"],\"properties\":{\"k\":{\"type\":"
	"\"string\"},\"v\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}}}}}}}}}}]}}";

static struct schema_crd *make(void)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(definition, sizeof(definition) - 1, &json_limits_object, &err);
	struct schema_crd *c = schema_crd_new(o, &err);

	assert(c);
	return c;
}

static void validate(struct schema_crd *c, struct json_object *o, struct json_object *old)
{
	for (int status = 0; status < 2; status++) {
		struct schema_causes causes = {NULL, 0, 0};
		struct schema_texts warnings = {NULL, 0, 0};
		cleanup_free char *text = NULL;

		schema_validate(c->schema, o, old, status, &causes, &warnings);
		assert(o != old || causes.n == 0);
		text = schema_causes_text(&causes);
		json_object_put(schema_causes_json(&causes));
		schema_causes_fini(&causes);
		schema_texts_fini(&warnings);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *all =
		json_parse((const char *)data, size, &json_limits_object, &err);
	struct json_object *o = json_at(all, 0), *old = json_at(all, 1);
	struct schema_texts unknown = {NULL, 0, 0};
	struct schema_crd *c;
	struct schema_table t = {.version = "v1"};

	if (!json_object_is_type(o, json_type_object) ||
		(old && !json_object_is_type(old, json_type_object)))
		return 0;
	c = make();
	t.kind = &c->kind;
	schema_prune(c->schema, o, &unknown);
	schema_texts_fini(&unknown);
	schema_prune(c->schema, o, &unknown);
	assert(unknown.n == 0);
	schema_texts_fini(&unknown);
	validate(c, o, old);
	validate(c, o, NULL);
	validate(c, o, o);
	json_object_put(schema_table_new(&t, o));
	schema_crd_free(c);
	return 0;
}
