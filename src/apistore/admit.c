/* SPDX-License-Identifier: MIT */
/*
 * Validates objects before they are stored: custom kinds against their CRD schema, built-in kinds
 * against their types and immutable fields. Errors are found in kube-apiserver's order: decoding
 * and unknown fields first, then values.
 */
#include "config.h"

#include "tec/apistore/events.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd.h"

#include "decode.h"
#include "write.h"

/* Store an answer for the client and return -1, so that a check can end with one statement. */
static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

/* ---- reading */

/* Refuse an object that cannot be decoded, in kube-apiserver's words: the status and text differ
 * between a patched object and one that was sent whole. k may be NULL. */
static int refuse_object(const struct apistore_write *w, const struct schema_kind *k,
	const char *why, struct apistore_answer *refused)
{
	if (w->patched)
		return refuse(refused, apistore_change_invalid(why));
	if (!k)
		return refuse(refused, apistore_status_refusal(400, "BadRequest", "%s", why));
	return refuse(refused, apistore_status_refusal(400, "BadRequest",
				       "%s in version \"%s\" cannot be handled as a %s: %s",
				       k->kind, k->version, k->kind, why));
}

/* Report all unknown fields as one error, for a request with fieldValidation=Strict. */
static int refuse_fields(const struct apistore_write *w, const struct schema_kind *k,
	struct apistore_answer *refused)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	for (size_t i = 0; i < w->warnings->n; i++)
		strbuf_addf(
			&all, "%s%s", i ? ", " : "strict decoding error: ", w->warnings->text[i]);
	return refuse_object(w, k, strbuf_str(&all), refused);
}

/* Refuse a custom object with a number that no double can represent: it cannot be stored as
 * JSON. */
static int refuse_infinite(const struct apistore_write *w, const struct schema_kind *k,
	struct json_object *o, struct apistore_answer *refused)
{
	struct json_object *number = json_find_infinite(o);
	cleanup_free char *why = NULL;

	if (!number)
		return 0;
	why = xasprintf("the number %.40s is too large", json_object_get_string(number));
	return refuse_object(w, k, why, refused);
}

/* Check the types of a decoded body. Built-in kinds are decoded into Go structs by kube-apiserver,
 * so their unknown fields are reported here, before anything else; those of custom kinds are
 * reported when they are pruned, in apistore_admit_read. */
int apistore_admit_decode(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;
	bool built_in = k && !k->crd;

	if (built_in && !str_eq(json_get_str(o, "kind"), k->kind))
		return 0; /* the caller refuses the wrong kind */
	if (k && k->crd && refuse_infinite(w, k, o, refused) < 0)
		return -1;
	if (apistore_decode(k, o, &unknown, &err) < 0)
		return refuse_object(w, k, err.text, refused);
	for (size_t i = 0; i < unknown.n; i++)
		schema_texts_add(w->warnings, "unknown field \"%s\"", unknown.text[i]);
	if (built_in && w->fields == APISTORE_FIELDS_STRICT && w->warnings->n > 0)
		return refuse_fields(w, k, refused);
	return 0;
}

/* Apply what a read of the decoded object does: prune unknown fields of custom kinds, set defaults
 * of built-in kinds. */
int apistore_admit_read(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
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
	if (w->fields == APISTORE_FIELDS_STRICT && w->warnings->n > 0)
		return refuse_fields(w, k, refused);
	return 0;
}

/* ---- validation */

/* Validate the whole object and answer with all causes at once. Events of events.k8s.io are core
 * Events in storage, so the Status names them without their group, as kube-apiserver does. */
int apistore_admit_check(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	struct apistore_target named = *w->t;

	apistore_meta_check(w, k, o, &causes);
	if (k && k->crd)
		schema_validate(k->crd->schema, o, w->was, str_eq(w->t->sub, "status"), &causes,
			w->fields == APISTORE_FIELDS_IGNORE ? NULL : w->warnings);
	else if (k)
		schema_builtin_check(k, w->was, o, &causes);
	if (apistore_events_renames(w->t->group))
		named.group = (char *)""; /* borrowed for the call */
	return causes.n == 0 ? 0
			     : refuse(refused, apistore_status_causes(
						       &named, json_get_str(o, "kind"), &causes));
}
