/* SPDX-License-Identifier: MIT */
/* Checks of an object against the request, in the order of kube-apiserver: types, names, namespace,
 * then the rest. The order decides which error a client sees when there are several. */
#include "config.h"

#include "write.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"

static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

/* ---- namespace */

/* A callback for a lookup that only asks whether the object exists. */
static bool ignore(void *arg, const struct apistore_version *v)
{
	return false;
}

/* Refuse to create an object in a namespace that does not exist. */
static int check_namespace(const struct apistore_write *w, struct apistore_answer *refused)
{
	const struct apistore_key key = {"namespaces", "", w->key.ns};
	struct apistore_target ns = {
		.group = (char *)"", .resource = (char *)"namespaces", .name = (char *)w->key.ns};
	struct err err = ERR_INIT;
	int rc;

	if (!apistore_objects_schema(w->s)->namespaces || w->was || !w->key.ns[0])
		return 0;
	rc = apistore_db_get(apistore_objects_db(w->s), &key, 0, ignore, NULL, &err);
	if (rc > 0)
		return 0;
	if (rc < 0) {
		(void)apistore_objects_failed(w->s, &err);
		*refused = apistore_status_storage(&err);
	} else {
		*refused = apistore_status_absent(&ns);
	}
	return -1;
}

static struct apistore_answer no_type(const struct apistore_write *w)
{
	static const char why[] = "kind and apiVersion are required and must be strings";

	return w->patched ? apistore_change_invalid(why)
			  : apistore_status_refusal(400, "BadRequest", "%s", why);
}

/* Check the type of a new built-in object. A missing kind or apiVersion is accepted: kube-apiserver
 * fills it in from the URL. The end of the message is ours: that of kube-apiserver names Go
 * types. */
static int check_builtin_type(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *must = w->kind->schema->kind, *slash = have ? strrchr(have, '/') : NULL;
	cleanup_free char *gv =
		xasprintf("%s%s%s", w->t->group, w->t->group[0] ? "/" : "", w->t->version);

	if ((!kind || str_eq(kind, must)) && (!have || str_eq(have, gv)))
		return 0;
	return refuse(refused,
		apistore_status_refusal(400, "BadRequest",
			"%s in version \"%s\" cannot be handled as a %s: kind and apiVersion name another kind",
			kind ? kind : must,
			slash  ? slash + 1
			: have ? have
			       : w->t->version,
			must));
}

/* Check the type of a custom object, and that a PUT names the version it replaces: an unconditional
 * update is not allowed for custom resources. */
static int check_custom_type(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *rv = json_get_str(o, "metadata/resourceVersion"), *must = w->kind->schema->kind;
	cleanup_free char *gv = xasprintf("%s/%s", w->t->group, w->t->version), *why = NULL;

	if (have && !str_eq(have, gv))
		return refuse(refused,
			apistore_status_refusal(400, "BadRequest",
				"the API version in the data (%s) does not match the expected API version (%s)",
				have, gv));
	if (!w->was && kind && !str_eq(kind, must)) {
		why = xasprintf("\"%s\": must be %s", kind, must);
		return refuse(
			refused, apistore_status_invalid(w->t, kind, "kind", "Invalid value", why));
	}
	if (w->was && json_get_str(o, "metadata/name") && (!rv || !*rv))
		return refuse(refused,
			apistore_status_invalid(w->t, w->t->resource, "metadata.resourceVersion",
				"Invalid value", "0: must be specified for an update"));
	return 0;
}

/* Check apiVersion and kind of a body against the URL. A PUT to a built-in kind skips this;
 * apistore_check_object compares it with the stored object. */
int apistore_check_version(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;

	if (!k)
		return 0;
	if (k->crd)
		return check_custom_type(w, o, refused);
	return w->was ? 0 : check_builtin_type(w, o, refused);
}

/* Check what holds for every kind: type, namespace, and that a replacement keeps both. */
int apistore_check_object(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *ns = json_get_str(o, "metadata/namespace");

	if (!kind || !json_get_str(o, "apiVersion"))
		return refuse(refused, no_type(w));
	if (ns && *ns && w->key.ns[0] && !str_eq(ns, w->key.ns))
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

int apistore_check_meta(const struct apistore_write *w, struct apistore_answer *refused)
{
	return check_namespace(w, refused);
}
