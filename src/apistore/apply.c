/* SPDX-License-Identifier: MIT */
/*
 * First what was applied last and is missing now goes, then what is applied is merged in. Objects
 * that came another way may hold anything, so an element without its keys never matches.
 */
#include "config.h"

#include "tec/apistore/apply.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

static const struct apistore_list set = {.member = "finalizers"};
static const struct apistore_list owners = {.member = "ownerReferences", .keys = {"uid"}};

const struct apistore_list apistore_lists_builtin[APISTORE_LISTS_BUILTIN] = {
	{"conditions", {"type"}},
	{"containers", {"name"}},
	{"env", {"name"}},
	{"imagePullSecrets", {"name"}},
	{"initContainers", {"name"}},
	{"ports", {"port", "containerPort", "protocol"}},
	{"volumeMounts", {"mountPath"}},
	{"volumes", {"name"}},
};

/* How the elements of a list are told apart; NULL: the list is replaced as a whole. */
static const struct apistore_list *list_of(
	const struct apistore_lists *lists, const char *member, struct json_object *value)
{
	if (!json_object_is_type(value, json_type_array))
		return NULL;
	if (str_eq(member, set.member))
		return &set;
	if (str_eq(member, owners.member))
		return &owners;
	for (size_t i = 0; i < lists->n; i++)
		if (str_eq(member, lists->list[i].member))
			return &lists->list[i];
	return NULL;
}

static bool has_key(const struct apistore_list *l, struct json_object *e)
{
	for (size_t i = 0; i < ARRAY_LEN(l->keys) && l->keys[i]; i++)
		if (json_get(e, l->keys[i]))
			return true;
	return false;
}

static bool same_element(
	const struct apistore_list *l, struct json_object *a, struct json_object *b)
{
	if (!l->keys[0])
		return json_object_equal(a, b);
	for (size_t i = 0; i < ARRAY_LEN(l->keys) && l->keys[i]; i++)
		if (!json_object_equal(json_get(a, l->keys[i]), json_get(b, l->keys[i])))
			return false;
	return has_key(l, a);
}

static struct json_object *find(
	const struct apistore_list *l, struct json_object *list, struct json_object *e, size_t *at)
{
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *h = json_object_array_get_idx(list, i);

		if (!same_element(l, h, e))
			continue;
		if (at)
			*at = i;
		return h;
	}
	return NULL;
}

static void forget(struct json_object *o, struct json_object *conf, struct json_object *last,
	const struct apistore_lists *lists);

/* Removes of o's member what last has and conf (NULL: it is not applied at all) has not. */
static void forget_member(struct json_object *o, const char *member, struct json_object *conf,
	struct json_object *last, const struct apistore_lists *lists)
{
	const struct apistore_list *l = list_of(lists, member, last);
	struct json_object *have = NULL; /* not json_get(): names of annotations hold '/' */
	size_t at;

	if (!json_object_object_get_ex(o, member, &have))
		return;
	if (l && json_object_is_type(have, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(last); i++) {
			struct json_object *e = json_object_array_get_idx(last, i);
			struct json_object *now = find(l, conf, e, NULL);
			struct json_object *there = find(l, have, e, &at);

			if (there && !now)
				json_object_array_del_idx(have, at, 1);
			else if (there && l->keys[0])
				forget(there, now, e, lists);
		}
	} else if (json_object_is_type(last, json_type_object) &&
		   json_object_is_type(have, json_type_object)) {
		forget(have, json_object_is_type(conf, json_type_object) ? conf : NULL, last,
			lists);
		if (!conf && json_object_object_length(have) == 0)
			json_object_object_del(o, member);
	} else if (!conf) {
		json_object_object_del(o, member);
	}
}

static void forget(struct json_object *o, struct json_object *conf, struct json_object *last,
	const struct apistore_lists *lists)
{
	json_object_object_foreach (last, name, was) {
		struct json_object *now = NULL;

		if (conf)
			json_object_object_get_ex(conf, name, &now);
		forget_member(o, name, now, was, lists);
	}
}

static int merge(struct json_object *o, struct json_object *conf,
	const struct apistore_lists *lists, struct err *err);

static int merge_list(struct json_object *have, const struct apistore_list *l,
	struct json_object *conf, const struct apistore_lists *lists, struct err *err)
{
	for (size_t i = 0; i < json_object_array_length(conf); i++) {
		struct json_object *e = json_object_array_get_idx(conf, i), *there;

		if (l->keys[0] && !has_key(l, e))
			return err_set(err, ERR_INVALID,
				"failed to create typed patch object: .%s: element %zu: associative list with keys has an element that omits key field \"%s\"",
				l->member, i, l->keys[0]);
		there = find(l, have, e, NULL);
		if (!there)
			json_push(have, json_copy(e));
		else if (l->keys[0] && merge(there, e, lists, err) < 0)
			return -1;
	}
	return 0;
}

static int merge(struct json_object *o, struct json_object *conf,
	const struct apistore_lists *lists, struct err *err)
{
	json_object_object_foreach (conf, name, value) {
		const struct apistore_list *l = list_of(lists, name, value);
		struct json_object *have = NULL;

		json_object_object_get_ex(o, name, &have);
		if (l) {
			if (!json_object_is_type(have, json_type_array))
				json_add(o, name, have = json_arr());
			if (merge_list(have, l, value, lists, err) < 0)
				return -1;
		} else if (json_object_is_type(value, json_type_object)) {
			if (!json_object_is_type(have, json_type_object))
				json_add(o, name, have = json_obj());
			if (merge(have, value, lists, err) < 0)
				return -1;
		} else {
			json_add(o, name, json_copy(value));
		}
	}
	return 0;
}

int apistore_apply(struct json_object *o, struct json_object *conf, struct json_object *last,
	const struct apistore_lists *lists, struct err *err)
{
	if (last)
		forget(o, conf, last, lists);
	return merge(o, conf, lists, err);
}
