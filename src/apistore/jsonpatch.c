/* SPDX-License-Identifier: MIT */
/*
 * One function per operation, in a table. A pointer is resolved to the container of its last token,
 * and the operations differ in what they do with that token. The work is bounded: values to compare
 * come from the patch, and values copied, moved or searched are counted.
 */
#include "config.h"

#include "tec/apistore/jsonpatch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define DEPTH_MAX 127      /* levels below the object, as in the body of a request */
#define WORK_MAX  20000000 /* values visited; about a second */

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
static struct place find(struct json_object *doc, const char *path)
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

/* Insert by moving the elements after i, since json-c has no insert. */
static void insert(struct json_object *list, size_t i, struct json_object *take_v)
{
	for (size_t k = json_len(list); k > i; k--)
		json_put_at(list, k, json_object_get(json_at(list, k - 1)));
	json_put_at(list, i, take_v);
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
		insert(at->in, i, take_v);
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

static struct json_object *copy_of(struct json_object *v)
{
	return v ? json_copy(v) : NULL;
}

/* The container must exist; the value is copied, because the patch is only read. */
static int op_add(struct patching *p, const char *path)
{
	cleanup_place struct place at = find(*p->doc, path);

	if (!at.in)
		return fail(p, "add operation does not apply: doc is missing path", path);
	return add_at(p, &at, copy_of(value_of(p)));
}

static int op_remove(struct patching *p, const char *path)
{
	cleanup_place struct place at = find(*p->doc, path);

	if (!at.in)
		return fail(p, "remove operation does not apply: doc is missing path", path);
	return remove_at(p, &at);
}

/* Replace the whole document with an object or list. Any other value changes nothing and succeeds,
 * as in kube-apiserver's library. */
static int replace_all(struct patching *p)
{
	struct json_object *v = value_of(p);

	if (is_container(v)) {
		json_object_put(*p->doc);
		*p->doc = json_copy(v);
	}
	return 0;
}

/* Replace a value. A missing member is created, unlike in RFC 6902, section 4.3. */
static int op_replace(struct patching *p, const char *path)
{
	cleanup_place struct place at = {0};
	struct json_object *was;
	size_t i;

	if (!*path)
		return replace_all(p);
	at = find(*p->doc, path);
	if (!at.in)
		return fail(p, "replace operation does not apply: doc is missing path", path);
	if (!get_at(at.in, at.key, &was))
		return fail(p, "replace operation does not apply: doc is missing key", path);
	if (!fits(p, value_of(p), at.depth))
		return fail(p, "value nested too deep, or patch too expensive", path);
	if (json_object_is_type(at.in, json_type_object))
		json_add(at.in, at.key, copy_of(value_of(p)));
	else if (index_of(at.key, json_len(at.in), false, &i))
		json_put_at(at.in, i, copy_of(value_of(p)));
	return 0;
}

/* The value is held by a reference while it is removed from one place and added to the other. */
static int op_move(struct patching *p, const char *path)
{
	const char *from = json_get_str(p->op, "from");
	cleanup_place struct place at = {0}, to = {0};
	struct json_object *v;

	at = find(*p->doc, from ? from : "");
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
	to = find(*p->doc, path);
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

	at = find(*p->doc, from ? from : "");
	if (!at.in || !get_at(at.in, at.key, &v))
		return fail(p, "copy operation does not apply: doc is missing from path", from);
	to = find(*p->doc, path);
	if (!to.in)
		return fail(
			p, "copy operation does not apply: doc is missing destination path", path);
	/* The size is that of the JSON text, as kube-apiserver's library counts it. */
	shown = json_text(v);
	p->copied += strlen(shown);
	if (p->copied > APISTORE_JSONPATCH_COPY)
		return err_set(p->err, ERR_INVALID,
			"Unable to complete the copy, the accumulated size increase of copy is %zu, exceeding the limit %u",
			p->copied, APISTORE_JSONPATCH_COPY);
	return add_at(p, &to, copy_of(v));
}

/* Compare a value. A missing member equals null here, as get_at() says. */
static int op_test(struct patching *p, const char *path)
{
	cleanup_place struct place at = {0};
	struct json_object *v = *p->doc;

	if (*path) {
		at = find(*p->doc, path);
		if (!at.in)
			return fail(p, "test operation does not apply: is missing path", path);
		if (!get_at(at.in, at.key, &v))
			return fail(p, "error in test for path", path);
	}
	return json_object_equal(v, value_of(p)) ? 0 : fail(p, "test failed", path);
}

/* ---- the list of operations */

/* Check the types in one operation: each member must be a string or null, which counts as
 * absent. */
static int check_op(struct json_object *op, struct err *err)
{
	static const char *const names[] = {"op", "path", "from"};
	struct json_object *v = NULL;

	if (op && !json_object_is_type(op, json_type_object))
		return err_set_http(err, ERR_INVALID, 400,
			"error decoding patch: an operation must be an object");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_object_object_get_ex(op, names[i], &v) && v &&
			!json_object_is_type(v, json_type_string))
			return err_set_http(err, ERR_INVALID, 400,
				"error decoding patch: \"%s\" must be a string", names[i]);
	return 0;
}

/* Types are checked before the number of operations, as in kube-apiserver. */
int apistore_jsonpatch_check(struct json_object *patch, struct err *err)
{
	size_t n;

	if (!json_object_is_type(patch, json_type_array))
		return err_set_http(
			err, ERR_INVALID, 400, "error decoding patch: must be of type array");
	n = json_len(patch);
	for (size_t i = 0; i < n; i++)
		if (check_op(json_at(patch, i), err) < 0)
			return -1;
	if (n > APISTORE_JSONPATCH_OPS)
		return err_set_http(err, ERR_INVALID, 413,
			"Request entity too large: The allowed maximum operations in a JSON patch is %u, got %zu",
			APISTORE_JSONPATCH_OPS, n);
	return 0;
}

/* Run the operations in order. The first failure ends the patch, and the caller drops the document,
 * so a patch is applied as a whole or not at all. */
int apistore_jsonpatch_apply(struct json_object **o, struct json_object *patch, struct err *err)
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
