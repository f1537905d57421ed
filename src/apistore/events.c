/* SPDX-License-Identifier: MIT */
/* Renames members by one table, which is read in both directions. */
#include "config.h"

#include "tec/apistore/events.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

/* The names in core/v1 and in events.k8s.io/v1. */
static const char *const names[][2] = {{"involvedObject", "regarding"}, {"message", "note"},
	{"reportingComponent", "reportingController"}, {"source", "deprecatedSource"},
	{"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"count", "deprecatedCount"}};

bool apistore_events_renames(const char *group)
{
	return str_eq(group, APISTORE_EVENTS_GROUP);
}

/* Rename the members of an Event from one column of the table to the other, and set its
 * apiVersion. */
static void rename_members(struct json_object *o, size_t from, size_t to, const char *version)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(o, json_type_object))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (json_object_object_get_ex(o, names[i][from], &v)) {
			json_add(o, names[i][to], json_object_get(v));
			json_drop(o, names[i][from]);
		}
	json_add_str(o, "apiVersion", version);
}

void apistore_events_to_core(struct json_object *o)
{
	rename_members(o, 1, 0, "v1");
}

void apistore_events_from_core(struct json_object *o)
{
	rename_members(o, 0, 1, APISTORE_EVENTS_GROUP "/v1");
}
