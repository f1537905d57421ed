/* SPDX-License-Identifier: MIT */
/*
 * A rule, run over objects that fit the schema and that do not, with and without a former one.
 * Whatever compiles says the same again.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/schema/cel.h"
#include "tec/schema/structural.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{\"i\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"},"
	"\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"o\":{\"type\":\"object\","
	"\"properties\":{\"s\":{\"type\":\"string\"}}}}}";
static const char *const objects[] = {"{\"i\":5,\"s\":\"abc\",\"l\":[\"a\"],\"o\":{\"s\":\"a\"}}",
	"{\"i\":1.5,\"s\":null,\"l\":{},\"o\":[]}", "{\"i\":\"5\",\"o\":{}}"};

static struct json_object *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	assert(o);
	return o;
}

static void run(const struct schema_cel *c, struct json_object *self, struct json_object *old)
{
	bool holds = schema_cel_holds(c, self, old);

	assert(holds == schema_cel_holds(c, self, old));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *rule = xstrndup((const char *)data, size);
	cleanup_json struct json_object *o = parse(schema);
	struct err err = ERR_INIT;
	struct schema_node *type = schema_structural_new(o, &err);
	struct schema_cel *c;

	assert(type);
	c = schema_cel_new(rule, type, &err);
	assert((c == NULL) == (err.kind != ERR_NONE));
	for (size_t i = 0; c && i < ARRAY_LEN(objects); i++) {
		cleanup_json struct json_object *self = parse(objects[i]), *old = parse(objects[0]);

		run(c, self, old);
		if (!schema_cel_uses_old(c))
			run(c, self, NULL);
	}
	schema_cel_free(c);
	schema_structural_free(type);
	return 0;
}
