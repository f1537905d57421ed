/* SPDX-License-Identifier: MIT */
/*
 * A rule, run over one object with and without a former one. Whatever compiles ends within its
 * budget, says the same again, and needs oldSelf when it says so.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/schema/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char object[] = "{\"i\":5,\"s\":\"abc\",\"b\":true,\"n\":null,\"d\":1.5,\"l\":[1,2,"
			     "{\"k\":\"v\"}],\"m\":{\"k\":\"v\"}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *rule = xstrndup((const char *)data, size);
	struct err err = ERR_INIT;
	struct schema_cel *c = schema_cel_new(rule, NULL, &err);
	cleanup_json struct json_object *self =
		json_parse(object, sizeof(object) - 1, &json_limits_object, &err);

	assert((c == NULL) == (err.kind != ERR_NONE));
	if (!c)
		return 0;
	for (int old = schema_cel_uses_old(c); old < 2; old++) {
		uint64_t budget = 100000, again = 100000;
		struct err a = ERR_INIT, b = ERR_INIT;
		enum schema_cel_result r = schema_cel_eval(c, self, old ? self : NULL, &budget, &a);

		assert(r == schema_cel_eval(c, self, old ? self : NULL, &again, &b));
		assert(budget == again && (r == SCHEMA_CEL_ERROR) == (a.kind != ERR_NONE));
		assert((r == SCHEMA_CEL_BUDGET_GONE) == (budget == 0));
	}
	schema_cel_free(c);
	return 0;
}
