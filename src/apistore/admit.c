/* SPDX-License-Identifier: MIT */
/*
 * Our kinds by their schemas, built-in kinds by what may not change.
 * The order is kube-apiserver's: what is wrong with fields is found before anything else is.
 */
#include "config.h"

#include "tec/apistore/events.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd.h"

#include "decode.h"
#include "write.h"

static int refuse(struct apistore_answer *refused, struct apistore_answer a)
{
	*refused = a;
	return -1;
}

/* ---- reading */

/* k may be NULL. */
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

static int refuse_fields(const struct apistore_write *w, const struct schema_kind *k,
	struct apistore_answer *refused)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	for (size_t i = 0; i < w->warnings->n; i++)
		strbuf_addf(
			&all, "%s%s", i ? ", " : "strict decoding error: ", w->warnings->text[i]);
	return refuse_object(w, k, strbuf_str(&all), refused);
}

/* A number that no double holds. */
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

int apistore_admit_decode(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;
	bool built_in = k && !k->crd;

	if (built_in && !str_eq(json_get_str(o, "kind"), k->kind))
		return 0; /* refused for that */
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

/* ---- all */

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
