/* SPDX-License-Identifier: MIT */
/* An empty parameter counts as absent. The words of all refusals are kube-apiserver's. */
#include "config.h"

#include "query.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define MATCH   "resourceVersionMatch"
#define INITIAL "sendInitialEvents"

static const char too_old[] =
	"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/* What kube-apiserver calls the object of these refusals. */
static const struct apistore_target options_target = {
	.group = (char *)"meta.k8s.io", .name = (char *)""};

/* ---- lists */

/* Answer 410 for a token whose version was compacted, with a new token that continues the list in
 * the current version, as kube-apiserver does. */
static struct apistore_answer expired_token(const char *next)
{
	struct apistore_answer a = apistore_status_refusal(410, "%s", too_old);
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(a.body, a.len, &json_limits_object, &ignored);

	json_add(o, "metadata", json_add_str(json_obj(), "continue", next));
	apistore_answer_fini(&a);
	return apistore_status_object(410, o);
}

/* Check resourceVersionMatch and sendInitialEvents. */
static int check_list(const struct apistore_target *t, const char *match, const char *rv, bool next,
	struct apistore_answer *refused)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	cleanup_free char *send = apistore_target_param(t, INITIAL);
	const char *forbidden =
		!match ? NULL
		: next ? "resourceVersionMatch is forbidden when continue is provided"
		: !rv  ? "resourceVersionMatch is forbidden unless resourceVersion is provided"
		: str_eq(match, "Exact") && str_eq(rv, "0")
			? "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
			: NULL;

	if (forbidden)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, MATCH, NULL, "%s", forbidden);
	else if (match && !str_eq(match, "Exact") && !str_eq(match, "NotOlderThan"))
		schema_cause_add_text(&causes, SCHEMA_UNSUPPORTED, MATCH, match,
			"supported values: \"Exact\", \"NotOlderThan\", \"\"");
	if (send && *send)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, INITIAL, NULL,
			"sendInitialEvents is forbidden for list");
	if (causes.n == 0)
		return 0;
	*refused = apistore_status_causes(&options_target, "ListOptions", &causes);
	return -1;
}

/* Read limit, resourceVersion and continue. */
static int read_list(const struct apistore_target *t, struct apistore_list_options *o,
	struct apistore_answer *refused)
{
	cleanup_free char *limit = apistore_target_param(t, "limit"),
			  *rv_param = apistore_target_param(t, "resourceVersion"),
			  *match_param = apistore_target_param(t, MATCH);
	const char *rv = rv_param && *rv_param ? rv_param : NULL,
		   *match = match_param && *match_param ? match_param : NULL;

	if (limit && *limit && str_to_u64(limit, INT64_MAX, &o->limit) < 0) {
		*refused =
			apistore_status_refusal(400, "limit is not a number: %s", log_esc(limit));
		return -1;
	}
	if (check_list(t, match, rv, o->token != NULL, refused) < 0)
		return -1;
	if (rv && str_to_u64(rv, INT64_MAX, &o->rv) < 0) {
		*refused = apistore_status_invalid(&options_target, "ListOptions",
			"resourceVersion", "Invalid value", "must be a whole number");
		return -1;
	}
	if (o->token && o->rv != 0) {
		*refused = apistore_status_refusal(
			400, "specifying resource version is not allowed when using continue");
		return -1;
	}
	/* As in kube-apiserver, a limit without a match makes a resourceVersion exact. */
	o->exact = o->rv > 0 && (str_eq(match, "Exact") || (!match && o->limit > 0));
	return 0;
}

/* The answer when a list could not be started. */
static struct apistore_answer no_list(
	const struct apistore_list_cursor *c, enum apistore_list_state state, const struct err *err)
{
	switch (state) {
	case APISTORE_LIST_BAD_TOKEN:
		return apistore_status_refusal(
			400, "continue key is not valid: encoded start key is not valid");
	case APISTORE_LIST_FUTURE:
		return apistore_status_too_large(c->at, apistore_objects_rv(c->s));
	case APISTORE_LIST_EXPIRED:
		return c->next ? expired_token(c->next)
			       : apistore_status_refusal(410,
					 "The resourceVersion for the provided list is too old.");
	case APISTORE_LIST_FAILED:
	case APISTORE_LIST_OK:
		break;
	}
	return apistore_status_storage(err);
}

/* Options are checked before anything is read. */
struct apistore_listing *apistore_query_list(
	struct apistore_objects *s, struct apistore_target *take_t, struct apistore_answer *refused)
{
	cleanup_apistore_target struct apistore_target t = *take_t;
	cleanup_free char *token = apistore_target_param(&t, "continue");
	struct apistore_list_options o = {.resource = t.qualified,
		.ns = t.ns[0] ? t.ns : NULL,
		.select = t.select,
		.token = token && *token ? token : NULL};
	struct apistore_list_cursor *c = NULL;
	enum apistore_list_state state;
	struct err err = ERR_INIT;

	*take_t = (struct apistore_target){0};
	if (read_list(&t, &o, refused) < 0)
		return NULL;
	state = apistore_list_start(s, &o, &c, &err);
	if (state == APISTORE_LIST_OK)
		return apistore_listing_new(&t, c);
	*refused = no_list(c, state, &err);
	apistore_list_free(c);
	return NULL;
}

/* ---- watches */

/* Check resourceVersionMatch. */
static int check_watch(const char *initial, const char *match, struct apistore_answer *refused)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	bool given = match && *match;

	if (initial && !str_eq(match, "NotOlderThan"))
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, MATCH, NULL,
			"sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (!initial && given)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, MATCH, NULL,
			"resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
	if (given && !str_eq(match, "NotOlderThan"))
		schema_cause_add_text(&causes, SCHEMA_UNSUPPORTED, MATCH, match,
			"supported values: \"NotOlderThan\"");
	if (causes.n == 0)
		return 0;
	*refused = apistore_status_causes(&options_target, "ListOptions", &causes);
	return -1;
}

/* Without a resourceVersion, or with "0", a watch starts with the current objects unless the client
 * declined initial events. */
int apistore_query_watch(struct apistore_objects *s, const struct apistore_target *t,
	struct apistore_watch_options *out, struct apistore_answer *refused)
{
	cleanup_free char *rv = apistore_target_param(t, "resourceVersion"),
			  *match = apistore_target_param(t, MATCH),
			  *initial = apistore_target_param(t, INITIAL);
	bool send = apistore_target_flag(t, INITIAL);

	*out = (struct apistore_watch_options){.resource = t->qualified,
		.ns = t->ns[0] ? t->ns : NULL,
		.select = t->select,
		.bookmarks = apistore_target_flag(t, "allowWatchBookmarks")};
	if (rv && *rv && str_to_u64(rv, INT64_MAX, &out->at) < 0) {
		*refused = apistore_status_refusal(
			400, "Invalid value for resourceVersion: %s", log_esc(rv));
		return -1;
	}
	if (check_watch(initial, match, refused) < 0)
		return -1;
	if (send && out->at > apistore_objects_rv(s)) {
		*refused = apistore_status_too_large(out->at, apistore_objects_rv(s));
		return -1;
	}
	out->initial_bookmark = send && out->bookmarks;
	out->initial = send || (!initial && out->at == 0);
	if (initial && !send && out->at == 0)
		out->at = apistore_objects_rv(s);
	return 0;
}
