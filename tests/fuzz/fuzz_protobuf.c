/* SPDX-License-Identifier: MIT */
/*
 * A request body of type application/vnd.kubernetes.protobuf. What is read says what it is, is read
 * the same way twice, and is text that a JSON parser takes; what is refused leaves nothing behind
 * and says why.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apihttp/protobuf.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json struct json_object *o = NULL, *again = NULL, *parsed = NULL;
	cleanup_free char *text = NULL, *same = NULL;
	struct err err = ERR_INIT, err2 = ERR_INIT;

	o = apihttp_protobuf_read((const char *)data, size, &err);
	again = apihttp_protobuf_read((const char *)data, size, &err2);
	if (!o != !again || err.kind != err2.kind)
		DIE("a body that is read in two ways");
	if (!o) {
		if (err.kind != ERR_INVALID && err.kind != ERR_NOT_FOUND)
			DIE("a refusal without a reason");
		return 0;
	}
	if (err_is_set(&err) || !json_object_is_type(o, json_type_object) ||
		!json_get_str(o, "apiVersion") || !json_get_str(o, "kind"))
		DIE("an object that does not say what it is");
	text = json_text(o);
	same = json_text(again);
	if (strcmp(text, same) != 0)
		DIE("a body that is read as two objects");
	parsed = json_parse(text, strlen(text), &json_limits_api, &err);
	if (!parsed)
		DIE("an object that is not JSON: %s", err.text);
	return 0;
}
