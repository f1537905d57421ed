/* SPDX-License-Identifier: MIT */
/*
 * Maps are merged member by member; a list with a patch key is merged, then ordered: what the patch
 * names in its order, the rest where the server had it. Elements are looked up in sorted tables.
 */
#include "config.h"

#include "tec/apistore/strategic.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define PATCH  "$patch"
#define RETAIN "$retainKeys"
#define ORDER  "$setElementOrder"
#define DELETE "$deleteFromPrimitiveList"

static bool is_map(struct json_object *v)
{
	return json_object_is_type(v, json_type_object);
}

static bool is_list(struct json_object *v)
{
	return json_object_is_type(v, json_type_array);
}

static size_t length(struct json_object *list)
{
	return is_list(list) ? json_object_array_length(list) : 0;
}

static struct json_object *at(struct json_object *list, size_t i)
{
	return json_object_array_get_idx(list, i);
}

static bool is_directive(const char *name)
{
	return str_eq(name, PATCH) || str_eq(name, RETAIN) || str_starts(name, ORDER) ||
	       str_starts(name, DELETE);
}

/* A value of the patch that is taken as it is: without nulls and directives. False: it is itself one
 * that says it should go. */
static bool clean(struct json_object *v)
{
	if (is_map(v)) {
		if (json_object_object_get_ex(v, PATCH, NULL))
			return false;
		json_object_object_foreach (v, name, child)
			if (!child || is_directive(name) || !clean(child))
				json_object_object_del(v, name);
	} else if (is_list(v)) {
		for (size_t i = length(v); i-- > 0;)
			if (!clean(at(v, i)))
				json_object_array_del_idx(v, i, 1);
	}
	return true;
}

/* ---- elements by key */

struct keyed {
	char *key; /* owned */
	size_t i;
};

struct keys {
	struct keyed *at; /* owned, sorted */
	size_t n;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* The text of what tells an element apart; NULL: nothing does. The caller frees. */
static char *key_of(struct json_object *e, const char *name)
{
	struct json_object *v = e;
	struct strbuf out = STRBUF_INIT;

	if (*name && (!is_map(e) || !json_object_object_get_ex(e, name, &v)))
		return NULL;
	json_canonical(&out, v);
	return strbuf_steal(&out);
}

static struct keys keys_of(struct json_object *list, const char *name)
{
	struct keys k = {xcalloc(length(list) + 1, sizeof(struct keyed)), 0};

	for (size_t i = 0; i < length(list); i++) {
		char *key = key_of(at(list, i), name);

		if (key)
			k.at[k.n++] = (struct keyed){key, i};
	}
	qsort(k.at, k.n, sizeof(*k.at), by_key);
	return k;
}

static void keys_fini(struct keys *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->at[i].key);
	free(k->at);
}
#define cleanup_keys __attribute__((cleanup(keys_fini)))

/* The first index of an element with the key of e; -1: none. */
static ssize_t find(const struct keys *k, struct json_object *e, const char *name)
{
	cleanup_free char *key = key_of(e, name);
	size_t lo = 0, hi = k->n;

	while (key && lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (strcmp(k->at[mid].key, key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return key && lo < k->n && str_eq(k->at[lo].key, key) ? (ssize_t)k->at[lo].i : -1;
}

/* ---- order */

struct placed {
	struct json_object *e;       /* owned */
	ssize_t in_patch, in_server; /* index, or -1 */
	size_t i;
};

static int by_patch(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->in_patch != y->in_patch ? (x->in_patch > y->in_patch ? 1 : -1)
					  : (x->i > y->i) - (x->i < y->i);
}

static int by_server(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->in_server != y->in_server ? (x->in_server > y->in_server ? 1 : -1)
					    : (x->i > y->i) - (x->i < y->i);
}

/* What the patch orders comes in that order; what only the server has goes before the first one that
 * the server had behind it. */
static struct json_object *in_order(struct json_object *take_merged, struct json_object *patch,
	struct json_object *server, const char *name)
{
	cleanup_keys struct keys order = keys_of(patch, name), had = keys_of(server, name);
	size_t n = length(take_merged), patched = 0, only = 0, i = 0, k = 0;
	cleanup_free struct placed *p = xcalloc(n + 1, sizeof(*p)), *s = xcalloc(n + 1, sizeof(*s));
	struct json_object *out = json_arr();

	for (size_t m = 0; m < n; m++) {
		struct json_object *e = json_object_get(at(take_merged, m));
		struct placed it = {e, find(&order, e, name), find(&had, e, name), m};

		if (it.in_patch >= 0)
			p[patched++] = it;
		else
			s[only++] = it;
	}
	qsort(p, patched, sizeof(*p), by_patch);
	qsort(s, only, sizeof(*s), by_server);
	while (i < only || k < patched) {
		bool server_first =
			k == patched || (i < only && s[i].in_server >= 0 && p[k].in_server >= 0 &&
						s[i].in_server < p[k].in_server);

		json_push(out, server_first ? s[i++].e : p[k++].e);
	}
	json_object_put(take_merged);
	return out;
}

/* ---- lists */

static int merge_map(const struct apistore_place *p, struct json_object **o,
	struct json_object *patch, struct err *err);

static int mixed(struct err *err)
{
	return err_set_http(err, ERR_INVALID, 500, "list element types are not identical");
}

/* All maps, or none and no lists. *maps: which. */
static int check_elements(struct json_object *a, struct json_object *b, bool *maps, struct err *err)
{
	size_t n = 0;

	for (size_t k = 0; k < 2; k++) {
		struct json_object *list = k ? b : a;

		for (size_t i = 0; i < length(list); i++, n++) {
			struct json_object *e = at(list, i);

			if (is_list(e))
				return err_set_http(
					err, ERR_INVALID, 422, "lists of lists are not supported");
			if (n > 0 && is_map(e) != *maps)
				return mixed(err);
			*maps = is_map(e);
		}
	}
	return 0;
}

static struct json_object *without(struct json_object *list, struct json_object *gone)
{
	cleanup_keys struct keys k = keys_of(gone, "");
	struct json_object *out = json_arr();

	for (size_t i = 0; i < length(list); i++)
		if (find(&k, at(list, i), "") < 0)
			json_push(out, json_object_get(at(list, i)));
	return out;
}

static struct json_object *merge_scalars(struct json_object *list, struct json_object *patch)
{
	cleanup_keys struct keys have = keys_of(list, ""), more = keys_of(patch, "");
	struct json_object *both = json_arr();

	for (size_t i = 0; i < length(list); i++)
		if (find(&have, at(list, i), "") == (ssize_t)i)
			json_push(both, json_object_get(at(list, i)));
	for (size_t i = 0; i < length(patch); i++)
		if (find(&have, at(patch, i), "") < 0 &&
			find(&more, at(patch, i), "") == (ssize_t)i)
			json_push(both, json_object_get(at(patch, i)));
	return in_order(both, patch, list, "");
}

/* What the directives of a list's elements leave: of the server's elements in *list, of the patch's in
 * *patch. Both are new. */
static int special_elements(
	const char *key, struct json_object **list, struct json_object **patch, struct err *err)
{
	struct json_object *gone = json_arr(), *rest = json_arr(), *kept = json_arr();
	bool replace = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < length(*patch); i++) {
		struct json_object *e = at(*patch, i), *d = NULL;
		const char *name;

		if (!json_object_object_get_ex(e, PATCH, &d)) {
			json_push(rest, json_object_get(e));
			continue;
		}
		name = json_object_get_string(d);
		if (str_eq(name, "replace"))
			replace = true;
		else if (str_eq(name, "merge"))
			rc = err_set_http(err, ERR_INVALID, 500,
				"merging lists cannot yet be specified in the patch");
		else if (!str_eq(name, "delete"))
			rc = err_set_http(err, ERR_INVALID, 500, "unknown patch type: %.40s",
				log_esc(name ? name : "null"));
		else if (!json_object_object_get_ex(e, key, NULL))
			rc = err_set_http(err, ERR_INVALID, 500,
				"a map does not contain declared merge key: %s", key);
		else
			json_push(gone, json_object_get(e));
	}
	if (rc == 0 && !replace) {
		cleanup_keys struct keys k = keys_of(gone, key);

		for (size_t i = 0; i < length(*list); i++)
			if (find(&k, at(*list, i), key) < 0)
				json_push(kept, json_object_get(at(*list, i)));
	}
	json_object_put(gone);
	*list = replace ? rest : kept;
	*patch = replace ? kept : rest;
	return rc;
}

static int merge_elements(const struct apistore_place *p, const char *key, struct json_object *list,
	struct json_object *patch, struct json_object *merged, struct err *err)
{
	const struct apistore_place el = apistore_place_element(p);
	cleanup_keys struct keys had = keys_of(list, key), in = keys_of(patch, key);
	cleanup_free size_t *to = xcalloc(length(patch) + 1, sizeof(*to));

	for (size_t i = 0; i < length(list); i++)
		json_push(merged, json_object_get(at(list, i)));
	for (size_t i = 0; i < length(patch); i++) {
		struct json_object *e = at(patch, i), *o;
		ssize_t first = find(&in, e, key), there = find(&had, e, key);

		if (first < 0)
			return err_set_http(err, ERR_INVALID, 500,
				"a map does not contain declared merge key: %s", key);
		to[i] = first < (ssize_t)i ? to[first]
			: there >= 0       ? (size_t)there
					   : length(merged);
		if (to[i] == length(merged)) {
			o = json_copy(e);
			clean(o);
			json_push(merged, o);
			continue;
		}
		o = json_object_get(at(merged, to[i]));
		if (merge_map(&el, &o, e, err) < 0) {
			json_object_put(o);
			return -1;
		}
		json_object_array_put_idx(merged, to[i], o);
	}
	return 0;
}

/* p is the list's place, which has a patch key; *list becomes another one. */
static int merge_list(const struct apistore_place *p, struct json_object **list,
	struct json_object *patch, struct err *err)
{
	const char *key = p->merge.patch_key;
	struct json_object *server = *list, *rest = patch, *merged;
	bool maps = false;
	int rc;

	if (length(*list) == 0 && length(patch) == 0)
		return 0;
	if (check_elements(*list, patch, &maps, err) < 0)
		return -1;
	if (!maps) {
		merged = merge_scalars(*list, patch);
		json_object_put(*list);
		*list = merged;
		return 0;
	}
	if (!*key)
		return err_set_http(err, ERR_INVALID, 500, "cannot merge lists without merge key");
	merged = json_arr();
	rc = special_elements(key, &server, &rest, err);
	if (rc == 0)
		rc = merge_elements(p, key, server, rest, merged, err);
	if (rc == 0) {
		json_object_put(*list);
		*list = in_order(json_object_get(merged), rest, server, key);
	}
	json_object_put(server);
	json_object_put(rest);
	json_object_put(merged);
	return rc;
}

/* ---- directives of a map */

static int retain(struct json_object *o, struct json_object *patch, struct err *err)
{
	struct json_object *list = NULL;
	cleanup_json struct json_object *keep = json_obj();

	if (!json_object_object_get_ex(patch, RETAIN, &list))
		return 0;
	if (!is_list(list))
		return err_set_http(err, ERR_INVALID, 400, "invalid patch format of retainKeys");
	for (size_t i = 0; i < length(list); i++)
		if (json_object_is_type(at(list, i), json_type_string))
			json_add(keep, json_object_get_string(at(list, i)), NULL);
	json_object_object_foreach (patch, name, v)
		if (v && !is_directive(name) && !json_object_object_get_ex(keep, name, NULL))
			return err_set_http(
				err, ERR_INVALID, 400, "invalid patch format of retainKeys");
	json_object_object_foreach (o, have, was) {
		(void)was;
		if (!json_object_object_get_ex(keep, have, NULL))
			json_object_object_del(o, have);
	}
	return 0;
}

/* The patch's elements come in the order's order. */
static bool fits_order(struct json_object *patch, struct json_object *order, const char *key)
{
	size_t i = 0, k = 0;

	while (i < length(patch)) {
		cleanup_free char *a = key_of(at(patch, i), key), *b = NULL;

		if (is_map(at(patch, i)) && json_object_object_get_ex(at(patch, i), PATCH, NULL)) {
			i++;
			continue;
		}
		if (length(order) == 0)
			return true;
		if (k == length(order))
			return false;
		b = key_of(at(order, k++), key);
		if (a && b && str_eq(a, b))
			i++;
	}
	return true;
}

/* $setElementOrder/NAME beside the list NAME of both. */
static int set_order(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, const char *name, struct json_object *order, struct err *err)
{
	const struct apistore_place list_at = apistore_place_member(p, name);
	const char *key = list_at.merge.patch_key;
	struct json_object *have = NULL, *more = NULL, *list;
	cleanup_json struct json_object *server = NULL;
	bool was = json_object_object_get_ex(o, name, &have), maps = false;

	json_object_object_get_ex(patch, name, &more);
	if ((have && !is_list(have)) || (more && !is_list(more)) || !is_list(order) ||
		!fits_order(more, order, key ? key : ""))
		return err_set_http(err, ERR_INVALID, 500,
			"the order in the patch list %.60s does not match its $setElementOrder list",
			log_esc(name));
	if (!was && !more)
		return 0;
	server = have ? json_object_get(have) : json_arr();
	list = have ? json_object_get(have) : json_arr();
	if (more && have && key) {
		if (merge_list(&list_at, &list, more, err) < 0) {
			json_object_put(list);
			return -1;
		}
	} else if (more) {
		json_object_put(list);
		list = json_copy(more);
		clean(list);
	}
	if (check_elements(list, order, &maps, err) < 0) {
		json_object_put(list);
		return -1;
	}
	json_add(o, name, in_order(list, order, server, key ? key : ""));
	return 0;
}

/* directive starts with the prefix. NULL: it names nothing. */
static const char *name_below(const char *directive, const char *prefix)
{
	const char *slash = directive + strlen(prefix);

	return *slash == '/' && slash[1] ? slash + 1 : NULL;
}

static int set_orders(const struct apistore_place *p, struct json_object *o,
	struct json_object *patch, struct err *err)
{
	json_object_object_foreach (patch, name, v) {
		const char *list;

		if (!str_starts(name, ORDER))
			continue;
		list = name_below(name, ORDER);
		if (!list)
			return err_set_http(err, ERR_INVALID, 400,
				"invalid patch format of setElementOrder list");
		if (set_order(p, o, patch, list, v, err) < 0)
			return -1;
	}
	return 0;
}

static int delete_scalars(
	struct json_object *o, const char *directive, struct json_object *gone, struct err *err)
{
	const char *name = name_below(directive, DELETE);
	struct json_object *have = NULL;
	bool maps = false;

	if (!name || !is_list(gone))
		return err_set_http(
			err, ERR_INVALID, 400, "invalid patch format of primitive list");
	if (!json_object_object_get_ex(o, name, &have) || !is_list(have))
		return 0;
	if (check_elements(have, gone, &maps, err) < 0)
		return -1;
	if (maps)
		return mixed(err);
	json_add(o, name, without(have, gone));
	return 0;
}

/* ---- maps */

static int merge_member(const struct apistore_place *p, struct json_object *o, const char *name,
	struct json_object *v, struct err *err)
{
	const struct apistore_place below = apistore_place_member(p, name);
	struct json_object *have = NULL, *to;
	int rc;

	json_object_object_get_ex(o, name, &have);
	if (!v) {
		json_object_object_del(o, name);
		return 0;
	}
	if (!(is_map(v) && is_map(have)) &&
		!(is_list(v) && is_list(have) && below.merge.patch_key)) {
		to = json_copy(v);
		if (clean(to)) {
			json_add(o, name, to);
			return 0;
		}
		json_object_put(to);
		json_object_object_del(o, name);
		return 0;
	}
	to = json_object_get(have);
	rc = is_map(v) ? merge_map(&below, &to, v, err) : merge_list(&below, &to, v, err);
	if (rc < 0)
		json_object_put(to);
	else
		json_add(o, name, to);
	return rc;
}

/* $patch of a map: it becomes another one. */
static int replace_map(struct json_object **o, struct json_object *patch,
	struct json_object *directive, struct err *err)
{
	const char *name = json_object_get_string(directive);
	bool all = str_eq(name, "replace");

	if (!all && !str_eq(name, "delete"))
		return err_set_http(err, ERR_INVALID, 500, "unknown patch type: %.40s",
			log_esc(name ? name : "null"));
	json_object_put(*o);
	*o = all ? json_copy(patch) : json_obj();
	json_object_object_del(*o, PATCH);
	clean(*o);
	return 0;
}

static int merge_map(const struct apistore_place *p, struct json_object **o,
	struct json_object *patch, struct err *err)
{
	struct json_object *directive = NULL;

	if (json_object_object_get_ex(patch, PATCH, &directive))
		return replace_map(o, patch, directive, err);
	if (retain(*o, patch, err) < 0 || set_orders(p, *o, patch, err) < 0)
		return -1;
	json_object_object_foreach (patch, name, v) {
		cleanup_free char *order = NULL;

		if (str_starts(name, DELETE)) {
			if (delete_scalars(*o, name, v, err) < 0)
				return -1;
			continue;
		}
		order = xasprintf(ORDER "/%s", name); /* done with its order */
		if (is_directive(name) || json_object_object_get_ex(patch, order, NULL))
			continue;
		if (merge_member(p, *o, name, v, err) < 0)
			return -1;
	}
	return 0;
}

int apistore_strategic_merge(const struct apistore_place *p, struct json_object **o,
	struct json_object *patch, struct err *err)
{
	return merge_map(p, o, patch, err);
}
