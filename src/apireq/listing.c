/* SPDX-License-Identifier: MIT */
/* The metadata of a list, with its continue token, comes before the items. An empty parameter counts
 * as absent. The words of all refusals are kube-apiserver's. */
#include "config.h"

#include "tec/apireq/listing.h"

#include <inttypes.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

struct apireq_listing {
	struct store_list_cursor *c; /* owned; borrows from target */
	struct apireq_request_info target;
	bool begun, ended; /* the head was written; and the end */
};

/* ---- the options */

#define MATCH   "resourceVersionMatch"
#define INITIAL "sendInitialEvents"
#define PIECE   (1u << 20) /* bytes of a list taken at once, where it is wanted whole */

static const char too_old[] =
	"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/* Check resourceVersionMatch and sendInitialEvents. */
static int check_list(const struct apireq_request_info *t, const char *match, const char *rv,
	bool next, struct apireq_answer *refused)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	cleanup_free char *send = apireq_request_info_param(t, INITIAL);
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
	*refused = apireq_status_causes(&apireq_status_options, "ListOptions", &causes);
	return -1;
}

/* Read limit, resourceVersion and continue. */
static int read_list(const struct apireq_request_info *t, struct store_list_options *o,
	struct apireq_answer *refused)
{
	cleanup_free char *limit = apireq_request_info_param(t, "limit"),
			  *rv_param = apireq_request_info_param(t, "resourceVersion"),
			  *match_param = apireq_request_info_param(t, MATCH);
	const char *rv = rv_param && *rv_param ? rv_param : NULL,
		   *match = match_param && *match_param ? match_param : NULL;

	if (limit && *limit && str_to_u64(limit, INT64_MAX, &o->limit) < 0) {
		*refused = apireq_status_refusal(400, "limit is not a number: %s", log_esc(limit));
		return -1;
	}
	if (check_list(t, match, rv, o->token != NULL, refused) < 0)
		return -1;
	if (rv && str_to_u64(rv, INT64_MAX, &o->rv) < 0) {
		*refused = apireq_status_invalid(&apireq_status_options, "ListOptions",
			"resourceVersion", "Invalid value", "must be a whole number");
		return -1;
	}
	if (o->token && o->rv != 0) {
		*refused = apireq_status_refusal(
			400, "specifying resource version is not allowed when using continue");
		return -1;
	}
	/* As in kube-apiserver, a limit without a match makes a resourceVersion exact. */
	o->exact = o->rv > 0 && (str_eq(match, "Exact") || (!match && o->limit > 0));
	return 0;
}

/* The answer when a list could not be started. */
static struct apireq_answer no_list(
	const struct store_list_cursor *c, enum store_list_state state, const struct err *err)
{
	cleanup_json struct json_object *o = NULL;
	struct err ignored = ERR_INIT;
	struct apireq_answer a;

	switch (state) {
	case STORE_LIST_BAD_TOKEN:
		return apireq_status_refusal(
			400, "continue key is not valid: encoded start key is not valid");
	case STORE_LIST_FUTURE:
		return apireq_status_too_large(c->at, store_objects_rv(c->s));
	case STORE_LIST_EXPIRED:
		if (!c->next)
			return apireq_status_refusal(
				410, "The resourceVersion for the provided list is too old.");
		/* A new token continues the list in the current version, as in kube-apiserver. */
		a = apireq_status_refusal(410, "%s", too_old);
		o = json_parse(a.body, a.len, &json_limits_object, &ignored);
		json_add(o, "metadata", json_add_str(json_obj(), "continue", c->next));
		apireq_answer_fini(&a);
		return apireq_status_object(410, o);
	case STORE_LIST_FAILED:
	case STORE_LIST_OK:
		break;
	}
	return apireq_status_storage(err);
}

/* Options are checked before anything is read. */
struct apireq_listing *apireq_listing_start(
	struct store_objects *s, struct apireq_request_info *take_t, struct apireq_answer *refused)
{
	cleanup_apireq_request_info struct apireq_request_info t = *take_t;
	cleanup_free char *token = apireq_request_info_param(&t, "continue");
	struct store_list_options o = {.resource = t.qualified,
		.ns = t.ns[0] ? t.ns : NULL,
		.select = t.select,
		.token = token && *token ? token : NULL};
	struct store_list_cursor *c = NULL;
	enum store_list_state state;
	struct apireq_listing *l;
	struct err err = ERR_INIT;

	*take_t = (struct apireq_request_info){0};
	if (read_list(&t, &o, refused) < 0)
		return NULL;
	state = store_list_start(s, &o, &c, &err);
	if (state == STORE_LIST_OK) {
		l = xcalloc(1, sizeof(*l));
		l->c = c; /* which borrows from the target */
		l->target = t;
		t = (struct apireq_request_info){0};
		return l;
	}
	*refused = no_list(c, state, &err);
	store_list_free(c);
	return NULL;
}

void apireq_listing_free(struct apireq_listing *l)
{
	if (!l)
		return;
	store_list_free(l->c);
	apireq_request_info_fini(&l->target);
	free(l);
}

struct pull {
	const struct apireq_listing *l;
	const struct store_kind *kind;
	struct body *out;
	size_t end; /* the length of out at which the piece is long enough */
};

/* Append one object in the form asked for. An item of a list of built-in kinds has no kind and
 * apiVersion, which are the first v->head bytes of its text. */
static bool add_item(void *arg, const struct store_version *v)
{
	const struct pull *p = arg;
	const struct apireq_request_info *t = &p->l->target;
	size_t skip = p->kind->custom ? 0 : v->head + (v->len > v->head && v->body[v->head] == ',');

	if (p->l->c->given > 0)
		body_add(p->out, ",", 1, 0);
	if (!apireq_representation_add(&t->form, p->kind->schema, APIREQ_REPRESENTATION_ITEM,
		    t->group, v->body, v->len, p->out)) {
		if (skip > 0)
			body_add(p->out, "{", 1, 0);
		body_add(p->out, v->body + skip, v->len - skip, 0);
	}
	return p->out->len < p->end;
}

/* Append the list up to its first item. */
static void add_head(const struct apireq_listing *l, const struct store_kind *k, struct body *out)
{
	const struct apireq_request_info *t = &l->target;
	const char *kind = k->kind;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *head = NULL;

	strbuf_addf(&b, "\"resourceVersion\":\"%" PRIu64 "\"", l->c->at);
	if (l->c->more) {
		strbuf_addf(&b, ",\"continue\":\"%s\"", l->c->next);
		if (!t->select)
			strbuf_addf(&b, ",\"remainingItemCount\":%" PRIu64, l->c->left);
	}
	if (k->schema && t->form.shape != APIREQ_SHAPE_OBJECT) {
		apireq_representation_head(&t->form, k->schema, b.data, out);
		return;
	}
	head = xasprintf(
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":{%s},\"items\":[",
		kind ? kind : "", kind ? t->group : "", kind && t->group[0] ? "/" : "",
		kind ? t->version : "v1", b.data);
	body_add(out, head, strlen(head), 0);
}

/* The kind is looked up during each pull: a listing lives as long as its client reads. */
int apireq_listing_pull(struct apireq_listing *l, struct body *out, size_t max, struct err *err)
{
	struct pull p = {l, store_objects_kind(l->c->s, l->target.group, l->target.resource), out,
		out->len + max};
	int rc;

	if (l->ended)
		return 0;
	if (!l->begun)
		add_head(l, p.kind, out);
	l->begun = true;
	rc = store_list_take(l->c, add_item, &p, err);
	if (rc != 0)
		return rc;
	l->ended = true;
	body_add(out, "]}", 2, 0);
	return 0;
}

/* ---- answers that hold a list */

void apireq_answer_fini(struct apireq_answer *a)
{
	if (a->body)
		secret_wipe(a->body, a->len);
	free(a->body);
	apireq_listing_free(a->more);
	schema_texts_fini(&a->warnings);
	*a = (struct apireq_answer){0};
}

int apireq_answer_whole(struct apireq_answer *a, struct err *err)
{
	struct body whole;
	int rc;

	if (!a->more)
		return 0;
	whole = body_of_text(steal_ptr(&a->body));
	do
		rc = apireq_listing_pull(a->more, &whole, PIECE, err);
	while (rc > 0);
	a->len = whole.len;
	a->body = steal_ptr(&whole.data);
	return rc;
}
