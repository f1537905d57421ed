/* SPDX-License-Identifier: MIT */
/* Table rows are converted one by one, so a long table needs no more memory than a long list. */
#include "config.h"

#include "tec/apistore/form.h"

#include <string.h>

#include "tec/apistore/events.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"

/* Limits for texts from the store; wider than those for bodies of clients. */
static const struct json_limits limits = {16u << 20, 256, 1u << 22, true};

static void add_text(struct body *out, const char *text)
{
	body_add(out, text, strlen(text), 0);
}

static void add_json(struct body *out, struct json_object *o)
{
	cleanup_free char *text = json_text(o);

	add_text(out, text);
	secret_wipe(text, strlen(text)); /* a row may hold a whole Secret */
}

/* Is the text of an object sent as it is stored? */
static bool is_plain(const struct apistore_form *f, const struct schema_kind *k)
{
	return !k || f->shape == APISTORE_SHAPE_OBJECT;
}

static const char *version_of(const struct apistore_form *f)
{
	return f->beta ? "v1beta1" : "v1";
}

/* Convert an object to a table with a single row; o NULL gives only the columns. */
static struct json_object *table_of(const struct apistore_form *f, const struct schema_kind *k,
	struct json_object *o, bool headers)
{
	const struct schema_table t = {k, version_of(f), f->include, !headers, clock_wall_s()};

	return schema_table_new(&t, o);
}

/* A text that is sent as stored, or cannot be parsed, is copied unchanged. */
void apistore_form_object(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, bool headers, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		is_plain(f, k) ? NULL : json_parse(text, len, &limits, &err);
	cleanup_json struct json_object *shown = NULL;

	if (!o) {
		body_add(out, text, len, 0);
		return;
	}
	if (f->shape == APISTORE_SHAPE_TABLE) {
		shown = table_of(f, k, o, headers);
		json_add_str(json_get(shown, "metadata"), "resourceVersion",
			json_get_str(o, "metadata/resourceVersion"));
	} else {
		shown = schema_partial_metadata(o, version_of(f));
	}
	add_json(out, shown);
	json_wipe(o);
}

/* Items of a list have no kind and apiVersion, as those of every built-in kind. */
void apistore_form_event(const char *text, size_t len, bool item, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(text, len, &limits, &err);

	apistore_events_from_core(o);
	if (o && item) {
		json_drop(o, "kind");
		json_drop(o, "apiVersion");
	}
	if (o)
		add_json(out, o);
	else
		add_text(out, "null");
}

/* An item that cannot be parsed becomes null, which keeps the list valid JSON. */
void apistore_form_item(const struct apistore_form *f, const struct schema_kind *k,
	const char *text, size_t len, struct body *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = json_parse(text, len, &limits, &err), *shown = NULL;

	if (!o) {
		add_text(out, "null");
		return;
	}
	if (f->shape == APISTORE_SHAPE_TABLE) {
		shown = table_of(f, k, o, false);
		add_json(out, json_at(json_get_arr(shown, "rows"), 0));
	} else {
		shown = schema_partial_metadata(o, version_of(f));
		add_json(out, shown);
	}
	json_wipe(o);
}

/* The head of a table includes its columns, which come from the kind and need no row. */
void apistore_form_head(const struct apistore_form *f, const struct schema_kind *k,
	const char *metadata, struct body *out)
{
	bool table = f->shape == APISTORE_SHAPE_TABLE;
	cleanup_free char *head =
		xasprintf("{\"kind\":\"%s\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{%s}",
			table ? "Table" : "PartialObjectMetadataList", version_of(f), metadata);

	add_text(out, head);
	if (table) {
		cleanup_json struct json_object *t = table_of(f, k, NULL, true);

		add_text(out, ",\"columnDefinitions\":");
		add_json(out, json_get(t, "columnDefinitions"));
	}
	add_text(out, table ? ",\"rows\":[" : ",\"items\":[");
}
