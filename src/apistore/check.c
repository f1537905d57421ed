/* SPDX-License-Identifier: MIT */
/* In the order in which kube-apiserver finds what is wrong: types, names, namespace, the rest. */
#include "config.h"

#include "write.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define ENDING "create not allowed while custom resource definition is terminating"

static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

/* ---- types */

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

/* The first member of metadata whose type is not the one of ObjectMeta; NULL: all are right. */
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

/* The first finalizer of o that is missing in was; NULL: none. */
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

/* ---- places */

static bool look_at_phase(void *arg, const struct apistore_version *v)
{
	*(bool *)arg = strstr(v->meta, "\"Terminating\"") != NULL;
	return false;
}

/* Nothing new is made in a namespace that is not there, or not for long. */
static int check_namespace(const struct apistore_write *w, struct apistore_answer *refused)
{
	const struct apistore_key key = {"namespaces", "", w->key.ns};
	struct apistore_target ns = {
		.group = (char *)"", .resource = (char *)"namespaces", .name = (char *)w->key.ns};
	struct err err = ERR_INIT;
	bool ending = false;
	int rc;

	if (!w->s->schema->namespaces || w->was || !w->key.ns[0])
		return 0;
	rc = apistore_db_get(w->s->db, &key, 0, look_at_phase, &ending, &err);
	if (rc > 0 && !ending)
		return 0;
	if (rc < 0) {
		(void)apistore_objects_failed(w->s, &err);
		*refused = apistore_status_storage(&err);
	} else if (rc == 0) {
		*refused = apistore_status_absent(&ns);
	} else {
		*refused = apistore_status_terminating(w->t, w->key.ns);
	}
	return -1;
}

static struct apistore_answer not_its_type(const struct apistore_write *w, const char *what)
{
	cleanup_free char *why = xasprintf("%s is missing or not of its type", what);

	return w->patched ? apistore_change_invalid(why)
			  : apistore_status_refusal(400, "BadRequest", "%s", why);
}

/* What every object must be, whatever its kind. */
int apistore_check_object(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *bad = bad_meta(o),
		   *ns = json_get_str(o, "metadata/namespace");

	if (w->kind->ending && !w->was)
		return refuse(refused, apistore_status_forbidden(w->t, ENDING));
	if (bad || !kind || !json_get_str(o, "apiVersion"))
		return refuse(refused, not_its_type(w, bad ? bad : "kind or apiVersion"));
	if (ns && *ns && !str_eq(ns, w->key.ns))
		return refuse(refused,
			apistore_status_refusal(400, "BadRequest",
				"the namespace of the provided object does not match the namespace sent on the request"));
	if (w->was && (!apistore_objects_same_member(w->was, o, "kind") ||
			      !apistore_objects_same_member(w->was, o, "apiVersion"))) {
		cleanup_free char *why = xasprintf("\"%s\": must be %s of %s", kind,
			json_get_str(w->was, "kind"), json_get_str(w->was, "apiVersion"));

		return refuse(
			refused, apistore_status_invalid(w->t, kind, "kind", "Invalid value", why));
	}
	return 0;
}

static int check_owners(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *added = NULL;
	cleanup_free char *why = NULL;

	if (controllers(o) > 1)
		return refuse(
			refused, apistore_status_invalid(w->t, kind, "metadata.ownerReferences",
					 "Invalid value",
					 "Only one reference can have Controller set to true"));
	if (w->was && json_get(w->was, "metadata/deletionTimestamp"))
		added = new_finalizer(w->was, o);
	if (!added)
		return 0;
	why = xasprintf(
		"no new finalizers can be added if the object is being deleted, found new finalizers []string{\"%s\"}",
		added);
	return refuse(refused,
		apistore_status_invalid(w->t, kind, "metadata.finalizers", "Forbidden", why));
}

int apistore_check_meta(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	return check_namespace(w, refused) < 0 ? -1 : check_owners(w, o, refused);
}
