/* SPDX-License-Identifier: MIT */
/* Table rows are converted one by one, so a long table needs no more memory than a long list. */
#include "config.h"

#include "tec/apireq/representation.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

/* Limits for texts from the store; wider than those for bodies of clients. */
static const struct json_limits limits = {16u << 20, 256, 1u << 22, true};

#define EVENTS_GROUP "events.k8s.io"

/* The names in core/v1 and in events.k8s.io/v1. */
static const char *const names[][2] = {{"involvedObject", "regarding"}, {"message", "note"},
	{"reportingComponent", "reportingController"}, {"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"count", "deprecatedCount"}};

bool apireq_representation_renames(const char *group)
{
	return str_eq(group, EVENTS_GROUP);
}

void apireq_representation_rename(struct json_object *o, bool to_core)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(o, json_type_object))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *from = names[i][to_core], *to = names[i][!to_core];

		if (json_object_object_get_ex(o, from, &v)) {
			json_add(o, to, json_object_get(v));
			json_drop(o, from);
		}
	}
	json_add_str(o, "apiVersion", to_core ? "v1" : EVENTS_GROUP "/v1");
}

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

static const char *version_of(const struct apireq_representation *f)
{
	return f->beta ? "v1beta1" : "v1";
}

/* Convert an object to a table with a single row; o NULL gives only the columns. */
static struct json_object *table_of(const struct apireq_representation *f,
	const struct schema_kind *k, struct json_object *o, bool headers)
{
	const struct schema_table t = {k, version_of(f), f->include, !headers, clock_wall_s()};

	return schema_table_new(&t, o);
}

/* A text that cannot be parsed is copied unchanged; as an item it becomes null, which keeps the list
 * valid JSON. Items of a list have no kind and apiVersion, as those of every built-in kind. */
bool apireq_representation_add(const struct apireq_representation *f, const struct schema_kind *k,
	enum apireq_representation_part part, const char *group, const char *text, size_t len,
	struct body *out)
{
	bool table = f->shape == APIREQ_SHAPE_TABLE, item = part == APIREQ_REPRESENTATION_ITEM,
	     converts = k && f->shape != APIREQ_SHAPE_OBJECT;
	cleanup_json struct json_object *o = NULL, *shown = NULL;
	struct err err = ERR_INIT;

	if (!converts && !apireq_representation_renames(group))
		return false;
	o = json_parse(text, len, &limits, &err);
	if (!o) {
		body_add(out, item || !converts ? "null" : text, item || !converts ? 4 : len, 0);
		return true;
	}
	if (!converts) {
		apireq_representation_rename(o, false);
		if (item) {
			json_drop(o, "kind");
			json_drop(o, "apiVersion");
		}
		add_json(out, o);
		return true;
	}
	shown = table ? table_of(f, k, o, part == APIREQ_REPRESENTATION_FIRST)
		      : schema_partial_metadata(o, version_of(f));
	if (table && !item)
		json_add_str(json_get(shown, "metadata"), "resourceVersion",
			json_get_str(o, "metadata/resourceVersion"));
	add_json(out, table && item ? json_at(json_get_arr(shown, "rows"), 0) : shown);
	json_wipe(o);
	return true;
}

/* The head of a table includes its columns, which come from the kind and need no row. */
void apireq_representation_head(const struct apireq_representation *f, const struct schema_kind *k,
	const char *metadata, struct body *out)
{
	bool table = f->shape == APIREQ_SHAPE_TABLE;
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
