/* SPDX-License-Identifier: MIT */
/*
 * Private to tests/fake/transport.c: RFC 7386 merge patch and a small server-side apply over
 * json-c. Both change `o` in place; callers pass a copy.
 */
#ifndef TEC_TESTS_FAKE_MERGE_H
#define TEC_TESTS_FAKE_MERGE_H

#include <json-c/json.h>

#include "tec/base/json.h"

static void merge_patch(struct json_object *o, struct json_object *patch)
{
	json_object_object_foreach (patch, name, value) {
		struct json_object *have = NULL;

		if (!value) {
			json_object_object_del(o, name);
			continue;
		}
		if (!json_object_is_type(value, json_type_object)) {
			json_object_object_add(o, name, json_copy(value));
			continue;
		}
		if (!json_object_object_get_ex(o, name, &have) ||
			!json_object_is_type(have, json_type_object))
			json_object_object_add(o, name, have = json_object_new_object());
		merge_patch(have, value);
	}
}

/* The key of a list of objects as the schemas of the kinds in use declare it; NULL: the list is
 * atomic. */
static const char *merge_list_key(const char *member)
{
	static const char *const keys[][2] = {{"containers", "name"}, {"initContainers", "name"},
		{"env", "name"}, {"volumes", "name"}, {"volumeMounts", "mountPath"},
		{"ports", "port"}, {"conditions", "type"}, {"ownerReferences", "uid"},
		{"imagePullSecrets", "name"}};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(member, keys[i][0]))
			return keys[i][1];
	return NULL;
}

static struct json_object *merge_key_value(struct json_object *e, const char *key)
{
	struct json_object *v = json_get(e, key);

	return v || !str_eq(key, "port") ? v : json_get(e, "containerPort");
}

/* Index of the element with e's key (or, for a set of scalars, with e's value); -1: none. */
static int merge_find(struct json_object *list, struct json_object *e, const char *key)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *h = json_object_array_get_idx(list, i);

		if (key ? json_object_equal(merge_key_value(h, key), merge_key_value(e, key)) &&
					str_eq(json_get_str(h, "protocol"),
						json_get_str(e, "protocol"))
			: json_object_equal(h, e))
			return (int)i;
	}
	return -1;
}

static bool merge_is_list(const char *member, struct json_object *a)
{
	return json_object_is_type(a, json_type_array) &&
	       (merge_list_key(member) || str_eq(member, "finalizers"));
}

static void merge_apply(struct json_object *o, struct json_object *conf, struct json_object *last);

/* Takes away what was applied last and is not applied any more. */
static void merge_forget(struct json_object *o, const char *member, struct json_object *conf,
	struct json_object *last)
{
	struct json_object *have = NULL; /* not json_get(): annotation names hold '/' */
	const char *key = merge_list_key(member);

	if (!json_object_object_get_ex(o, member, &have))
		return;
	if (!merge_is_list(member, last)) {
		if (!json_object_is_type(last, json_type_object) ||
			!json_object_is_type(have, json_type_object)) {
			json_object_object_del(o, member);
			return;
		}
		merge_apply(have, NULL, last);
		if (json_object_object_length(have) == 0)
			json_object_object_del(o, member);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(last); i++) {
		struct json_object *e = json_object_array_get_idx(last, i);
		int at = merge_find(have, e, key);

		if (at >= 0 && (!conf || merge_find(conf, e, key) < 0))
			json_object_array_del_idx(have, (size_t)at, 1);
	}
}

static void merge_apply_list(struct json_object *have, const char *member, struct json_object *conf,
	struct json_object *last)
{
	const char *key = merge_list_key(member);

	for (size_t i = 0; i < json_object_array_length(conf); i++) {
		struct json_object *e = json_object_array_get_idx(conf, i);
		int at = merge_find(have, e, key);
		int was = last ? merge_find(last, e, key) : -1;

		if (at < 0)
			json_object_array_add(have, json_copy(e));
		else if (key)
			merge_apply(json_object_array_get_idx(have, (size_t)at), e,
				was < 0 ? NULL : json_object_array_get_idx(last, (size_t)was));
	}
}

/* conf NULL: only forget. last: what the same manager applied before, or NULL. */
static void merge_apply(struct json_object *o, struct json_object *conf, struct json_object *last)
{
	if (last) {
		json_object_object_foreach (last, gone, was) {
			struct json_object *now = NULL;

			if (conf)
				json_object_object_get_ex(conf, gone, &now);
			if (!now || merge_is_list(gone, was))
				merge_forget(o, gone, now, was);
		}
	}
	if (!conf)
		return;
	json_object_object_foreach (conf, name, value) {
		struct json_object *have = NULL, *was = NULL;

		json_object_object_get_ex(o, name, &have);
		if (last)
			json_object_object_get_ex(last, name, &was);
		if (have && json_object_is_type(value, json_type_object) &&
			json_object_is_type(have, json_type_object))
			merge_apply(have, value, was);
		else if (have && merge_is_list(name, value) &&
			 json_object_is_type(have, json_type_array))
			merge_apply_list(have, name, value, was);
		else
			json_object_object_add(o, name, json_copy(value));
	}
}

#endif
