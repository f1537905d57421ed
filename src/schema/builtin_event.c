/* SPDX-License-Identifier: MIT */
/*
 * Events. core/v1 takes nearly everything, as it always did; events.k8s.io/v1 has rules for what is
 * new and lets nothing but metadata and series change. Causes name the fields as core/v1 does.
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
#define PART                                                                                       \
	"name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

static void at_most(
	struct look *l, struct json_object *o, const char *member, const char *field, size_t max)
{
	const char *text = json_get_str(o, member);
	cleanup_free char *why = xasprintf("can have at most %zu characters", max);

	if (text && strlen(text) > max)
		look_at_text(l, field, SCHEMA_INVALID, "", why);
}

/* "a", "example.io/a": letters, digits and "-_." between them. */
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

static void check_namespace(struct look *l, struct json_object *o, const char *of, bool timed)
{
	const char *ns = json_get_str(o, "metadata/namespace");
	bool none = !ns || !*ns || str_eq(ns, "default") || (timed && str_eq(ns, "kube-system"));

	if (of && *of ? !timed && !str_eq(ns, of) : !none)
		look_at_text(l, "involvedObject.namespace", SCHEMA_INVALID, of ? of : "",
			"does not match event.namespace");
}

/* controller: the name of the member and of the field. */
static void check_timed(
	struct look *l, struct json_object *o, const char *controller, const char *note)
{
	static const char *const members[] = {"reportingInstance", "action", "reason"};
	const char *name = json_get_str(o, controller);

	look_needs(l, o, controller);
	if (name && *name && !is_qualified(name))
		look_at(l, controller, SCHEMA_INVALID, json_get(o, controller), PART);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		look_needs(l, o, members[i]);
		at_most(l, o, members[i], members[i], SHORT_MAX);
	}
	at_most(l, o, note, "message", NOTE_MAX);
}

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

static void check_series(struct look *l, struct json_object *o)
{
	struct json_object *series = json_get_obj(o, "series");

	if (!series)
		return;
	if (json_get_int(series, "count", 0) < 2)
		look_at_text(l, "series.count", SCHEMA_INVALID, "", "should be at least 2");
	if (look_empty(json_get(series, "lastObservedTime")))
		look_at(l, "series.lastObservedTime", SCHEMA_REQUIRED, NULL, "");
}

void look_event_made(struct look *l, struct json_object *o)
{
	static const char *const unset[][2] = {{"deprecatedFirstTimestamp", "firstTimestamp"},
		{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
		{"deprecatedSource", "source"}};
	const char *type = json_get_str(o, "type");
	cleanup_free char *why = xasprintf("has invalid value: %s", type ? type : "");

	check_series(l, o);
	look_needs(l, o, "eventTime");
	if (!str_eq(type, "Normal") && !str_eq(type, "Warning"))
		look_at_text(l, "type", SCHEMA_INVALID, "", why);
	for (size_t i = 0; i < ARRAY_LEN(unset); i++)
		if (!look_empty(json_get(o, unset[i][0])) &&
			!(str_eq(unset[i][1], "count") && json_get_int(o, unset[i][0], 0) == 0))
			look_at_text(l, unset[i][1], SCHEMA_INVALID, "", "needs to be unset");
}

/* ---- what may not change */

/* An object is printed with the names that Go has for its members (in another order). */
static const char *const reference[][2] = {{"kind", "Kind"}, {"namespace", "Namespace"},
	{"name", "Name"}, {"uid", "UID"}, {"apiVersion", "APIVersion"},
	{"resourceVersion", "ResourceVersion"}, {"fieldPath", "FieldPath"}, {NULL, NULL}};
static const char *const source[][2] = {{"component", "Component"}, {"host", "Host"}, {NULL, NULL}};

static const struct fixed {
	const char *member, *field;
	const char *const (*names)[2]; /* NULL: it is no object */
} fixed[] = {{"regarding", "involvedObject", reference}, {"reason", "reason", NULL},
	{"note", "message", NULL}, {"deprecatedSource", "source", source},
	{"deprecatedFirstTimestamp", "firstTimestamp", NULL},
	{"deprecatedLastTimestamp", "lastTimestamp", NULL}, {"deprecatedCount", "count", NULL},
	{"type", "type", NULL}, {"eventTime", "eventTime", NULL}, {"action", "action", NULL},
	{"related", "related", reference}, {"reportingController", "reportingController", NULL},
	{"reportingInstance", "reportingInstance", NULL}};

static struct json_object *shown(const struct fixed *f, struct json_object *v)
{
	struct json_object *o;

	if (!f->names || !v)
		return json_object_get(v);
	o = json_obj();
	for (size_t i = 0; f->names[i][0]; i++) {
		const char *text = json_get_str(v, f->names[i][0]);

		json_add_str(o, f->names[i][1], text ? text : "");
	}
	return o;
}

void look_event_changed(struct look *l, struct json_object *old, struct json_object *o)
{
	if (!json_object_equal(json_get(old, "series"), json_get(o, "series")))
		check_series(l, o);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		struct json_object *a = json_get(old, fixed[i].member),
				   *b = json_get(o, fixed[i].member);
		cleanup_json struct json_object *value = NULL;

		if (json_object_equal(a, b) || (look_empty(a) && look_empty(b)))
			continue;
		value = shown(&fixed[i], b);
		look_at(l, fixed[i].field, SCHEMA_INVALID, value, "field is immutable");
	}
}
