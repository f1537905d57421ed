/* SPDX-License-Identifier: MIT */
/*
 * Byte 0 chooses list or watch, secret or not, and whether members are cut out, byte 1 the pieces.
 * Any way to cut the text gives the same items and the same verdict, an item is one braced text,
 * and one that parses holds no managedFields any more, and of a map that is cut at most one member
 * beside those that are kept, without its value.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/k8s/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct taken {
	struct strbuf text;
	size_t n;
	bool watch, cut;
};

static const char *const keep_meta[] = {"a/*", "b", NULL};
static const char *const keep_data[] = {"root", NULL};
static const char *const keep_owner[] = {"uid", NULL};
static const char *const keep_spec[] = {"replicas", NULL};
static const char *const keep_status[] = {"ready", NULL};
static const struct kobj_keep keep = {
	keep_meta, keep_meta, keep_data, keep_owner, keep_spec, keep_status, false};

static void check_map(struct json_object *o, const char *path, const char *const *list)
{
	struct json_object *map = json_get_obj(o, path);
	unsigned n = 0;

	if (!map)
		return;
	json_object_object_foreach (map, name, value) {
		if (kobj_keeps(list, name, strlen(name)))
			continue;
		assert(!value && ++n == 1);
	}
}

static void check_owners(struct json_object *a)
{
	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *o = json_object_array_get_idx(a, i);
		const char *uid = json_get_str(o, "uid");

		assert(!uid || strlen(uid) < 128);
	}
}

static void check(const struct taken *t, struct json_object *o)
{
	struct json_object *item = t->watch ? json_get_obj(o, "object") : o;

	assert(!json_get(item, "metadata/managedFields"));
	if (!t->cut)
		return;
	check_map(item, "metadata/labels", keep_meta);
	check_map(item, "metadata/annotations", keep_meta);
	check_map(item, "data", keep_data);
	check_map(item, "binaryData", keep_data);
	check_map(item, "stringData", keep_data);
	check_map(item, "spec", keep_spec);
	check_map(item, "status", keep_status);
	check_owners(json_get_arr(item, "metadata/ownerReferences"));
}

static int take(void *arg, const char *item, size_t len, struct err *err)
{
	struct taken *t = arg;
	struct err bad = ERR_INIT;
	struct json_object *o;

	(void)err;
	assert(len >= 2 && item[0] == '{' && item[len - 1] == '}');
	strbuf_add(&t->text, item, len);
	strbuf_addc(&t->text, '\n');
	t->n++;
	if (memchr(item, '\\', len)) /* a name with escapes is none we look for */
		return 0;
	o = json_parse(item, len, &json_limits_object, &bad);
	if (o)
		check(t, o);
	json_object_put(o);
	return 0;
}

static int run(struct taken *t, const uint8_t *data, size_t size, size_t piece, bool secret,
	struct err *err)
{
	struct k8s_split *s = k8s_split_new(t->watch ? K8S_SPLIT_WATCH : K8S_SPLIT_LIST,
		t->cut ? &keep : NULL, secret, take, t);
	int rc = 0;

	for (size_t off = 0; off < size && rc == 0; off += piece) {
		size_t n = piece < size - off ? piece : size - off;
		char *copy = xmalloc(
			n); /* its own allocation, so that reading one byte too many is seen */

		memcpy(copy, data + off, n);
		rc = k8s_split_feed(s, copy, n, err);
		free(copy);
	}
	if (rc == 0)
		rc = k8s_split_end(s, err);
	if (rc == 0 && !t->watch)
		assert(k8s_split_rv(s)[0] && k8s_split_continue(s));
	k8s_split_free(s);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taken whole = {.text = STRBUF_INIT}, cut = {.text = STRBUF_INIT};
	struct err whole_err = ERR_INIT, cut_err = ERR_INIT;
	int a, b;

	if (size < 2)
		return 0;
	whole.watch = cut.watch = data[0] & 1;
	whole.cut = cut.cut = data[0] & 4;
	a = run(&whole, data + 2, size - 2, size, data[0] & 2, &whole_err);
	b = run(&cut, data + 2, size - 2, 1 + data[1] % 64, !(data[0] & 2), &cut_err);
	assert(a == b && whole_err.kind == cut_err.kind &&
		strcmp(whole_err.text, cut_err.text) == 0);
	assert(whole.n == cut.n && whole.text.len == cut.text.len);
	assert(strcmp(strbuf_str(&whole.text), strbuf_str(&cut.text)) == 0);
	strbuf_fini(&whole.text);
	strbuf_fini(&cut.text);
	return 0;
}
