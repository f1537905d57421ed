/* SPDX-License-Identifier: MIT */
/*
 * Values are hashed as they appear in JSON, in base64: the API server writes each byte string in
 * one way only, which is also ours. Names and values are preceded by their length, so that no byte
 * can move between them under the same hash.
 */
#include "config.h"

#include "tec/model/content.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"

static int by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* json-c keeps members in the order of the text, so the names are sorted first. */
bool model_content_sha256(struct json_object *o, char hex[SHA256_HEX_LEN + 1])
{
	struct json_object *data = json_get_obj(o, "data");
	size_t n = json_len(data), i = 0;
	const char *names[MODEL_CONTENT_MEMBERS_MAX];
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	hex[0] = '\0';
	if (n == 0 || n > MODEL_CONTENT_MEMBERS_MAX)
		return false;
	json_object_object_foreach (data, name, value) {
		if (!json_object_is_type(value, json_type_string))
			return false;
		names[i++] = name;
	}
	qsort(names, n, sizeof(*names), by_name);
	for (i = 0; i < n; i++) {
		struct json_object *v = json_object_object_get(data, names[i]);

		bytes_sha256_add_framed(&run, names[i], strlen(names[i]));
		bytes_sha256_add_framed(
			&run, json_object_get_string(v), (size_t)json_object_get_string_len(v));
	}
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
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
