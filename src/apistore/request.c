/* SPDX-License-Identifier: MIT */
/*
 * Reads, then the four writes that carry an object. Each of these makes the object that would be
 * stored and hands it to store(), which keeps what only the server decides and refuses the rest.
 */
#include "config.h"

#include "tec/apistore/request.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/apistore/apply.h"
#include "tec/apistore/gc.h"
#include "tec/apistore/patch.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#include "apistore_internal.h"

#define ANY_RESOURCE "the server could not find the requested resource"

/* One write under way; old: the object there, NULL without one. */
struct write {
	struct apistore_objects *s;
	const struct apistore_target *t;
	const struct apistore_kind *kind;
	struct apistore_object *old;
};

/* ---- reads */

static struct apistore_answer list(struct apistore_objects *s, const struct apistore_target *t)
{
	cleanup_free char *limit = apistore_target_param(t, "limit"),
			  *next = apistore_target_param(t, "continue");
	cleanup_json struct json_object *whole = json_obj();
	struct json_object *items = json_arr(), *m = json_obj();
	bool custom = apistore_objects_kind(s, t->collection)->custom;
	uint64_t rv = s->rv, max = 0, n = 0;
	char buf[64 + KOBJ_NAME_MAX], from[KOBJ_NAME_MAX + 1] = "";

	json_add(json_add_str(whole, "kind", "List"), "metadata", m);
	json_add(whole, "items", items);
	if (limit && str_to_u64(limit, INT64_MAX, &max) < 0)
		return apistore_status_refusal(400, "BadRequest", "limit is not a number");
	if (next && (sscanf(next, "v1+%" SCNu64 "+%253s", &rv, from) != 2 || rv < s->oldest_rv))
		return apistore_status_refusal(410, "Expired",
			"The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.");
	for (size_t i = apistore_objects_slot(s, t->collection, from);
		i < s->n && str_eq(s->sorted[i]->collection, t->collection); i++) {
		struct json_object *o = s->sorted[i]->o;

		if (str_eq(s->sorted[i]->name, from) || !apistore_target_selects(t, o))
			continue;
		if (max && n++ == max) {
			snprintf(buf, sizeof(buf), "v1+%" PRIu64 "+%s", rv, from);
			json_add_str(m, "continue", buf);
			break;
		}
		snprintf(from, sizeof(from), "%s", s->sorted[i]->name);
		o = custom ? json_object_get(o) : json_copy(o);
		if (!custom) { /* as built-in kinds come */
			json_object_object_del(o, "kind");
			json_object_object_del(o, "apiVersion");
		}
		json_push(items, o);
	}
	snprintf(buf, sizeof(buf), "%" PRIu64, rv);
	json_add_str(m, "resourceVersion", buf);
	return apistore_status_object(200, whole);
}

/* ---- what a write may make */

static bool all_strings(struct json_object *o, const char *path)
{
	struct json_object *m = json_get(o, path);

	if (!m)
		return true;
	if (!json_object_is_type(m, json_type_object))
		return false;
	json_object_object_foreach (m, name, value) {
		(void)name;
		if (!json_object_is_type(value, json_type_string))
			return false;
	}
	return true;
}

static bool all_of(struct json_object *o, const char *path, enum json_type type)
{
	struct json_object *a = json_get(o, path);

	if (a && !json_object_is_type(a, json_type_array))
		return false;
	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (!json_object_is_type(json_object_array_get_idx(a, i), type))
			return false;
	return true;
}

/* The member of metadata that has another type than ObjectMeta says; NULL: none. */
static const char *bad_meta(struct json_object *o)
{
	struct json_object *m = NULL;

	if (json_object_object_get_ex(o, "metadata", &m) &&
		!json_object_is_type(m, json_type_object))
		return "metadata";
	if (!all_strings(o, "metadata/labels"))
		return "metadata.labels";
	if (!all_strings(o, "metadata/annotations"))
		return "metadata.annotations";
	if (!all_of(o, "metadata/finalizers", json_type_string))
		return "metadata.finalizers";
	if (!all_of(o, "metadata/ownerReferences", json_type_object))
		return "metadata.ownerReferences";
	return NULL;
}

static size_t controllers(struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/ownerReferences");
	size_t n = 0;

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		n += json_get_bool(json_object_array_get_idx(a, i), "controller", false);
	return n;
}

/* The first finalizer of o that was has not; NULL: none. */
static const char *new_finalizer(struct json_object *was, struct json_object *o)
{
	struct json_object *have = json_get_arr(was, "metadata/finalizers"),
			   *want = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; want && i < json_object_array_length(want); i++) {
		struct json_object *f = json_object_array_get_idx(want, i);
		size_t k = 0, n = have ? json_object_array_length(have) : 0;

		while (k < n && !json_object_equal(json_object_array_get_idx(have, k), f))
			k++;
		if (k == n)
			return json_object_get_string(f);
	}
	return NULL;
}

static void copy_member(struct json_object *o, struct json_object *from, const char *name)
{
	struct json_object *v = NULL;

	json_object_object_del(o, name);
	if (from && json_object_object_get_ex(from, name, &v))
		json_add(o, name, json_copy(v));
}

/* What only the server decides: as it was, or nothing yet (was NULL). */
static void keep_meta(struct json_object *o, struct json_object *was)
{
	static const char *const members[] = {"name", "namespace", "uid", "creationTimestamp",
		"deletionTimestamp", "generation", "resourceVersion"};
	struct json_object *m = apistore_objects_meta(o);

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		copy_member(m, was ? json_get(was, "metadata") : NULL, members[i]);
}

/* The end of every write that carries an object. */
static struct apistore_answer store(const struct write *w, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	struct json_object *was = w->old ? w->old->o : NULL;
	const char *kind = json_get_str(o, "kind"), *bad = bad_meta(o), *added;

	if (bad || !kind || !json_get_str(o, "apiVersion"))
		return apistore_status_refusal(400, "BadRequest",
			"%s is missing or not of its type", bad ? bad : "kind or apiVersion");
	if (was && (!apistore_objects_same_member(was, o, "kind") ||
			   !apistore_objects_same_member(was, o, "apiVersion")))
		return apistore_status_refusal(
			400, "BadRequest", "kind or apiVersion is not that of the resource");
	if (!kobj_name_valid(w->t->name, strlen(w->t->name)))
		return apistore_status_invalid(w->t, kind, "metadata.name", "Invalid value",
			"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'");
	keep_meta(o, was);
	if (w->kind->status && !w->t->sub[0])
		copy_member(o, was, "status");
	if (controllers(o) > 1)
		return apistore_status_invalid(w->t, kind, "metadata.ownerReferences",
			"Invalid value", "Only one reference can have Controller set to true");
	added = was && json_get(was, "metadata/deletionTimestamp") ? new_finalizer(was, o) : NULL;
	if (added) {
		cleanup_free char *why = xasprintf(
			"no new finalizers can be added if the object is being deleted, found new finalizers []string{\"%s\"}",
			added);

		return apistore_status_invalid(w->t, kind, "metadata.finalizers", "Forbidden", why);
	}
	if (was && json_get_bool(was, "immutable", false) &&
		(!apistore_objects_same_member(was, o, "data") ||
			!apistore_objects_same_member(was, o, "binaryData") ||
			!json_get_bool(o, "immutable", false)))
		return apistore_status_invalid(w->t, kind, "data", "Forbidden",
			"field is immutable when `immutable` is set");
	return apistore_status_object(w->old ? 200 : 201,
		apistore_objects_put(w->s, w->t->collection, w->t->name, steal_ptr(&o)));
}

/* ---- writes */

static struct apistore_answer create(const struct write *w, struct json_object *body)
{
	const char *name = json_get_str(body, "metadata/name");
	struct apistore_target named = *w->t;
	struct write here = {w->s, &named, w->kind, NULL};

	if (!name)
		return apistore_status_refusal(400, "BadRequest", "metadata.name is missing");
	named.name = (char *)name; /* borrowed for the call */
	if (apistore_objects_get(w->s, named.collection, name))
		return apistore_status_exists(&named);
	if (json_get(body, "metadata/resourceVersion"))
		return apistore_status_refusal(400, "BadRequest",
			"resourceVersion should not be set on objects to be created");
	return store(&here, json_copy(body));
}

static struct apistore_answer apply(const struct write *w, struct json_object *body)
{
	cleanup_json struct json_object *conf = json_copy(body);
	struct json_object *o = w->old ? json_copy(w->old->o) : json_obj(),
			   *m = json_get_obj(conf, "metadata");
	struct apistore_answer answer;
	struct apistore_object *there;
	struct err err = ERR_INIT;
	int part = w->t->sub[0] != '\0';

	if (part) { /* the subresource takes nothing else */
		json_object_put(conf);
		conf = json_obj();
		copy_member(conf, body, "status");
	} else if (m) {
		json_object_object_del(m, "resourceVersion");
		json_object_object_del(m, "uid");
	}
	if (apistore_apply(o, conf, w->old ? w->old->applied[part] : NULL, &w->s->schema->lists,
		    &err) < 0) {
		json_object_put(o);
		return apistore_status_refusal(400, "BadRequest", "%s", err.text);
	}
	answer = store(w, o);
	there = apistore_objects_find(w->s, w->t->collection, w->t->name);
	if (there && answer.code / 100 == 2) {
		json_object_put(there->applied[part]);
		there->applied[part] = steal_ptr(&conf);
	}
	return answer;
}

static struct apistore_answer patch(const struct write *w, struct json_object *body)
{
	struct json_object *o = json_copy(w->old->o);
	cleanup_json struct json_object *status = json_obj();

	if (w->t->sub[0]) {
		copy_member(status, body, "status");
		body = status;
	}
	apistore_patch_merge(o, body);
	return store(w, o);
}

static struct apistore_answer replace(const struct write *w, struct json_object *body)
{
	struct json_object *o = json_copy(w->t->sub[0] ? w->old->o : body);

	if (w->t->sub[0])
		copy_member(o, body, "status");
	return store(w, o);
}

/* NULL: resourceVersion and uid of the body, where they are given, are those of the object. The
 * caller frees. */
static char *precondition(const struct apistore_object *old, const char *rv, const char *uid)
{
	const char *have_uid = old ? json_get_str(old->o, "metadata/uid") : NULL;

	if (uid && !old)
		return xasprintf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found",
			uid);
	if (uid && !str_eq(uid, have_uid))
		return xasprintf(
			"Precondition failed: UID in precondition: %s, UID in object meta: %s", uid,
			have_uid);
	if (rv && (!old || !str_eq(rv, json_get_str(old->o, "metadata/resourceVersion"))))
		return xstrdup(
			"the object has been modified; please apply your changes to the latest version and try again");
	return NULL;
}

static bool is_type(const struct apistore_request *r, const char *type)
{
	const char *have = r->content_type ? r->content_type : "application/json";

	return strlen(type) == strcspn(have, ";") && strncmp(have, type, strlen(type)) == 0;
}

static struct apistore_answer change(
	const struct write *w, const struct apistore_request *r, struct json_object *body)
{
	const char *name = json_get_str(body, "metadata/name");
	bool is_put = str_eq(r->method, "PUT"),
	     is_apply = !is_put && is_type(r, "application/apply-patch+yaml");
	cleanup_free char *manager = apistore_target_param(w->t, "fieldManager"), *why = NULL;

	if (!is_put && !is_apply && !is_type(r, "application/merge-patch+json"))
		return apistore_status_refusal(415, "UnsupportedMediaType",
			"the body of the request was in an unknown format - accepted media types include: application/merge-patch+json, application/apply-patch+yaml");
	if (name && !str_eq(name, w->t->name))
		return apistore_status_refusal(400, "BadRequest",
			"the name of the object (%s) does not match the name on the URL (%s)", name,
			w->t->name);
	if (is_apply && (!manager || !*manager || !json_get_str(body, "kind")))
		return apistore_status_refusal(
			400, "BadRequest", "an apply patch needs fieldManager and kind");
	if (!w->old && (!is_apply || w->t->sub[0]))
		return apistore_status_absent(w->t);
	why = precondition(w->old, json_get_str(body, "metadata/resourceVersion"),
		json_get_str(body, "metadata/uid"));
	if (why)
		return apistore_status_conflict(w->t, why);
	return is_put ? replace(w, body) : is_apply ? apply(w, body) : patch(w, body);
}

static struct apistore_answer delete (const struct write *w, struct json_object *body)
{
	cleanup_free char *why = NULL, *uid = NULL;
	cleanup_json struct json_object *o = NULL;

	if (!w->old)
		return apistore_status_absent(w->t);
	why = precondition(w->old, json_get_str(body, "preconditions/resourceVersion"),
		json_get_str(body, "preconditions/uid"));
	if (why)
		return apistore_status_conflict(w->t, why);
	o = apistore_gc_delete(w->s, w->t->collection, w->t->name);
	if (apistore_objects_get(w->s, w->t->collection, w->t->name))
		return apistore_status_object(200, o); /* finalizers hold it */
	return apistore_status_deleted(w->t, json_get_str(o, "metadata/uid"));
}

struct apistore_answer apistore_request(struct apistore_objects *s, const struct apistore_target *t,
	const struct apistore_request *r)
{
	cleanup_json struct json_object *body = NULL;
	struct err err = ERR_INIT;
	struct write w = {s, t, apistore_objects_kind(s, t->collection),
		apistore_objects_find(s, t->collection, t->name)};
	bool is_get = str_eq(r->method, "GET"), is_post = str_eq(r->method, "POST"),
	     is_delete = str_eq(r->method, "DELETE");

	if (t->sub[0] && (!str_eq(t->sub, "status") || !w.kind->status))
		return apistore_status_refusal(404, "NotFound", ANY_RESOURCE);
	if (is_get && !t->name[0])
		return list(s, t);
	if (is_get)
		return w.old ? apistore_status_object(200, w.old->o) : apistore_status_absent(t);
	if (is_post == (t->name[0] != '\0') ||
		(!is_post && !is_delete && !str_eq(r->method, "PUT") &&
			!str_eq(r->method, "PATCH")))
		return apistore_status_refusal(405, "MethodNotAllowed",
			"the server does not allow this method on the requested resource");
	if (r->len || !is_delete) {
		body = json_parse(r->body ? r->body : "", r->len, &json_limits_object, &err);
		if (!json_object_is_type(body, json_type_object))
			return apistore_status_refusal(400, "BadRequest",
				"the body is not a JSON object%s%s", *err.text ? ": " : "",
				err.text);
	}
	return is_post ? create(&w, body) : is_delete ? delete (&w, body) : change(&w, r, body);
}
