/* SPDX-License-Identifier: MIT */
/*
 * Validates objects before they are stored: custom kinds against their CRD schema, built-in kinds
 * against their types and immutable fields. Errors are found in kube-apiserver's order: types,
 * decoding and unknown fields, names and namespace, then values.
 */
#include "config.h"

#include "admit.h"

#include "tec/apistore/events.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd.h"

#include "decode.h"
#include "meta.h"
#include "rules.h"

/* Store an answer for the client and return -1, so that a check can end with one statement. */
static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

/* The message does not quote the whole object, unlike kube-apiserver's: it may be a Secret. */
struct apistore_answer apistore_admit_invalid(const char *why)
{
	static const struct apistore_target none = {.group = (char *)"", .name = (char *)""};

	return apistore_status_invalid(&none, "", "patch", "Invalid value", why);
}

/* The text is wiped, as it may be that of a Secret. */
bool apistore_admit_exists(struct apistore_objects *s, const struct apistore_key *key)
{
	size_t len = 0;
	char *text = apistore_objects_text(s, key, &len);

	file_wipe(text, len);
	return text != NULL;
}

/* ---- type */

/* Check the type of a new built-in object. A missing kind or apiVersion is accepted: kube-apiserver
 * fills it in from the URL. The end of the message is ours: that of kube-apiserver names Go
 * types. */
static int check_builtin_type(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *must = w->kind->schema->kind, *slash = have ? strrchr(have, '/') : NULL;
	cleanup_free char *gv =
		xasprintf("%s%s%s", w->t->group, w->t->group[0] ? "/" : "", w->t->version);

	if ((!kind || str_eq(kind, must)) && (!have || str_eq(have, gv)))
		return 0;
	return refuse(refused,
		apistore_status_refusal(400,
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
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *rv = json_get_str(o, "metadata/resourceVersion"), *must = w->kind->schema->kind;
	cleanup_free char *gv = xasprintf("%s/%s", w->t->group, w->t->version), *why = NULL;

	if (have && !str_eq(have, gv))
		return refuse(refused,
			apistore_status_refusal(400,
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

int apistore_admit_type(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;

	if (!k)
		return 0;
	if (k->crd)
		return check_custom_type(w, o, refused);
	return w->was ? 0 : check_builtin_type(w, o, refused);
}

/* ---- reading */

/* Refuse an object that cannot be decoded, in kube-apiserver's words: the status and text differ
 * between a patched object and one that was sent whole. */
static int refuse_object(
	const struct apistore_admit *w, const char *why, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;

	if (w->patched)
		return refuse(refused, apistore_admit_invalid(why));
	if (!k)
		return refuse(refused, apistore_status_refusal(400, "%s", why));
	return refuse(refused,
		apistore_status_refusal(400, "%s in version \"%s\" cannot be handled as a %s: %s",
			k->kind, k->version, k->kind, why));
}

int apistore_admit_strict(const struct apistore_admit *w, struct apistore_answer *refused)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	if (w->opt.fields != APISTORE_FIELDS_STRICT || w->warnings->n == 0)
		return 0;
	for (size_t i = 0; i < w->warnings->n; i++)
		strbuf_addf(
			&all, "%s%s", i ? ", " : "strict decoding error: ", w->warnings->text[i]);
	return refuse_object(w, strbuf_str(&all), refused);
}

/* Refuse a custom object with a number that no double can represent: it cannot be stored as
 * JSON. */
static int refuse_infinite(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	struct json_object *number = json_find_infinite(o);
	cleanup_free char *why = NULL;

	if (!number)
		return 0;
	why = xasprintf("the number %.40s is too large", json_object_get_string(number));
	return refuse_object(w, why, refused);
}

/* Check the types of a decoded body. Built-in kinds are decoded into Go structs by kube-apiserver,
 * so their unknown fields are reported here, before anything else; those of custom kinds are
 * reported when they are pruned. */
int apistore_admit_decode(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;
	bool built_in = k && !k->crd;

	if (built_in && !str_eq(json_get_str(o, "kind"), k->kind))
		return 0; /* the caller refuses the wrong kind */
	if (k && k->crd && refuse_infinite(w, o, refused) < 0)
		return -1;
	if (apistore_decode(k, o, &unknown, &err) < 0)
		return refuse_object(w, err.text, refused);
	for (size_t i = 0; i < unknown.n; i++)
		schema_texts_add(w->warnings, "unknown field \"%s\"", unknown.text[i]);
	return built_in ? apistore_admit_strict(w, refused) : 0;
}

/* ---- identity */

/* Refuse an object without a type. */
static int check_has_type(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	static const char why[] = "kind and apiVersion are required and must be strings";

	if (json_get_str(o, "kind") && json_get_str(o, "apiVersion"))
		return 0;
	return refuse(refused,
		w->patched ? apistore_admit_invalid(why) : apistore_status_refusal(400, "%s", why));
}

/* Check that an object is in the namespace of the request, and has the type of the one it replaces. */
static int check_same(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *ns = json_get_str(o, "metadata/namespace");

	if (ns && *ns && w->key.ns[0] && !str_eq(ns, w->key.ns))
		return refuse(refused,
			apistore_status_refusal(400,
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

/* Apply what a read of the decoded object does: prune unknown fields of custom kinds, set defaults
 * of built-in kinds. */
static int read_fields(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};

	if (!k)
		return 0;
	if (k->crd)
		schema_prune(k->crd->schema, o, &unknown);
	else
		schema_builtin_default(k, o);
	for (size_t i = 0; i < unknown.n; i++)
		schema_texts_add(w->warnings, "unknown field \"%s\"", unknown.text[i]);
	return apistore_admit_strict(w, refused);
}

int apistore_admit_body(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	return apistore_admit_decode(w, o, refused) < 0 || check_has_type(w, o, refused) < 0 ||
			       check_same(w, o, refused) < 0 || read_fields(w, o, refused) < 0
		       ? -1
		       : 0;
}

/* ---- validation */

/* Refuse to create an object in a namespace that does not exist. */
static int check_namespace(const struct apistore_admit *w, struct apistore_answer *refused)
{
	const struct apistore_key key = {"namespaces", "", w->key.ns};
	const struct apistore_target ns = {
		.group = (char *)"", .resource = (char *)"namespaces", .name = (char *)w->key.ns};

	if (!apistore_objects_schema(w->s)->namespaces || w->was || !w->key.ns[0] ||
		apistore_admit_exists(w->s, &key))
		return 0;
	return refuse(refused, apistore_status_absent(&ns));
}

/* Validate the whole object and answer with all causes at once. Events of events.k8s.io are core
 * Events in storage, so the Status names them without their group, as kube-apiserver does. */
int apistore_admit_object(
	const struct apistore_admit *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	struct apistore_target named = *w->t;

	if (check_namespace(w, refused) < 0 || apistore_rules(w->t, o, w->was, refused) < 0)
		return -1;
	apistore_meta_check(k, w->t->name, w->was, o, &causes);
	if (k && k->crd)
		schema_validate(k->crd->schema, o, w->was, str_eq(w->t->sub, "status"), &causes,
			w->opt.fields == APISTORE_FIELDS_IGNORE ? NULL : w->warnings);
	else if (k)
		schema_builtin_check(k, w->was, o, &causes);
	if (apistore_events_renames(w->t->group))
		named.group = (char *)""; /* borrowed for the call */
	return causes.n == 0 ? 0
			     : refuse(refused, apistore_status_causes(
						       &named, json_get_str(o, "kind"), &causes));
}
