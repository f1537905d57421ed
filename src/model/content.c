/* SPDX-License-Identifier: MIT */
/*
 * Values are hashed as they appear in JSON, in base64: the API server writes each byte string in
 * one way only, which is also ours. The hash is that of model/input.h.
 */
#include "config.h"

#include "tec/model/content.h"

#include "tec/base/json.h"
#include "tec/model/input.h"

bool model_content_sha256(struct json_object *o, char hex[SHA256_HEX_LEN + 1])
{
	struct json_object *data = json_get_obj(o, "data");
	size_t n = json_len(data);

	hex[0] = '\0';
	if (n == 0 || n > MODEL_CONTENT_MEMBERS_MAX)
		return false;
	json_each (data, name, value)
		if (!json_object_is_type(value, json_type_string))
			return false;
	model_input_hash(data, hex);
	return true;
}

/* The parsed copy contains key material, too, and is wiped. */
bool model_content_of_text(const struct secret *text, char hex[SHA256_HEX_LEN + 1])
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(
		(const char *)secret_peek(text), secret_len(text), &json_limits_object, &ignored);
	bool ok = o && model_content_sha256(o, hex);

	if (!ok)
		hex[0] = '\0';
	json_wipe(o);
	return ok;
}
