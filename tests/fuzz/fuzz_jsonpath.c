/* SPDX-License-Identifier: MIT */
/* The JSONPath of a column, over one object: what is read ends, and finds the same again. */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/schema/jsonpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char object[] =
	"{\"a\":{\"b\":[1,2,{\"c\":\"x\"}],\"c\":null},\"l\":[{\"t\":\"A\",\"n\":1},{\"t\":\"B\"},[[]]]}";

static bool count(struct json_object *v, void *arg)
{
	(void)json_object_get_string(v);
	return ++*(size_t *)arg < 100000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *path = xstrndup((const char *)data, size);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(object, sizeof(object) - 1, &json_limits_object, &err);
	struct schema_jsonpath *p = schema_jsonpath_new(path, &err);
	size_t n = 0, m = 0;

	assert((p == NULL) == (err.kind != ERR_NONE));
	if (p) {
		schema_jsonpath_find(p, o, count, &n);
		schema_jsonpath_find(p, o, count, &m);
		assert(n == m);
	}
	schema_jsonpath_free(p);
	return 0;
}
