/* SPDX-License-Identifier: MIT */
/*
 * Events. core/v1 accepts nearly everything, as it always did. events.k8s.io/v1 has rules for new
 * objects, and only metadata and series may change later. Causes name the fields of core/v1,
 * because kube-apiserver validates the converted object.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "builtin_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define SHORT_MAX 128
#define NOTE_MAX  1024

/* Bytes, not characters: kube-apiserver uses len() here. */
static void at_most(
	struct look *l, struct json_object *o, const char *member, const char *field, size_t max)
{
	const char *text = json_get_str(o, member);
	cleanup_free char *why = xasprintf("must have at most %zu bytes", max);

	if (text && strlen(text) > max)
		look_at(l, field, SCHEMA_INVALID, NULL, why);
}

/* Check for a qualified name such as "a" or "example.io/a": an optional DNS prefix, then letters,
 * digits and "-_." with a letter or digit at both ends. */
static bool is_qualified(const char *s)
{
	const char *slash = strchr(s, '/'), *part = slash ? slash + 1 : s;
	size_t n = strlen(part);

	if (slash && !kobj_name_valid(s, (size_t)(slash - s)))
		return false;
	if (n == 0 || n > 63 || !isalnum((unsigned char)part[0]) ||
		!isalnum((unsigned char)part[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)part[i]) && !strchr("-_.", part[i]))
			return false;
	return true;
}

/* An Event about a cluster-scoped object has no namespace to match: it must be in "default", or in
 * kube-system for the newer form. */
static void check_namespace(struct look *l, struct json_object *o, const char *of, bool timed)
{
	const char *ns = json_get_str(o, "metadata/namespace");
	bool none = !ns || !*ns || str_eq(ns, "default") || (timed && str_eq(ns, "kube-system"));

	if (of && *of ? !timed && !str_eq(ns, of) : !none)
		look_at(l, "involvedObject.namespace", SCHEMA_INVALID, NULL,
			"must be the namespace of the Event");
}

/* Check an Event that has an eventTime. controller: name of the member and of the field in
 * causes. */
static void check_timed(
	struct look *l, struct json_object *o, const char *controller, const char *note)
{
	static const char *const members[] = {"reportingInstance", "action", "reason"};
	const char *name = json_get_str(o, controller);

	look_needs(l, o, controller);
	if (name && *name && !is_qualified(name))
		look_at(l, controller, SCHEMA_INVALID, json_get(o, controller),
			"must be a qualified name such as example.com/name");
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		look_needs(l, o, members[i]);
		at_most(l, o, members[i], members[i], SHORT_MAX);
	}
	at_most(l, o, note, "message", NOTE_MAX);
}

/* The newer rules apply to every Event with an eventTime, also to those of core/v1. */
void look_event(struct look *l, struct json_object *o)
{
	bool timed = !look_empty(json_get(o, "eventTime"));

	check_namespace(l, o, json_get_str(o, "involvedObject/namespace"), timed);
	if (timed)
		check_timed(l, o, "reportingComponent", "message");
}

void look_new_event(struct look *l, struct json_object *o)
{
	bool timed = !look_empty(json_get(o, "eventTime"));

	check_namespace(l, o, json_get_str(o, "regarding/namespace"), timed);
	if (timed)
		check_timed(l, o, "reportingController", "note");
}

/* A series begins with its second occurrence. */
static void check_series(struct look *l, struct json_object *o)
{
	struct json_object *series = json_get_obj(o, "series");

	if (!series)
		return;
	if (json_get_int(series, "count", 0) < 2)
		look_at(l, "series.count", SCHEMA_INVALID, NULL, "must be at least 2");
	if (look_empty(json_get(series, "lastObservedTime")))
		look_at(l, "series.lastObservedTime", SCHEMA_REQUIRED, NULL, "");
}

/* The deprecated members must be unset in a new Event, except deprecatedCount, for which 0 is
 * allowed. */
void look_event_made(struct look *l, struct json_object *o)
{
	static const char *const unset[][2] = {{"deprecatedFirstTimestamp", "firstTimestamp"},
		{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
		{"deprecatedSource", "source"}};
	const char *type = json_get_str(o, "type");

	check_series(l, o);
	look_needs(l, o, "eventTime");
	if (!str_eq(type, "Normal") && !str_eq(type, "Warning"))
		look_at(l, "type", SCHEMA_INVALID, json_get(o, "type"),
			"must be Normal or Warning");
	for (size_t i = 0; i < ARRAY_LEN(unset); i++)
		if (!look_empty(json_get(o, unset[i][0])) &&
			!(str_eq(unset[i][1], "count") && json_get_int(o, unset[i][0], 0) == 0))
			look_at(l, unset[i][1], SCHEMA_INVALID, NULL, "must be unset");
}

/* ---- what may not change */

/* The member, and the field of core/v1 that causes name. */
/* Everything but metadata and series. */
static const char *const fixed[][2] = {{"regarding", "involvedObject"}, {"reason", "reason"},
	{"note", "message"}, {"deprecatedSource", "source"},
	{"deprecatedFirstTimestamp", "firstTimestamp"},
	{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
	{"type", "type"}, {"eventTime", "eventTime"}, {"action", "action"}, {"related", "related"},
	{"reportingController", "reportingController"}, {"reportingInstance", "reportingInstance"}};

/* Absent and empty are equal, as in Go's types. A series is checked only when it changed. */
void look_event_changed(struct look *l, struct json_object *old, struct json_object *o)
{
	if (!json_object_equal(json_get(old, "series"), json_get(o, "series")))
		check_series(l, o);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		struct json_object *a = json_get(old, fixed[i][0]), *b = json_get(o, fixed[i][0]);

		if (!json_object_equal(a, b) && !(look_empty(a) && look_empty(b)))
			look_at(l, fixed[i][1], SCHEMA_INVALID, b, "field is immutable");
	}
}
