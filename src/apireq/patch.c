/* SPDX-License-Identifier: MIT */
/*
 * Three kinds of patch. A merge patch goes member by member; the recursion is as deep as the patch,
 * whose parser bounds it.
 *
 * A strategic merge patch also merges lists with a key, and then orders them: elements named by the
 * patch in the order it gives, the others where the server had them. Elements are found through a
 * JSON object that maps each key to an index. "$patch" in maps, "$retainKeys" and other directives
 * are refused: no kind served here needs them, and client-side apply does not send them.
 *
 * A JSON patch has one function per operation, in a table. A pointer is resolved to the container of
 * its last token, and the operations differ in what they do with that token. The work is bounded:
 * values to compare come from the patch, and values copied, moved or searched are counted.
 */
#include "config.h"

#include "tec/apireq/patch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define DIRECTIVE   "$patch"
#define ORDER_OF    "$setElementOrder/"
#define DELETE_FROM "$deleteFromPrimitiveList/"

#define DEPTH_MAX 127      /* levels below the object, as in the body of a request */
#define WORK_MAX  20000000 /* values visited; about a second */

/* A null removes a member (RFC 7386). A value that is not an object replaces the member. An object is
 * merged, into an empty one if there is none, which drops the nulls inside it. */
void apireq_patch_merge(struct json_object *o, struct json_object *patch)
{
	json_each (patch, name, value) {
		struct json_object *have = NULL;

		if (!value) {
			json_drop(o, name);
			continue;
		}
		if (!json_object_is_type(value, json_type_object)) {
			json_add(o, name, json_copy(value));
			continue;
		}
		if (!json_object_object_get_ex(o, name, &have) ||
			!json_object_is_type(have, json_type_object))
			json_add(o, name, have = json_obj());
		apireq_patch_merge(have, value);
	}
}

/* ---- strategic merge patch */

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
	return is_map(element) && str_eq(json_get_str(element, DIRECTIVE), "delete");
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
static ssize_t element_at(struct json_object *places, struct json_object *e, const char *member)
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
		ssize_t i = element_at(m->places, json_at(order, k), m->key);

		if (i >= 0)
			named[i] = true;
	}
	for (size_t k = 0; k < json_len(order); k++) {
		ssize_t i = element_at(m->places, json_at(order, k), m->key);

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

/* Merge each element of the patch into the element with its key, or append it. */
static int merge_elements(
	const struct apireq_place *p, struct merged *m, struct json_object *patch, struct err *err)
{
	const struct apireq_place below = apireq_place_element(p);

	for (size_t k = 0; k < json_len(patch); k++) {
		struct json_object *e = json_at(patch, k);
		cleanup_free char *key = key_of(e, m->key);
		ssize_t i = element_at(m->places, e, m->key);

		if (!key)
			return err_set_http(err, ERR_INVALID, 400,
				"a list element lacks the merge key %s", m->key);
		if (says_delete(e))
			continue;
		if (i >= 0 && is_map(e)) {
			if (apireq_patch_strategic(&below, json_at(m->all, (size_t)i), e, err) < 0)
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
static int merge_list(const struct apireq_place *p, struct json_object *o, const char *name,
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
		if (element_at(gone, json_at(have, i), key) < 0)
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
static int merge_member(const struct apireq_place *p, struct json_object *o, const char *name,
	struct json_object *patch, struct err *err)
{
	const struct apireq_place below = apireq_place_member(p, name);
	cleanup_free char *order = xasprintf(ORDER_OF "%s", name),
			  *gone = xasprintf(DELETE_FROM "%s", name);
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
		return apireq_patch_strategic(&below, have, c.list, err);
	if (keyed && is_list(have) && (!given || is_list(c.list)))
		return merge_list(&below, o, name, &c, err);
	if (given)
		json_add(o, name, clean(json_copy(c.list)));
	return 0;
}

/* Return the member that a name in the patch refers to; NULL: an unknown directive. */
static const char *about(const char *name)
{
	static const char *const directives[] = {ORDER_OF, DELETE_FROM};

	for (size_t i = 0; i < ARRAY_LEN(directives); i++)
		if (str_starts(name, directives[i]) && name[strlen(directives[i])])
			return name + strlen(directives[i]);
	return name[0] == '$' ? NULL : name;
}

/* Merge each member of the patch. Directives refer to a member by the name after the slash. */
int apireq_patch_strategic(const struct apireq_place *p, struct json_object *o,
	struct json_object *patch, struct err *err)
{
	json_each (patch, name, v) {
		const char *member = about(name);
		cleanup_free char *order = member ? xasprintf(ORDER_OF "%s", member) : NULL;

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

/* ---- JSON patch */

/* A location: member or element `key` of a container. It need not exist. */
struct place {
	struct json_object *in; /* borrowed; NULL: the container does not exist */
	char *key;              /* owned, decoded */
	unsigned depth;         /* of a value there */
};

static void place_fini(struct place *p)
{
	free(p->key);
}
#define cleanup_place __attribute__((cleanup(place_fini)))

struct patching {
	struct json_object **doc;
	struct json_object *op; /* the current operation; borrowed */
	size_t copied, work;    /* bytes and values so far, of all operations */
	struct err *err;
};

/* Set the error of an operation. The path is escaped, since it comes from the client. */
static int fail(const struct patching *p, const char *what, const char *path)
{
	return err_set(p->err, ERR_INVALID, "%s: %.100s", what, log_esc(path ? path : "(none)"));
}

/* Decode a token of a pointer: "~1" is '/', "~0" is '~' (RFC 6901, section 4). */
static char *decode_token(const char *s, size_t len)
{
	char *out = xstrndup(s, len);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		out[n] = s[i];
		if (s[i] == '~' && (s[i + 1] == '0' || s[i + 1] == '1') && i + 1 < len)
			out[n] = s[++i] == '0' ? '~' : '/';
		n++;
	}
	out[n] = '\0';
	return out;
}

/* Parse an index: a decimal with an optional sign. A negative one counts from the end. after_last:
 * the index one past the end is valid too, as the place of a new element. */
static bool index_of(const char *key, size_t n, bool after_last, size_t *out)
{
	const size_t end = n + (after_last ? 1 : 0);
	bool negative = *key == '-';
	uint64_t v;

	key += negative || *key == '+';
	if (str_to_u64(key, INT32_MAX, &v) < 0)
		return false;
	if (negative && v > 0) {
		if (v > end)
			return false;
		v = end - v;
	}
	*out = (size_t)v;
	return v < end;
}

/* Get the value at key. As in kube-apiserver, a missing member is null and no error; only an index
 * outside of a list returns false. */
static bool get_at(struct json_object *in, const char *key, struct json_object **out)
{
	size_t i;

	*out = NULL;
	if (json_object_is_type(in, json_type_object)) {
		json_object_object_get_ex(in, key, out);
		return true;
	}
	if (!index_of(key, json_len(in), false, &i))
		return false;
	*out = json_at(in, i);
	return true;
}

static bool is_container(struct json_object *v)
{
	return json_object_is_type(v, json_type_object) || json_object_is_type(v, json_type_array);
}

/* Resolve a pointer to the container of its last token. All containers on the way must exist. */
static struct place locate(struct json_object *doc, const char *path)
{
	const char *token = strchr(path, '/'), *end;
	struct place p = {token && is_container(doc) ? doc : NULL, NULL, 1};

	for (; p.in; token = end, p.depth++) {
		cleanup_free char *key = NULL;

		end = strchrnul(++token, '/');
		key = decode_token(token, (size_t)(end - token));
		if (!*end) {
			p.key = steal_ptr(&key);
			break;
		}
		if (!get_at(p.in, key, &p.in) || !is_container(p.in))
			p.in = NULL;
	}
	return p;
}

/* Check that a value to be stored at this depth does not nest too deep, and count its values as
 * work. */
static bool fits(struct patching *p, struct json_object *v, unsigned depth)
{
	if (++p->work > WORK_MAX || depth > DEPTH_MAX)
		return false;
	if (json_object_is_type(v, json_type_object)) {
		json_each (v, name, child) {
			if (!fits(p, child, depth + 1))
				return false;
		}
	} else if (json_object_is_type(v, json_type_array)) {
		for (size_t i = 0; i < json_len(v); i++)
			if (!fits(p, json_at(v, i), depth + 1))
				return false;
	}
	return true;
}

/* Count the elements after index i as work: inserting or removing at i moves them all. */
static bool may_move(struct patching *p, struct json_object *list, size_t i)
{
	p->work += json_len(list) - i;
	return p->work <= WORK_MAX;
}

/* Add or replace a member, or insert an element; "-" appends (RFC 6902, section 4.1). */
static int add_at(struct patching *p, const struct place *at, struct json_object *take_v)
{
	size_t i;

	if (!fits(p, take_v, at->depth)) {
		json_object_put(take_v);
		return fail(p, "value nested too deep, or patch too expensive", at->key);
	}
	if (json_object_is_type(at->in, json_type_object)) {
		json_add(at->in, at->key, take_v);
		return 0;
	}
	if (str_eq(at->key, "-")) {
		json_push(at->in, take_v);
		return 0;
	}
	if (index_of(at->key, json_len(at->in), true, &i) && may_move(p, at->in, i)) {
		/* json-c has no insert: move the elements after i. */
		for (size_t k = json_len(at->in); k > i; k--)
			json_put_at(at->in, k, json_object_get(json_at(at->in, k - 1)));
		json_put_at(at->in, i, take_v);
		return 0;
	}
	json_object_put(take_v);
	return fail(p, "Unable to access invalid index", at->key);
}

/* Remove a member or an element, which must exist (RFC 6902, section 4.2). */
static int remove_at(struct patching *p, const struct place *at)
{
	size_t i;

	if (json_object_is_type(at->in, json_type_object)) {
		if (!json_object_object_get_ex(at->in, at->key, NULL))
			return fail(p, "Unable to remove nonexistent key", at->key);
		json_drop(at->in, at->key);
		return 0;
	}
	if (!index_of(at->key, json_len(at->in), false, &i) || !may_move(p, at->in, i))
		return fail(p, "Unable to access invalid index", at->key);
	json_cut(at->in, i, 1);
	return 0;
}

/* ---- operations */

static struct json_object *value_of(const struct patching *p)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(p->op, "value", &v);
	return v;
}

/* The container must exist; the value is copied, because the patch is only read. */
static int op_add(struct patching *p, const char *path)
{
	cleanup_place struct place at = locate(*p->doc, path);

	if (!at.in)
		return fail(p, "add operation does not apply: doc is missing path", path);
	return add_at(p, &at, json_copy(value_of(p)));
}

static int op_remove(struct patching *p, const char *path)
{
	cleanup_place struct place at = locate(*p->doc, path);

	if (!at.in)
		return fail(p, "remove operation does not apply: doc is missing path", path);
	return remove_at(p, &at);
}

/* Replace a value. A missing member is created, unlike in RFC 6902, section 4.3. */
static int op_replace(struct patching *p, const char *path)
{
	cleanup_place struct place at = {0};
	struct json_object *was;
	size_t i;

	/* The whole document can be replaced with an object or list. Any other value changes
	 * nothing and succeeds, as in kube-apiserver's library. */
	if (!*path && is_container(value_of(p))) {
		json_object_put(*p->doc);
		*p->doc = json_copy(value_of(p));
	}
	if (!*path)
		return 0;
	at = locate(*p->doc, path);
	if (!at.in)
		return fail(p, "replace operation does not apply: doc is missing path", path);
	if (!get_at(at.in, at.key, &was))
		return fail(p, "replace operation does not apply: doc is missing key", path);
	if (!fits(p, value_of(p), at.depth))
		return fail(p, "value nested too deep, or patch too expensive", path);
	if (json_object_is_type(at.in, json_type_object))
		json_add(at.in, at.key, json_copy(value_of(p)));
	else if (index_of(at.key, json_len(at.in), false, &i))
		json_put_at(at.in, i, json_copy(value_of(p)));
	return 0;
}

/* The value is held by a reference while it is removed from one place and added to the other. */
static int op_move(struct patching *p, const char *path)
{
	const char *from = json_get_str(p->op, "from");
	cleanup_place struct place at = {0}, to = {0};
	struct json_object *v;

	at = locate(*p->doc, from ? from : "");
	if (!at.in)
		return fail(p, "move operation does not apply: doc is missing from path", from);
	if (!get_at(at.in, at.key, &v))
		return fail(p, "error in move for path", from);
	/* Keep the value alive while it is in neither place. */
	json_object_get(v);
	if (remove_at(p, &at) < 0) {
		json_object_put(v);
		return -1;
	}
	to = locate(*p->doc, path);
	if (to.in)
		return add_at(p, &to, v);
	json_object_put(v);
	return fail(p, "move operation does not apply: doc is missing destination path", path);
}

/* The size of all copies is bounded: each one could double the document. */
static int op_copy(struct patching *p, const char *path)
{
	const char *from = json_get_str(p->op, "from");
	cleanup_place struct place at = {0}, to = {0};
	cleanup_free char *shown = NULL;
	struct json_object *v;

	at = locate(*p->doc, from ? from : "");
	if (!at.in || !get_at(at.in, at.key, &v))
		return fail(p, "copy operation does not apply: doc is missing from path", from);
	to = locate(*p->doc, path);
	if (!to.in)
		return fail(
			p, "copy operation does not apply: doc is missing destination path", path);
	/* The size is that of the JSON text, as kube-apiserver's library counts it. */
	shown = json_text(v);
	p->copied += strlen(shown);
	if (p->copied > APIREQ_PATCH_COPY)
		return err_set(p->err, ERR_INVALID,
			"Unable to complete the copy, the accumulated size increase of copy is %zu, exceeding the limit %u",
			p->copied, APIREQ_PATCH_COPY);
	return add_at(p, &to, json_copy(v));
}

/* Compare a value. A missing member equals null here, as get_at() says. */
static int op_test(struct patching *p, const char *path)
{
	cleanup_place struct place at = {0};
	struct json_object *v = *p->doc;

	if (*path) {
		at = locate(*p->doc, path);
		if (!at.in)
			return fail(p, "test operation does not apply: is missing path", path);
		if (!get_at(at.in, at.key, &v))
			return fail(p, "error in test for path", path);
	}
	return json_object_equal(v, value_of(p)) ? 0 : fail(p, "test failed", path);
}

/* ---- the list of operations */

/* Each of op, path and from must be a string or null, which counts as absent. Types are checked
 * before the number of operations, as in kube-apiserver. */
int apireq_patch_check(struct json_object *patch, struct err *err)
{
	static const char *const names[] = {"op", "path", "from"};
	const size_t n = json_len(patch);

	if (!json_object_is_type(patch, json_type_array))
		return err_set_http(
			err, ERR_INVALID, 400, "error decoding patch: must be of type array");
	for (size_t i = 0; i < n; i++) {
		struct json_object *op = json_at(patch, i), *v = NULL;

		if (op && !json_object_is_type(op, json_type_object))
			return err_set_http(err, ERR_INVALID, 400,
				"error decoding patch: an operation must be an object");
		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			if (json_object_object_get_ex(op, names[k], &v) && v &&
				!json_object_is_type(v, json_type_string))
				return err_set_http(err, ERR_INVALID, 400,
					"error decoding patch: \"%s\" must be a string", names[k]);
	}
	if (n > APIREQ_PATCH_OPS)
		return err_set_http(err, ERR_INVALID, 413,
			"Request entity too large: The allowed maximum operations in a JSON patch is %u, got %zu",
			APIREQ_PATCH_OPS, n);
	return 0;
}

/* Run the operations in order. The first failure ends the patch, and the caller drops the document,
 * so a patch is applied as a whole or not at all. */
int apireq_patch_json(struct json_object **o, struct json_object *patch, struct err *err)
{
	static const struct {
		const char *op;
		int (*run)(struct patching *p, const char *path);
	} ops[] = {{"add", op_add}, {"remove", op_remove}, {"replace", op_replace},
		{"move", op_move}, {"copy", op_copy}, {"test", op_test}};
	struct patching p = {.doc = o, .err = err};

	for (size_t i = 0; i < json_len(patch); i++) {
		const char *name, *path;
		size_t k = 0;

		p.op = json_at(patch, i);
		name = json_get_str(p.op, "op");
		path = json_get_str(p.op, "path");
		while (k < ARRAY_LEN(ops) && !str_eq(name, ops[k].op))
			k++;
		if (k == ARRAY_LEN(ops))
			return fail(&p, "Unexpected kind", name ? name : "unknown");
		if (!path)
			return fail(&p, "operation missing path field", name);
		if (ops[k].run(&p, path) < 0)
			return -1;
	}
	return 0;
}
