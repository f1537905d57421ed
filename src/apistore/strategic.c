/* SPDX-License-Identifier: MIT */
/*
 * Maps are merged member by member. A list with a key is merged and then ordered: elements named by
 * the patch in the order it gives, the others where the server had them. Elements are found through
 * a JSON object that maps each key to an index. "$patch" in maps, "$retainKeys" and other
 * directives are refused: no kind served here needs them, and client-side apply does not send them.
 */
#include "config.h"

#include "tec/apistore/strategic.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define PATCH  "$patch"
#define ORDER  "$setElementOrder/"
#define DELETE "$deleteFromPrimitiveList/"

static bool is_map(struct json_object *v)
{
	return json_object_is_type(v, json_type_object);
}

static bool is_list(struct json_object *v)
{
	return json_object_is_type(v, json_type_array);
}

/* Is this an element with "$patch: delete"? */
static bool says_delete(struct json_object *element)
{
	return is_map(element) && str_eq(json_get_str(element, PATCH), "delete");
}

/* Remove nulls and directives from a value of the patch that is added as a whole. Returns its
 * argument. */
static struct json_object *clean(struct json_object *take)
{
	if (is_map(take)) {
		json_each (take, name, v)
			if (!v || name[0] == '$')
				json_drop(take, name);
			else
				(void)clean(v);
	} else if (is_list(take)) {
		for (size_t i = json_len(take); i-- > 0;)
			if (says_delete(json_at(take, i)))
				json_cut(take, i, 1);
			else
				(void)clean(json_at(take, i));
	}
	return take;
}

/* ---- elements by key */

/* Return the key of an element as text: its merge key member, or the element itself (member "").
 * NULL: it has none. The caller frees it. */
static char *key_of(struct json_object *e, const char *member)
{
	struct json_object *v = e;
	struct strbuf out = STRBUF_INIT;

	if (*member && (!is_map(e) || !json_object_object_get_ex(e, member, &v)))
		return NULL;
	json_canonical(&out, v);
	return strbuf_steal(&out);
}

/* Map each key to the index of its first element. */
static void add_places(struct json_object *places, struct json_object *list, const char *member)
{
	for (size_t i = 0; i < json_len(list); i++) {
		cleanup_free char *key = key_of(json_at(list, i), member);

		if (key && !json_object_object_get_ex(places, key, NULL))
			json_add_int(places, key, (int64_t)i);
	}
}

/* Find the index of an element by its key; -1: not found. */
static ssize_t find(struct json_object *places, struct json_object *e, const char *member)
{
	cleanup_free char *key = key_of(e, member);
	struct json_object *i = NULL;

	return key && json_object_object_get_ex(places, key, &i) ? (ssize_t)json_object_get_int64(i)
								 : -1;
}

/* ---- lists */

/* The server's list while it is being merged. */
struct merged {
	const char *key;            /* the merge key, "": elements are scalars */
	struct json_object *all;    /* the server's elements that stay, then the new ones */
	struct json_object *places; /* their indices by key */
	size_t had;                 /* how many elements are the server's */
};

/* Order the merged list: named elements in the given order, and each of the others before the first
 * element that followed it on the server. The caller puts the result. */
static struct json_object *in_order(const struct merged *m, struct json_object *order)
{
	size_t n = json_len(m->all), next = 0;
	cleanup_free bool *named = xcalloc(n + 1, sizeof(*named)),
			  *done = xcalloc(n + 1, sizeof(*done));
	struct json_object *out = json_arr();

	for (size_t k = 0; k < json_len(order); k++) {
		ssize_t i = find(m->places, json_at(order, k), m->key);

		if (i >= 0)
			named[i] = true;
	}
	for (size_t k = 0; k < json_len(order); k++) {
		ssize_t i = find(m->places, json_at(order, k), m->key);

		if (i < 0 || done[i])
			continue;
		done[i] = true;
		for (; (size_t)i < m->had && next < (size_t)i; next++)
			if (!named[next])
				json_push(out, json_object_get(json_at(m->all, next)));
		json_push(out, json_object_get(json_at(m->all, (size_t)i)));
	}
	for (; next < n; next++)
		if (!named[next])
			json_push(out, json_object_get(json_at(m->all, next)));
	return out;
}

static int merge_map(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err);

/* Merge each element of the patch into the element with its key, or append it. */
static int merge_elements(const struct apistore_place *p, struct merged *m,
	struct json_object *patch, struct err *err)
{
	const struct apistore_place below = apistore_place_element(p);

	for (size_t k = 0; k < json_len(patch); k++) {
		struct json_object *e = json_at(patch, k);
		cleanup_free char *key = key_of(e, m->key);
		ssize_t i = find(m->places, e, m->key);

		if (!key)
			return err_set_http(err, ERR_INVALID, 400,
				"a list element lacks the merge key %s", m->key);
		if (says_delete(e))
			continue;
		if (i >= 0 && is_map(e)) {
			if (merge_map(&below, json_at(m->all, (size_t)i), e, err) < 0)
				return -1;
		} else if (i < 0) {
			json_add_int(m->places, key, (int64_t)json_len(m->all));
			json_push(m->all, clean(json_copy(e)));
		}
	}
	return 0;
}

/* What a patch contains for one list: its elements, $setElementOrder and $deleteFromPrimitiveList.
 * NULL: nothing. Borrowed from the patch. */
struct change {
	struct json_object *list, *order, *gone;
};

/* Merge one list of o: delete elements, merge and append others, then order them. */
static int merge_list(const struct apistore_place *p, struct json_object *o, const char *name,
	const struct change *c, struct err *err)
{
	cleanup_json struct json_object *gone = json_obj(), *all = json_arr(), *places = json_obj();
	struct json_object *have = json_object_object_get(o, name);
	const char *key = p->merge.type == SCHEMA_MERGE_SET ? "" : p->merge.keys[0];
	struct merged m = {key, all, places, 0};

	add_places(gone, c->gone, key);
	for (size_t i = 0; i < json_len(c->list); i++) {
		cleanup_free char *deleted =
			says_delete(json_at(c->list, i)) ? key_of(json_at(c->list, i), key) : NULL;

		if (deleted)
			json_add_int(gone, deleted, 0);
	}
	for (size_t i = 0; i < json_len(have); i++)
		if (find(gone, json_at(have, i), key) < 0)
			json_push(all, json_object_get(json_at(have, i)));
	m.had = json_len(all);
	add_places(places, all, key);
	if (merge_elements(p, &m, c->list, err) < 0)
		return -1;
	json_add(o, name, in_order(&m, c->order ? c->order : c->list));
	return 0;
}

/* ---- maps */

/* Apply all that the patch contains for one member: its value and its directives. */
static int merge_member(const struct apistore_place *p, struct json_object *o, const char *name,
	struct json_object *patch, struct err *err)
{
	const struct apistore_place below = apistore_place_member(p, name);
	cleanup_free char *order = xasprintf(ORDER "%s", name),
			  *gone = xasprintf(DELETE "%s", name);
	struct json_object *have = json_object_object_get(o, name);
	struct change c = {NULL, NULL, NULL};
	bool given = json_object_object_get_ex(patch, name, &c.list),
	     keyed = below.merge.type == SCHEMA_MERGE_SET || below.merge.type == SCHEMA_MERGE_MAP;

	(void)json_object_object_get_ex(patch, order, &c.order);
	(void)json_object_object_get_ex(patch, gone, &c.gone);
	if ((c.order && !is_list(c.order)) || (c.gone && !is_list(c.gone)))
		return err_set_http(err, ERR_INVALID, 400, "the directives for %.60s must be lists",
			log_esc(name));
	if (given && !c.list) {
		json_drop(o, name);
		return 0;
	}
	if (is_map(have) && is_map(c.list))
		return merge_map(&below, have, c.list, err);
	if (keyed && is_list(have) && (!given || is_list(c.list)))
		return merge_list(&below, o, name, &c, err);
	if (given)
		json_add(o, name, clean(json_copy(c.list)));
	return 0;
}

/* Return the member that a name in the patch refers to; NULL: an unknown directive. */
static const char *about(const char *name)
{
	static const char *const directives[] = {ORDER, DELETE};

	for (size_t i = 0; i < ARRAY_LEN(directives); i++)
		if (str_starts(name, directives[i]) && name[strlen(directives[i])])
			return name + strlen(directives[i]);
	return name[0] == '$' ? NULL : name;
}

/* Merge each member of the patch. Directives refer to a member by the name after the slash. */
static int merge_map(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err)
{
	json_each (patch, name, v) {
		const char *member = about(name);
		cleanup_free char *order = member ? xasprintf(ORDER "%s", member) : NULL;

		(void)v;
		if (!member)
			return err_set_http(err, ERR_INVALID, 400,
				"the directive %.60s is not supported by tec-operator --standalone",
				log_esc(name));
		/* Handle a member once: under its own name, or else under $setElementOrder. */
		if (member != name && (json_object_object_get_ex(patch, member, NULL) ||
					      (json_object_object_get_ex(patch, order, NULL) &&
						      !str_eq(name, order))))
			continue;
		if (merge_member(p, o, member, patch, err) < 0)
			return -1;
	}
	return 0;
}

int apistore_strategic_merge(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err)
{
	return merge_map(p, o, patch, err);
}
