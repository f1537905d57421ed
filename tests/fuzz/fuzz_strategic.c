/* SPDX-License-Identifier: MIT */
/*
 * The first line is a ServiceAccount, the rest a strategic merge patch of it. The patch is never changed, a
 * result can be read, and the same patch once more ends where it was.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/patch.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct json_limits limits = {1u << 16, 64, 2000, true};
static const struct json_limits larger = {16u << 20, 64, 1u << 22, true};

/* What the patch makes of o; NULL: it is refused. */
static struct json_object *patched(
	const struct apireq_place *p, struct json_object *o, struct json_object *patch)
{
	struct json_object *copy = json_copy(o);
	struct err err = ERR_INIT;

	if (apireq_patch_strategic(p, copy, patch, &err) == 0) {
		if (err_is_set(&err) || !json_object_is_type(copy, json_type_object))
			DIE("a result that is no object");
		return copy;
	}
	json_object_put(copy);
	if (err.kind != ERR_INVALID || !err.http)
		DIE("a refusal without a status");
	return NULL;
}

static void check_readable(struct json_object *o)
{
	cleanup_free char *text = json_text(o);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *read = json_parse(text, strlen(text), &larger, &err);

	if (!json_object_equal(read, o))
		DIE("a result that cannot be read: %s: %s", err.text, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = size ? memchr(text, '\n', size) : NULL;
	const struct store_kind kind = {.schema = schema_builtin_kind("", "v1", "ServiceAccount")};
	const struct apireq_place p = apireq_place_object(&kind, NULL);
	cleanup_json struct json_object *o = NULL, *patch = NULL, *before = NULL, *once = NULL,
					*twice = NULL, *thrice = NULL;
	struct err err = ERR_INIT;

	if (!end)
		return 0;
	o = json_parse(text, (size_t)(end - text), &limits, &err);
	err_clear(&err);
	patch = json_parse(end + 1, size - 1 - (size_t)(end - text), &limits, &err);
	if (!json_object_is_type(o, json_type_object) ||
		!json_object_is_type(patch, json_type_object))
		return 0;
	before = json_copy(patch);
	once = patched(&p, o, patch);
	if (once)
		check_readable(once);
	/* A list that is not there yet is taken as it is; what is in it twice is merged then. */
	twice = once ? patched(&p, once, patch) : NULL;
	thrice = twice ? patched(&p, twice, patch) : NULL;
	if (twice && !json_object_equal(twice, thrice))
		DIE("%s and then %s", json_object_to_json_string(twice),
			json_object_to_json_string(thrice));
	if (!json_object_equal(patch, before))
		DIE("a patch was changed");
	return 0;
}
