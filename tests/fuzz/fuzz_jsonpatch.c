/* SPDX-License-Identifier: MIT */
/*
 * The first line is a document, the rest a patch. The patch is never changed, a result is no deeper
 * than a body may be, and a patch that ends with a test of the whole result passes.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/patch.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = {1u << 16, 128, 4000, true};
static const struct json_limits deep = {16u << 20, 128, 1u << 22, true};

static void check_again(struct json_object *result)
{
	cleanup_json struct json_object *patch = json_arr();
	struct json_object *op = json_obj(), *o = json_copy(result);
	struct err err = ERR_INIT;

	json_add_str(json_add_str(op, "op", "test"), "path", "");
	json_push(patch, json_add(op, "value", json_copy(result)));
	if (apireq_patch_check(patch, &err) < 0 || apireq_patch_json(&o, patch, &err) < 0)
		DIE("a result is not itself: %s", err.text);
	json_object_put(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
	cleanup_json struct json_object *patch = NULL, *before = NULL, *o = NULL;
	struct err err = ERR_INIT;
	struct json_object *doc;
	char *out;

	if (!end)
		return 0;
	o = json_parse(text, (size_t)(end - text), &limits, &err);
	err_clear(&err);
	patch = json_parse(end + 1, size - 1 - (size_t)(end - text), &limits, &err);
	err_clear(&err);
	if (!o || !patch || apireq_patch_check(patch, &err) < 0)
		return 0;
	before = json_copy(patch);
	doc = json_object_get(o);
	if (apireq_patch_json(&doc, patch, &err) == 0) {
		cleanup_json struct json_object *read = NULL;

		check_again(doc);
		out = json_text(doc);
		read = json_parse(out, strlen(out), &deep, &err);
		if (doc && !read)
			DIE("a result that cannot be read: %s", err.text);
		free(out);
	}
	if (!json_object_equal(patch, before))
		DIE("a patch was changed");
	json_object_put(doc);
	return 0;
}
