/* SPDX-License-Identifier: MIT */
/*
 * The row of an Event, of core/v1 and of events.k8s.io/v1: the second has other names for the same,
 * and an Event that was made with one is shown by the other as well.
 */
#include "config.h"

#include "table_internal.h"

#include <ctype.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

static void push_event_time(struct table_row *r, const char *path, const char *older)
{
	table_age(r, table_seconds(json_get_str(r->o, path)) >= 0 ? path : older);
}

/* Of both groups: events.k8s.io has other names for the same. */
static const char *event_first(struct json_object *o, const char *a, const char *b)
{
	const char *s = json_get_str(o, a);

	return s && *s ? s : json_get_str(o, b);
}

static void push_event_object(struct table_row *r)
{
	const char *kind = event_first(r->o, "involvedObject/kind", "regarding/kind"),
		   *name = event_first(r->o, "involvedObject/name", "regarding/name");
	char *text =
		xasprintf("%s%s%s", kind ? kind : "", name && *name ? "/" : "", name ? name : "");

	for (char *p = text; *p && *p != '/'; p++)
		*p = (char)tolower((unsigned char)*p);
	table_take(r, text);
}

static char *trim(const char *s)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t len;

	s = s ? s + strspn(s, blanks) : "";
	for (len = strlen(s); len && strchr(blanks, s[len - 1]); len--)
		;
	return xstrndup(s, len);
}

void table_fill_event(struct table_row *r)
{
	bool old = json_get(r->o, "firstTimestamp") != NULL;
	const char *first = old ? "firstTimestamp" : "deprecatedFirstTimestamp",
		   *last = json_get(r->o, "lastTimestamp") ? "lastTimestamp"
							   : "deprecatedLastTimestamp",
		   *source = event_first(r->o, "source/component", "reportingComponent"),
		   *host = event_first(r->o, "source/host", "reportingInstance"),
		   *message = event_first(r->o, "message", "note");
	int64_t count = json_get_int(r->o, "count", json_get_int(r->o, "deprecatedCount", 0));
	cleanup_free char *trimmed = trim(message);
	const char *begin = table_seconds(json_get_str(r->o, first)) >= 0 ? first : "eventTime";

	source = source && *source
			 ? source
			 : event_first(r->o, "deprecatedSource/component", "reportingController");
	host = host && *host ? host : json_get_str(r->o, "deprecatedSource/host");
	if (json_get_obj(r->o, "series")) {
		table_age(r, "series/lastObservedTime");
		count = json_get_int(r->o, "series/count", 0);
	} else
		push_event_time(r, last, begin);
	table_member(r, "type", "");
	table_member(r, "reason", "");
	push_event_object(r);
	table_text(r, event_first(r->o, "involvedObject/fieldPath", "regarding/fieldPath"));
	table_take(r, xasprintf("%s%s%s", source ? source : "", host && *host ? ", " : "",
			      host ? host : ""));
	table_text(r, trimmed);
	table_age(r, begin);
	/* A column of texts with a number in it, as kube-apiserver's. */
	table_int(r, count ? count : 1);
	table_member(r, "metadata/name", "");
}
