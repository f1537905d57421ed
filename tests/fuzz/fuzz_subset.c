/* SPDX-License-Identifier: MIT */
/*
 * A JSON array of what we want and what the server has. Every object is a subset of itself, and of
 * itself with a member more; removing a member that counts is a difference; the render hash does
 * not depend on the hash that stands there.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/kobj/meta.h"
#include "tec/kobj/subset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_pair(struct json_object *want, struct json_object *have)
{
	(void)kobj_subset(want, have);
	(void)kobj_subset(have, want);
	assert(kobj_subset(want, want) && kobj_subset(have, have));
	if (!json_object_is_type(want, json_type_object) ||
		json_get(want, "fuzz") != NULL) /* a name of its own */
		return;
	cleanup_json struct json_object *more = json_copy(want);

	json_object_object_del(more, "fuzz");
	json_add_str(more, "fuzz", "x");
	if (!json_object_object_get_ex(want, "fuzz", NULL))
		assert(kobj_subset(want, more));
	assert(!kobj_subset(more, want));
}

static char *hashed(struct json_object *o)
{
	kobj_render_hash_set(o);
	return json_text(o);
}

static void try_hash(struct json_object *o)
{
	/* The first may put an object where metadata or annotations was something else. */
	cleanup_free char *first = hashed(o), *second = hashed(o), *third = hashed(o);
	const char *hash;

	assert(first && str_eq(second, third));
	hash = kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION);
	assert(hash && strlen(hash) == 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *pair =
		json_parse((const char *)data, size, &json_limits_object, &err);
	struct json_object *want, *have;

	if (!pair || !json_object_is_type(pair, json_type_array) ||
		json_object_array_length(pair) != 2)
		return 0;
	want = json_object_array_get_idx(pair, 0);
	have = json_object_array_get_idx(pair, 1);
	try_pair(want, have);
	if (json_object_is_type(want, json_type_object))
		try_hash(want);
	return 0;
}
