/* SPDX-License-Identifier: MIT */
/*
 * Packing: the fixed struct and every string are copied into one allocation, and the pointers of the
 * fixed part then point into it. A packed object is never modified; the reference count is the only
 * member written later. References are not atomic: all users run on the loop's thread.
 */
#include "config.h"

#include "tec/kobj/meta.h"

#include <assert.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/key.h"

/* A uid is 36 bytes, a resourceVersion at most 20; both are opaque, so some slack. */
#define ID_MAX 128

struct kobj *kobj_ref(const struct kobj *o)
{
	struct kobj *k = (struct kobj *)(uintptr_t)o;

	assert(k->refs > 0 && k->refs < UINT32_MAX);
	k->refs++;
	return k;
}

/* Take a const pointer, because every holder but this one may only read the object. */
void kobj_unref(const struct kobj *o)
{
	struct kobj *k = (struct kobj *)(uintptr_t)o;

	if (!k)
		return;
	assert(k->refs > 0);
	if (--k->refs > 0)
		return;
	if (k->fini)
		k->fini(k);
	free(k);
}

void kobj_pack_fini(struct kobj_pack *p)
{
	strbuf_fini(&p->blob);
	p->n = 0;
}

/* Record an offset, not a pointer: the blob moves as it grows, and kobj_pack_finish() resolves
 * offsets. */
void kobj_pack_bytes(struct kobj_pack *p, size_t field_offset, const uint8_t *bytes, size_t len)
{
	const char *same;

	if (p->n == KOBJ_PACK_MAX)
		DIE("kobj pack: more than %d strings", KOBJ_PACK_MAX);
	/* Reuse equal bytes, as many strings repeat: an id at the end of a name, one reason in two
	 * conditions, a hash and its approved value. Packed strings are immutable, so overlapping
	 * ones are safe. */
	same = p->blob.len ? memmem(p->blob.data, p->blob.len, bytes, len) : NULL;
	p->slot[p->n].field = field_offset;
	p->slot[p->n].blob = same ? (size_t)(same - p->blob.data) : p->blob.len;
	p->n++;
	if (!same)
		strbuf_add(&p->blob, bytes, len);
}

void kobj_pack_str(struct kobj_pack *p, size_t field_offset, const char *text)
{
	if (text)
		kobj_pack_bytes(p, field_offset, (const uint8_t *)text, strlen(text) + 1);
}

/* Build the object and reset the pack. Offsets were recorded against the fixed part, so each must
 * lie inside of it. */
struct kobj *kobj_pack_finish(struct kobj_pack *p, const void *fixed, size_t fixed_size)
{
	char *mem = xmalloc(fixed_size + p->blob.len);
	char *blob = mem + fixed_size;
	struct kobj *o = (struct kobj *)(void *)mem;

	assert(fixed_size >= sizeof(struct kobj) && fixed_size <= UINT16_MAX);
	memcpy(mem, fixed, fixed_size);
	if (p->blob.len)
		memcpy(blob, p->blob.data, p->blob.len);
	for (size_t i = 0; i < p->n; i++) {
		const char *s = blob + p->slot[i].blob;

		assert(p->slot[i].field + sizeof(s) <= fixed_size);
		memcpy(mem + p->slot[i].field, &s, sizeof(s));
	}
	o->refs = 1;
	o->size = (uint16_t)fixed_size;
	kobj_pack_fini(p);
	return o;
}

/* Check an opaque id. It must be short and printable because it is used in URLs, logs and hash
 * tables. */
static bool id_sane(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	if (len == 0 || len > ID_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] <= ' ' || s[i] > '~' || s[i] == '"' || s[i] == '\\')
			return false;
	return true;
}

/* Check and record the three ids. The name is checked first, because the other errors quote it. */
static int pack_ids(
	struct kobj_pack *p, const char *name, const char *uid, const char *rv, struct err *err)
{
	if (!name || !kobj_name_valid(name, strlen(name)))
		return err_set(err, ERR_INVALID, "metadata.name is missing or not a DNS subdomain");
	if (!id_sane(uid))
		return err_set(
			err, ERR_INVALID, "metadata.uid of %s is missing or malformed", name);
	if (!id_sane(rv))
		return err_set(err, ERR_INVALID,
			"metadata.resourceVersion of %s is missing or malformed", name);
	kobj_pack_str(p, offsetof(struct kobj, name), name);
	kobj_pack_str(p, offsetof(struct kobj, uid), uid);
	kobj_pack_str(p, offsetof(struct kobj, rv), rv);
	return 0;
}

/* A missing creationTimestamp is accepted (age unknown); a malformed one is refused. */
int kobj_meta_read(struct kobj_pack *p, struct json_object *o, struct kobj *fixed, struct err *err)
{
	struct json_object *m = json_get_obj(o, "metadata");
	const char *name = json_get_str(m, "name"), *created = json_get_str(m, "creationTimestamp");
	int64_t us = 0;

	if (pack_ids(p, name, json_get_str(m, "uid"), json_get_str(m, "resourceVersion"), err) < 0)
		return -1;
	if (created && clock_parse(created, &us) < 0)
		return err_set(err, ERR_INVALID,
			"metadata.creationTimestamp of %s is not an RFC 3339 time", name);
	fixed->created_s = us / 1000000;
	fixed->generation = json_get_int(m, "generation", 0);
	fixed->deleting = json_get(m, "deletionTimestamp") != NULL;
	fixed->immutable = json_get_bool(o, "immutable", false);
	return 0;
}

/* The caller (a cache) keeps the placeholder so that the object still counts as existing: deleting
 * what belongs to it would be wrong. */
struct kobj *kobj_unreadable(size_t size, const char *name, const char *uid, const char *rv,
	bool deleting, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_free struct kobj *fixed = NULL;

	if (pack_ids(&pack, name, uid, rv, err) < 0)
		return NULL;
	fixed = xcalloc(1, size);
	fixed->deleting = deleting;
	fixed->unreadable = true;
	return kobj_pack_finish(&pack, fixed, size);
}

bool kobj_has_finalizer(struct json_object *o, const char *finalizer)
{
	struct json_object *a = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; i < json_len(a); i++)
		if (json_object_is_type(json_at(a, i), json_type_string) &&
			str_eq(json_object_get_string(json_at(a, i)), finalizer))
			return true;
	return false;
}

/* Keep the finalizers of other controllers: a merge patch replaces the whole list, so
 * kobj_finalizers() needs them. */
void kobj_pack_other_finalizers(
	struct kobj_pack *p, size_t field_offset, struct json_object *o, const char *ours)
{
	struct json_object *a = json_get_arr(o, "metadata/finalizers");
	cleanup_json struct json_object *others = json_arr();
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < json_len(a); i++) {
		const char *s = json_object_get_string(json_at(a, i));

		if (s && !str_eq(s, ours))
			json_push_str(others, s);
	}
	if (json_len(others) == 0)
		return;
	text = json_text(others);
	kobj_pack_str(p, field_offset, text);
}

struct json_object *kobj_finalizers(const char *others, const char *ours)
{
	/* Parsing cannot fail: kobj_pack_other_finalizers() made the text. */
	struct err ignored = ERR_INIT;
	struct json_object *a =
		others ? json_parse(others, strlen(others), &json_limits_object, &ignored) : NULL;

	if (!a)
		a = json_arr();
	return ours ? json_push_str(a, ours) : a;
}

/* Annotation names contain '/', so json_get() with a path cannot be used. A value with a NUL byte
 * counts as missing, because callers use it as a C string. */
const char *kobj_annotation(struct json_object *o, const char *name)
{
	struct json_object *a = json_get_obj(o, "metadata/annotations");
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(a, name, &v) || !json_object_is_type(v, json_type_string) ||
		strlen(json_object_get_string(v)) != (size_t)json_object_get_string_len(v))
		return NULL;
	return json_object_get_string(v);
}
