/* SPDX-License-Identifier: MIT */
/* The hash is over the members in the order of their names, each with its length before it, so that
 * nothing moves between names and values. */
#include "config.h"

#include "tec/model/input.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"

struct member {
	const char *name;
	struct json_object *value; /* borrowed */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static size_t collect(struct json_object *in, struct member *out, size_t n)
{
	if (!in)
		return n;
	json_object_object_foreach (in, name, value) {
		if (json_object_is_type(value, json_type_string))
			out[n++] = (struct member){name, value};
	}
	return n;
}

static size_t count(struct json_object *in)
{
	return in ? (size_t)json_object_object_length(in) : 0;
}

static void hash_members(const struct member *v, size_t n, uint8_t out[SHA256_LEN])
{
	cleanup_sha256 struct bytes_sha256_run run;

	bytes_sha256_init(&run);
	for (size_t i = 0; i < n; i++) {
		bytes_sha256_add_framed(&run, v[i].name, strlen(v[i].name));
		bytes_sha256_add_framed(&run, json_object_get_string(v[i].value),
			(size_t)json_object_get_string_len(v[i].value));
	}
	bytes_sha256_end(&run, out);
}

static void read_members(
	struct kobj_pack *pack, struct model_input *m, const struct member *v, size_t n)
{
	cleanup_strbuf struct strbuf keys = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		strbuf_addf(&keys, "%s\n", v[i].name);
	hash_members(v, n, m->sha256);
	kobj_pack_str(pack, offsetof(struct model_input, keys), keys.len ? keys.data : NULL);
}

/* Enough to know which form it has; what else is wrong with it Trustee says. */
static void read_values(struct model_input *m, struct json_object *v)
{
	const char *s = json_object_get_string(v);

	s += strspn(s, " \t\r\n");
	m->values_list |= *s == '[';
	m->values_empty |= *s == '[' && s[1 + strspn(s + 1, " \t\r\n")] == ']';
}

static void read_files(
	struct kobj_pack *pack, struct model_input *m, const struct member *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(v[i].name, MODEL_KBSFILE_KEY))
			model_kbsfile_read(pack, offsetof(struct model_input, file), &m->file,
				json_object_get_string(v[i].value),
				(size_t)json_object_get_string_len(v[i].value));
		else if (str_eq(v[i].name, "reference_value") ||
			 str_eq(v[i].name, "reference-values.json"))
			read_values(m, v[i].value);
	}
}

static struct kobj *extract(struct json_object *o, bool secret, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct json_object *data = json_get_obj(o, "data"),
			   *binary = secret ? NULL : json_get_obj(o, "binaryData");
	cleanup_free struct member *v = xcalloc(count(data) + count(binary) + 1, sizeof(*v));
	struct model_input m = {.owner_uid = NULL};
	size_t n;

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	n = collect(binary, v, collect(data, v, 0));
	qsort(v, n, sizeof(*v), by_name);
	kobj_pack_str(&pack, offsetof(struct model_input, owner_uid), kobj_owner_controller(o));
	kobj_pack_str(
		&pack, offsetof(struct model_input, made), kobj_annotation(o, MODEL_INPUT_MADE));
	kobj_pack_str(
		&pack, offsetof(struct model_input, tls), kobj_annotation(o, MODEL_INPUT_TLS));
	read_members(&pack, &m, v, n);
	if (!secret)
		read_files(&pack, &m, v, n);
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

void model_input_hash(struct json_object *data, char hex[SHA256_HEX_LEN + 1])
{
	cleanup_free struct member *v = xcalloc(count(data) + 1, sizeof(*v));
	size_t n = collect(data, v, 0);
	uint8_t digest[SHA256_LEN];

	qsort(v, n, sizeof(*v), by_name);
	hash_members(v, n, digest);
	bytes_to_hex(digest, sizeof(digest), hex);
}

struct kobj *model_input_configmap_extract(struct json_object *o, struct err *err)
{
	return extract(o, false, err);
}

struct kobj *model_input_secret_extract(struct json_object *o, struct err *err)
{
	struct kobj *k = extract(o, true, err);

	json_wipe(json_get_obj(o, "data"));
	return k;
}

char *model_input_next(const struct model_input *in, const char **at)
{
	const char *from = *at ? *at : in->keys, *end;

	if (!from || !*from)
		return NULL;
	end = strchrnul(from, '\n');
	*at = *end ? end + 1 : end;
	return xstrndup(from, (size_t)(end - from));
}

bool model_input_has(const struct model_input *in, const char *key)
{
	const char *at = NULL;

	for (;;) {
		cleanup_free char *one = model_input_next(in, &at);

		if (!one || str_eq(one, key))
			return one != NULL;
	}
}
