/* SPDX-License-Identifier: MIT */
/* A TOML file from anywhere: a document that JSON can hold, or an error. */
#include "config.h"

#include <stdint.h>

#include "tec/base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct json_limits limits = {
		.bytes = 64 << 20, .depth = 200, .tokens = 10000000};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = toml_parse((const char *)data, size, &err);
	cleanup_free char *text = o ? json_text(o) : NULL;
	cleanup_json struct json_object *again = NULL;

	if (!o != err_is_set(&err))
		DIE("neither a document nor an error, or both");
	if (!o)
		return 0;
	if (!json_object_is_type(o, json_type_object))
		DIE("a document that is no table");
	again = json_parse(text, strlen(text), &limits, &err);
	if (!again)
		DIE("what was read is not JSON: %s", err.text);
	return 0;
}
