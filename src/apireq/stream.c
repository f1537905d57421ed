/* SPDX-License-Identifier: MIT */
/* Each event is converted as it is taken. */
#include "config.h"

#include "tec/apireq/stream.h"

#include <inttypes.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define MATCH   "resourceVersionMatch"
#define INITIAL "sendInitialEvents"

struct apireq_stream {
	struct store_objects *s;
	struct store_watch *w; /* owned; borrows from target */
	struct apireq_request_info target;
	bool told; /* the column definitions of a table were sent */
};

/* Read the options of a watch; out borrows from t. -1: *refused is set. Without a resourceVersion, or
 * with "0", a watch starts with the current objects unless the client declined initial events. */
static int read_options(struct store_objects *s, const struct apireq_request_info *t,
	struct store_watch_options *out, struct apireq_answer *refused)
{
	cleanup_free char *rv = apireq_request_info_param(t, "resourceVersion"),
			  *match = apireq_request_info_param(t, MATCH),
			  *initial = apireq_request_info_param(t, INITIAL);
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	bool send = apireq_request_info_flag(t, INITIAL);

	*out = (struct store_watch_options){.resource = t->qualified,
		.ns = t->ns[0] ? t->ns : NULL,
		.select = t->select,
		.bookmarks = apireq_request_info_flag(t, "allowWatchBookmarks")};
	if (rv && *rv && str_to_u64(rv, INT64_MAX, &out->at) < 0) {
		*refused = apireq_status_refusal(
			400, "Invalid value for resourceVersion: %s", log_esc(rv));
		return -1;
	}
	if (initial && !str_eq(match, "NotOlderThan"))
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, MATCH, NULL,
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (!initial && match && *match)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, MATCH, NULL,
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
	if (match && *match && !str_eq(match, "NotOlderThan"))
		schema_cause_add_text(&causes, SCHEMA_UNSUPPORTED, MATCH, match,
			"supported values: \"NotOlderThan\"");
	if (causes.n > 0) {
		*refused = apireq_status_causes(&apireq_status_options, "ListOptions", &causes);
		return -1;
	}
	if (send && out->at > store_objects_rv(s)) {
		*refused = apireq_status_too_large(out->at, store_objects_rv(s));
		return -1;
	}
	out->initial_bookmark = send && out->bookmarks;
	out->initial = send || (!initial && out->at == 0);
	if (initial && !send && out->at == 0)
		out->at = store_objects_rv(s);
	return 0;
}

/* Options are checked before the watch exists, so a refused one was never woken. */
struct apireq_stream *apireq_stream_new(struct store_objects *s, struct apireq_request_info *take_t,
	store_watch_fn ready, void *arg, struct apireq_answer *refused)
{
	struct apireq_stream *st = xcalloc(1, sizeof(*st));
	struct store_watch_options of;

	st->s = s;
	st->target = *take_t;
	*take_t = (struct apireq_request_info){0};
	if (read_options(s, &st->target, &of, refused) < 0) {
		apireq_stream_free(st);
		return NULL;
	}
	st->w = store_watch_new(s, &of, ready, arg);
	return st;
}

void apireq_stream_free(struct apireq_stream *st)
{
	if (!st)
		return;
	store_watch_free(st->w);
	apireq_request_info_fini(&st->target);
	free(st);
}

/* ---- lines */

/* Add one line: an event with the text of its object. */
static void add_event(struct body *out, const char *type, const char *object, size_t len)
{
	cleanup_free char *head = xasprintf("{\"type\":\"%s\",\"object\":", type);

	body_add(out, head, strlen(head), 0);
	body_add(out, object, len, 0);
	body_add(out, "}\n", 2, 0);
}

/* Add an event with its object in the form that the client asked for. */
static void add_shown(struct apireq_stream *st, struct body *out, const char *type,
	const char *object, size_t len)
{
	const struct apireq_request_info *t = &st->target;
	const struct schema_kind *k = store_objects_kind(st->s, t->group, t->resource)->schema;
	struct body shown = BODY_INIT;

	if (apireq_representation_add(&t->form, k,
		    st->told ? APIREQ_REPRESENTATION_NEXT : APIREQ_REPRESENTATION_FIRST, t->group,
		    object, len, &shown)) {
		st->told = true;
		add_event(out, type, shown.data, shown.len);
	} else {
		add_event(out, type, object, len);
	}
	body_fini(&shown);
}

struct take {
	struct apireq_stream *st;
	struct body *out;
	size_t end; /* the length of out at which to stop */
};

static bool add_change(void *arg, enum store_event type, const struct store_version *v)
{
	static const char *const names[] = {[STORE_ADDED] = "ADDED",
		[STORE_MODIFIED] = "MODIFIED",
		[STORE_DELETED] = "DELETED"};
	const struct take *t = arg;

	add_shown(t->st, t->out, names[type], v->body, v->len);
	return t->out->len < t->end;
}

/* Add a bookmark: an object with nothing but the position to resume from. */
static void add_bookmark(void *arg, uint64_t at, bool initial_end)
{
	const struct take *take = arg;
	const struct apireq_request_info *t = &take->st->target;
	const char *kind = store_objects_kind(take->st->s, t->group, t->resource)->kind;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	strbuf_addc(&b, '{');
	if (kind)
		strbuf_addf(&b, "\"kind\":\"%s\",\"apiVersion\":\"%s%s%s\",", kind, t->group,
			t->group[0] ? "/" : "", t->version);
	strbuf_addf(&b, "\"metadata\":{\"resourceVersion\":\"%" PRIu64 "\"", at);
	strbuf_adds(&b, ",\"creationTimestamp\":null");
	if (initial_end)
		strbuf_adds(&b, ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}");
	strbuf_adds(&b, "}}");
	add_shown(take->st, take->out, "BOOKMARK", b.data, b.len);
}

/* A watch that ends for a reason adds an ERROR event, the only way to report an error after the
 * 200. */
enum store_watch_next apireq_stream_take(struct apireq_stream *st, struct body *out, size_t max)
{
	struct take t = {st, out, out->len + max};
	const struct store_watch_sink to = {add_change, add_bookmark, &t};
	struct err err = ERR_INIT;
	enum store_watch_next next = store_watch_take(st->w, &to, &err);

	if (err_is_set(&err)) {
		struct apireq_answer a = err.kind == ERR_GONE
						 ? apireq_status_refusal(410, "%s", err.text)
						 : apireq_status_storage(&err);

		add_event(out, "ERROR", a.body, a.len);
		apireq_answer_fini(&a);
	}
	return next;
}

void apireq_stream_bookmark(struct apireq_stream *st)
{
	store_watch_bookmark(st->w);
}
