/* SPDX-License-Identifier: MIT */
/*
 * A comparison that allows for what an API server does to an object: it fills in defaults, drops zero
 * values (Go's omitempty), and merges lists by key. In doubt the answer is "differs": this costs one
 * apply that changes nothing, whereas a false "equal" would leave drift unrepaired.
 */
#include "config.h"

#include "tec/kobj/subset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"

/* In order of preference: a volumeMount also has a name but is keyed by mountPath, an ownerReference
 * by uid, a Service port by port. */
static const struct merge_key {
	const char *name, *second, *second_default;
} merge_keys[] = {
	{"containerPort", "protocol", "TCP"},
	{"mountPath", NULL, NULL},
	{"uid", NULL, NULL},
	{"port", "protocol", "TCP"},
	{"name", NULL, NULL},
	{"type", NULL, NULL},
	{"key", NULL, NULL},
};

static bool subset(const char *member, struct json_object *want, struct json_object *have);

/* Return the text of a string or number, borrowed from o or in buf; NULL for other types. A
 * quantity may be sent as 1 and stored as "1", so both must have one text. */
static const char *scalar_text(struct json_object *o, char buf[40], size_t *len)
{
	double d;

	switch (json_object_get_type(o)) {
	case json_type_string:
		*len = (size_t)json_object_get_string_len(o);
		return json_object_get_string(o);
	case json_type_int:
		/* get_int64 saturates above INT64_MAX, get_uint64 clamps below 0 */
		if (json_object_get_int64(o) == INT64_MAX)
			*len = (size_t)snprintf(buf, 40, "%" PRIu64, json_object_get_uint64(o));
		else
			*len = (size_t)snprintf(buf, 40, "%" PRId64, json_object_get_int64(o));
		return buf;
	case json_type_double:
		d = json_object_get_double(o);
		if (d > -9e15 && d < 9e15 && d == (double)(int64_t)d)
			*len = (size_t)snprintf(buf, 40, "%" PRId64, (int64_t)d);
		else
			*len = (size_t)snprintf(buf, 40, "%.17g", d);
		return buf;
	default:
		return NULL;
	}
}

/* Booleans equal only booleans: no API field takes both true and "true". */
static bool scalar_equal(struct json_object *want, struct json_object *have)
{
	char a[40], b[40];
	size_t a_len = 0, b_len = 0;
	const char *ta, *tb;

	if (json_object_is_type(want, json_type_boolean) ||
		json_object_is_type(have, json_type_boolean))
		return json_object_get_type(want) == json_object_get_type(have) &&
		       json_object_get_boolean(want) == json_object_get_boolean(have);
	ta = scalar_text(want, a, &a_len);
	tb = scalar_text(have, b, &b_len);
	return ta && tb && a_len == b_len && memcmp(ta, tb, a_len) == 0;
}

/* True for values that a server omits when it writes the object back (Go's omitempty). */
static bool is_zero(struct json_object *o)
{
	if (json_object_is_type(o, json_type_boolean))
		return !json_object_get_boolean(o);
	if (json_object_is_type(o, json_type_int))
		return json_object_get_int64(o) == 0;
	return !json_object_is_type(o, json_type_object) && json_is_empty(o);
}

static struct json_object *member_of(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	(void)json_object_object_get_ex(o, name, &v);
	return v;
}

/* Find the merge key that every element has as a scalar; NULL means that the list is atomic and
 * compared by position. */
static const struct merge_key *list_key(struct json_object *list)
{
	size_t n = json_len(list);

	for (size_t k = 0; k < ARRAY_LEN(merge_keys); k++) {
		size_t i = 0;
		char buf[40];
		size_t len;

		while (i < n &&
			scalar_text(member_of(json_at(list, i), merge_keys[k].name), buf, &len))
			i++;
		if (n && i == n)
			return &merge_keys[k];
	}
	return NULL;
}

/* Compare the merge keys of two elements; a missing second part has its API default (protocol
 * TCP). */
static bool same_key(const struct merge_key *k, struct json_object *a, struct json_object *b)
{
	struct json_object *a1 = member_of(a, k->name), *b1 = member_of(b, k->name);
	const char *pa, *pb;

	if (!a1 || !b1 || !scalar_equal(a1, b1))
		return false;
	if (!k->second)
		return true;
	pa = json_get_str(a, k->second);
	pb = json_get_str(b, k->second);
	return str_eq(pa ? pa : k->second_default, pb ? pb : k->second_default);
}

/* Compare lists as the API server merges them: by key, as a set (finalizers), or else by position
 * with equal length. */
static bool list_subset(const char *member, struct json_object *want, struct json_object *have)
{
	size_t n = json_len(want), n_have = json_len(have);
	const struct merge_key *k = list_key(want);
	bool set =
		member && strcmp(member, "finalizers") == 0; /* the one set of scalars we write */

	/* An empty list matches entries of others where the server merges by key or as a set; in an
	 * atomic list such entries are drift. */
	if (n == 0)
		return n_have == 0 || list_key(have) || set;
	if (!k && !set && n_have != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(want, i);
		size_t at = k || set ? 0 : i, end = k || set ? n_have : i + 1;

		while (at < end && !((!k || same_key(k, e, json_at(have, at))) &&
					   subset(NULL, e, json_at(have, at))))
			at++;
		if (at == end)
			return false;
	}
	return true;
}

static bool subset(const char *member, struct json_object *want, struct json_object *have)
{
	/* Maps with client-chosen names: in these an empty value differs from a missing one. */
	static const char *const free_maps[] = {"labels", "annotations", "matchLabels", "selector",
		"nodeSelector", "data", "binaryData", "stringData"};
	bool is_free = false;

	if (!want)
		return have == NULL;
	if (!have)
		return false;
	switch (json_object_get_type(want)) {
	case json_type_object:
		if (!json_object_is_type(have, json_type_object))
			return false;
		for (size_t i = 0; i < ARRAY_LEN(free_maps); i++)
			is_free |= str_eq(member, free_maps[i]);
		json_object_object_foreach (want, name, value) {
			struct json_object *h = member_of(have, name);

			if (!h && (!value || (is_zero(value) && !is_free)))
				continue;
			if (!subset(name, value, h))
				return false;
		}
		return true;
	case json_type_array:
		return json_object_is_type(have, json_type_array) &&
		       list_subset(member, want, have);
	default:
		return scalar_equal(want, have);
	}
}

bool kobj_subset(struct json_object *want, struct json_object *have)
{
	return subset(NULL, want, have);
}

/* The hash detects what was rendered before and is not any more: kobj_subset() ignores additional
 * members. */
void kobj_render_hash_set(struct json_object *o)
{
	struct json_object *m = json_get_obj(o, "metadata");
	struct json_object *a = json_get_obj(o, "metadata/annotations");
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	/* An annotations member that held only the hash must leave no trace, or the second call
	 * would hash another text. */
	if (a) {
		json_object_object_del(a, KOBJ_RENDER_HASH_ANNOTATION);
		if (json_object_object_length(a) == 0) {
			json_object_object_del(m, "annotations");
			a = NULL;
		}
	}
	json_canonical(&text, o);
	bytes_sha256(strbuf_str(&text), text.len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	hex[16] = '\0';
	if (!m)
		json_add(o, "metadata", m = json_obj());
	if (!a)
		json_add(m, "annotations", a = json_obj());
	json_add_str(a, KOBJ_RENDER_HASH_ANNOTATION, hex);
}
