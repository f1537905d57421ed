/* SPDX-License-Identifier: MIT */
/* The hash covers the members in the order of their names, each preceded by its length, so that no
 * byte can move between names and values. A ConfigMap's binaryData are hashed as the bytes that the
 * kubelet writes, so a file has the same hash there and in data. */
#include "config.h"

#include "tec/model/input.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"

#define AT(m) offsetof(struct model_input, m)

struct member {
	const char *name, *value; /* borrowed */
	size_t len;
	uint8_t *decoded; /* owned: the decoded value, if it was base64 */
};

struct members {
	struct member *v;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

/* Collect the string members. A value that is not base64 is taken as it is: the API server would
 * not store it. */
static void collect(struct members *m, struct json_object *in, bool decode)
{
	size_t len;

	json_each (in, name, value) {
		struct member *at = &m->v[m->n];

		if (!json_object_is_type(value, json_type_string))
			continue;
		*at = (struct member){name, json_object_get_string(value),
			(size_t)json_object_get_string_len(value), NULL};
		if (decode && bytes_from_b64(at->value, at->len, &at->decoded, &len) == 0) {
			at->value = at->decoded ? (const char *)at->decoded : "";
			at->len = len;
		}
		m->n++;
	}
}

/* data and binaryData are one set of files: the API server refuses a key that is in both. */
static struct members members_of(struct json_object *data, struct json_object *binary)
{
	struct members m = {xcalloc(json_len(data) + json_len(binary) + 1, sizeof(*m.v)), 0};

	collect(&m, data, false);
	collect(&m, binary, true);
	qsort(m.v, m.n, sizeof(*m.v), by_name);
	return m;
}

static void members_fini(struct members *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].decoded);
	free(m->v);
}

#define cleanup_members __attribute__((cleanup(members_fini)))

/* Names and values are framed by their lengths; see the top of this file. */
static void hash_members(const struct members *m, uint8_t out[SHA256_LEN])
{
	cleanup_sha256 struct bytes_sha256_run run;

	bytes_sha256_init(&run);
	for (size_t i = 0; i < m->n; i++) {
		bytes_sha256_add_framed(&run, m->v[i].name, strlen(m->v[i].name));
		bytes_sha256_add_framed(&run, m->v[i].value, m->v[i].len);
	}
	bytes_sha256_end(&run, out);
}

/* Skip white space; at the end of the value, the result is NUL. */
static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* The names of the reference values' file differ between Trustee's versions. Only their form is
 * found out here: Trustee itself reports other errors in them. */
static void read_files(struct kobj_pack *pack, struct model_input *m, const struct members *all)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct member *v = &all->v[i];
		const char *first = skip_space(v->value);

		if (str_eq(v->name, MODEL_KBSFILE_KEY)) {
			model_kbsfile_read(pack, AT(file), &m->file, v->value, v->len);
		} else if ((str_eq(v->name, "reference_value") ||
				   str_eq(v->name, "reference-values.json")) &&
			   *first == '[') {
			m->values_list = true;
			m->values_empty |= *skip_space(first + 1) == ']';
		}
	}
}

/* A Pod may have some keys of a Secret only, so a change of another one must be told apart. */
static void add_sums(struct strbuf *out, const struct members *all)
{
	char hex[SHA256_HEX_LEN + 1];

	for (size_t i = 0; i < all->n; i++) {
		bytes_sha256_hex(all->v[i].value, all->v[i].len, hex);
		strbuf_add(out, hex, MODEL_INPUT_SUM_LEN);
	}
}

/* Files are not parsed in Secrets, whose values must not be kept. */
static struct kobj *extract(struct json_object *o, bool secret, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_members struct members all =
		members_of(json_get_obj(o, "data"), secret ? NULL : json_get_obj(o, "binaryData"));
	cleanup_strbuf struct strbuf keys = STRBUF_INIT, sums = STRBUF_INIT;
	struct model_input m = {.owner_uid = NULL};

	if (kobj_meta_read(&pack, o, &m.obj, err) < 0)
		return NULL;
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, AT(made), kobj_annotation(o, MODEL_INPUT_MADE));
	kobj_pack_str(&pack, AT(tls), kobj_annotation(o, MODEL_INPUT_TLS));
	/* Keys of ConfigMaps and Secrets never contain a line break, so lines separate them. */
	for (size_t i = 0; i < all.n; i++)
		strbuf_addf(&keys, "%s\n", all.v[i].name);
	hash_members(&all, m.sha256);
	kobj_pack_str(&pack, AT(keys), keys.len ? keys.data : NULL);
	if (secret)
		add_sums(&sums, &all);
	else
		read_files(&pack, &m, &all);
	kobj_pack_str(&pack, AT(sums), sums.len ? sums.data : NULL);
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

void model_input_hash(struct json_object *data, char hex[SHA256_HEX_LEN + 1])
{
	cleanup_members struct members all = members_of(data, NULL);
	uint8_t digest[SHA256_LEN];

	hash_members(&all, digest);
	bytes_to_hex(digest, sizeof(digest), hex);
}

struct kobj *model_input_configmap_extract(struct json_object *o, struct err *err)
{
	return extract(o, false, err);
}

/* Wiped on failure, too: the values were only needed for the hash. */
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

/* The position of a key; -1: there is none. Keys are few, so a search through the lines is cheaper
 * than an index. */
static long find_key(const struct model_input *in, const char *key)
{
	const char *at = NULL;

	for (long i = 0;; i++) {
		cleanup_free char *one = model_input_next(in, &at);

		if (!one || str_eq(one, key))
			return one ? i : -1;
	}
}

bool model_input_has(const struct model_input *in, const char *key)
{
	return find_key(in, key) >= 0;
}

const char *model_input_sum(const struct model_input *in, const char *key)
{
	long i = find_key(in, key);

	return i < 0 || !in->sums ? NULL : in->sums + i * MODEL_INPUT_SUM_LEN;
}
