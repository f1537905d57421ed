/* SPDX-License-Identifier: MIT */
/*
 * Lists that are sets or maps have no element twice, and embedded objects say what they are. Of a
 * value that is there several times only the second one is told, as kube-apiserver does.
 */
#include "config.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

struct element {
	char *text; /* owned: what must be unique */
	size_t index;
};

static int by_text(const void *a, const void *b)
{
	const struct element *x = a, *y = b;
	int c = strcmp(x->text, y->text);

	return c ? c : x->index < y->index ? -1 : x->index > y->index;
}

/* What tells an element of a map apart: an object with its keys. */
static struct json_object *keys_of(const struct schema_node *s, struct json_object *v)
{
	struct json_object *keys = json_obj(), *k = NULL;

	for (size_t i = 0; i < s->n_keys; i++)
		if (json_object_is_type(v, json_type_object) &&
			json_object_object_get_ex(v, s->keys[i], &k))
			json_object_object_add(keys, s->keys[i], json_object_get(k));
	return keys;
}

static struct json_object *identity(const struct schema_node *s, struct json_object *v)
{
	return s->map ? keys_of(s, v) : json_object_get(v);
}

static char *identity_text(const struct schema_node *s, struct json_object *v)
{
	cleanup_json struct json_object *id = identity(s, v);
	struct strbuf b = STRBUF_INIT;

	strbuf_addf(&b, "%d", (int)json_object_get_type(id));
	schema_json_go(&b, id);
	return strbuf_steal(&b);
}

static bool all_objects(struct json_object *list, struct strbuf *path, struct schema_causes *causes)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);
		size_t before;

		if (!v || json_object_is_type(v, json_type_object))
			continue;
		before = schema_path_index(path, i);
		schema_cause_add(causes, SCHEMA_INVALID, strbuf_str(path), v,
			"must be an object for an array of list-type map");
		schema_path_cut(path, before);
		return false;
	}
	return true;
}

static void check_unique(const struct schema_node *s, struct json_object *list, struct strbuf *path,
	struct schema_causes *causes)
{
	size_t n = json_object_array_length(list);
	struct element *e;
	cleanup_free bool *twice = NULL;

	if ((s->map && !all_objects(list, path, causes)) || n < 2)
		return;
	e = xcalloc(n, sizeof(*e));
	twice = xcalloc(n, sizeof(*twice));
	for (size_t i = 0; i < n; i++)
		e[i] = (struct element){identity_text(s, json_object_array_get_idx(list, i)), i};
	qsort(e, n, sizeof(*e), by_text);
	for (size_t i = 1; i < n; i++)
		if (str_eq(e[i].text, e[i - 1].text) &&
			(i < 2 || !str_eq(e[i].text, e[i - 2].text)))
			twice[e[i].index] = true;
	for (size_t i = 0; i < n; i++) {
		cleanup_json struct json_object *id = NULL;
		size_t before;

		free(e[i].text);
		if (!twice[i])
			continue;
		id = identity(s, json_object_array_get_idx(list, i));
		before = schema_path_index(path, i);
		schema_cause_add(causes, SCHEMA_DUPLICATE, strbuf_str(path), id, "%s", "");
		schema_path_cut(path, before);
	}
	free(e);
}

static void look_at_list(const struct schema_node *s, struct json_object *v, struct strbuf *path,
	struct schema_causes *causes)
{
	if (json_object_is_type(v, json_type_array) && (s->set || s->map))
		check_unique(s, v, path, causes);
}

/* ---- embedded objects */

static void check_type_text(
	struct json_object *o, const char *name, struct strbuf *path, struct schema_causes *causes)
{
	struct json_object *v = NULL;
	size_t before = schema_path_add(path, name);

	if (!json_object_object_get_ex(o, name, &v))
		schema_cause_add(causes, SCHEMA_REQUIRED, strbuf_str(path), NULL, "%s", "");
	else if (!json_object_is_type(v, json_type_string))
		schema_cause_add(causes, SCHEMA_INVALID, strbuf_str(path), v, "must be a string");
	else if (json_object_get_string_len(v) == 0)
		schema_cause_add(causes, SCHEMA_INVALID, strbuf_str(path), v, "must not be empty");
	schema_path_cut(path, before);
}

static void look_at_embedded(const struct schema_node *s, struct json_object *v,
	struct strbuf *path, struct schema_causes *causes)
{
	if (!s->embedded || !json_object_is_type(v, json_type_object))
		return;
	check_type_text(v, "apiVersion", path, causes);
	check_type_text(v, "kind", path, causes);
}

/* ---- every value */

/* What to look at of one value; those inside of it come by themselves. */
typedef void (*look_fn)(const struct schema_node *s, struct json_object *v, struct strbuf *path,
	struct schema_causes *causes);

static void walk(const struct schema_node *s, struct json_object *v, struct strbuf *path,
	struct schema_causes *causes, look_fn look)
{
	size_t before;

	look(s, v, path, causes);
	if (json_object_is_type(v, json_type_object)) {
		json_object_object_foreach (v, name, child) {
			const struct schema_node *p = schema_node_prop(s, name);

			if (!p && !s->additional)
				continue;
			before = p ? schema_path_add(path, name) : schema_path_key(path, name);
			walk(p ? p : s->additional, child, path, causes, look);
			schema_path_cut(path, before);
		}
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; s->items && i < json_object_array_length(v); i++) {
			before = schema_path_index(path, i);
			walk(s->items, json_object_array_get_idx(v, i), path, causes, look);
			schema_path_cut(path, before);
		}
	}
}

static void walk_all(const struct schema_node *s, struct json_object *o,
	struct schema_causes *causes, look_fn look)
{
	struct strbuf path = STRBUF_INIT;

	walk(s, o, &path, causes, look);
	strbuf_fini(&path);
}

void schema_check_lists(
	const struct schema_node *s, struct json_object *o, struct schema_causes *causes)
{
	walk_all(s, o, causes, look_at_list);
}

void schema_check_embedded(
	const struct schema_node *s, struct json_object *o, struct schema_causes *causes)
{
	walk_all(s, o, causes, look_at_embedded);
}
