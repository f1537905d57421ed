/* SPDX-License-Identifier: MIT */
/*
 * A listing is a position in a scan: each piece starts a new scan after the last object produced.
 * For a page, the end is found first with a scan that reads no bodies, because the metadata of a
 * list, with its continue token, comes before the items.
 */
#include "config.h"

#include "tec/apistore/list.h"

#include <inttypes.h>
#include <stdio.h>

#include "tec/apistore/events.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

struct apistore_listing {
	struct apistore_objects *s;
	const struct apistore_selector *select; /* points into target, or borrowed */
	struct apistore_target target;
	char *resource, *ns;         /* owned; ns NULL: all */
	uint64_t at;                 /* the version shown */
	char *after_ns, *after_name; /* owned: the last object produced; NULL: none */
	uint64_t limit, given;       /* items per page, 0: no limit; items produced */
	uint64_t left;               /* with more: objects after this page */
	bool more;                   /* there is a next page */
	bool custom, events;         /* show items with their kind; as watch events */
	struct apistore_form form;
	char *group, *plural, *version;   /* owned: of the kind */
	const struct schema_kind *schema; /* during a pull: to convert items; NULL: as stored */
	bool begun, ended;                /* the head was written; and the end */
	char *next;                       /* owned: the token of the next page */
};

static const char too_old[] =
	"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

void apistore_list_free(struct apistore_listing *l)
{
	if (!l)
		return;
	apistore_target_fini(&l->target);
	free(l->resource);
	free(l->ns);
	free(l->after_ns);
	free(l->after_name);
	free(l->next);
	free(l->group);
	free(l->plural);
	free(l->version);
	free(l);
}

/* The kind is looked up again during each pull, but its names are copied: the target may be the
 * caller's. */
static struct apistore_listing *list_new(
	struct apistore_objects *s, const struct apistore_target *t, uint64_t at)
{
	struct apistore_listing *l = xcalloc(1, sizeof(*l));

	l->s = s;
	l->select = t->select;
	l->resource = xstrdup(t->qualified);
	l->ns = t->ns[0] ? xstrdup(t->ns) : NULL;
	l->at = at;
	l->form = t->form;
	l->group = xstrdup(t->group);
	l->plural = xstrdup(t->resource);
	l->version = xstrdup(t->version);
	l->custom = apistore_objects_kind(s, t->group, t->resource)->custom;
	return l;
}

/* Events have no head and no end, so the listing begins after its head. */
struct apistore_listing *apistore_list_events(
	struct apistore_objects *s, const struct apistore_target *t, uint64_t at)
{
	struct apistore_listing *l = list_new(s, t, at);

	l->events = l->begun = true;
	return l;
}

/* ---- continue tokens: {"v":"meta.k8s.io/v1","rv":1,"start":"ns/name\0"} in base64url */

/* Encode a continue token. consistent false: version -1, which continues in the current version. */
static char *token_of(uint64_t rv, bool consistent, const char *ns, const char *name)
{
	cleanup_strbuf struct strbuf json = STRBUF_INIT;
	struct strbuf out = STRBUF_INIT;

	if (consistent)
		strbuf_addf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRIu64, rv);
	else
		strbuf_adds(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":-1");
	/* The start key ends with a NUL, which makes it the first key after this object, as in
	 * kube-apiserver. */
	strbuf_addf(&json, ",\"start\":\"%s%s%s\\u0000\"}", ns, ns[0] ? "/" : "", name);
	bytes_to_b64url(&out, json.data, json.len);
	return strbuf_steal(&out);
}

/* Decode a continue token and start after its object. False: it is malformed or of another
 * namespace. */
static bool read_token(struct apistore_listing *l, const char *token, int64_t *rv)
{
	static const struct json_limits limits = {4096, 4, 16, true};
	cleanup_free uint8_t *text = NULL;
	cleanup_json struct json_object *o = NULL;
	struct err ignored = ERR_INIT;
	struct json_object *start;
	const char *s, *slash;
	size_t len = 0;

	if (bytes_from_b64url(token, strlen(token), &text, &len) < 0)
		return false;
	o = json_parse((char *)text, len, &limits, &ignored);
	start = o ? json_get(o, "start") : NULL;
	if (!str_eq(json_get_str(o, "v"), "meta.k8s.io/v1") ||
		!json_object_is_type(start, json_type_string) ||
		!json_object_is_type(json_get(o, "rv"), json_type_int))
		return false;
	*rv = json_get_int(o, "rv", 0);
	s = json_object_get_string(start); /* up to the NUL byte */
	slash = strchr(s, '/');
	l->after_ns = slash ? xstrndup(s, (size_t)(slash - s)) : xstrdup("");
	l->after_name = xstrdup(slash ? slash + 1 : s);
	if (!*l->after_name || strchr(l->after_name, '/') || *rv == 0 || *rv < -1)
		return false;
	return !l->ns || str_eq(l->ns, l->after_ns);
}

/* Answer 410 for a token whose version was compacted, with a new token that continues the list in
 * the current version, as kube-apiserver does. */
static struct apistore_answer expired_token(const struct apistore_listing *l)
{
	cleanup_free char *next = token_of(0, false, l->after_ns, l->after_name);
	struct apistore_answer a = apistore_status_refusal(410, "Expired", "%s", too_old);
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(a.body, a.len, &json_limits_object, &ignored);

	json_add(o, "metadata", json_add_str(json_obj(), "continue", next));
	apistore_answer_fini(&a);
	return apistore_status_object(410, o);
}

/* ---- version */

static int refuse_option(
	struct apistore_answer *refused, const char *field, const char *problem, const char *why)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};

	*refused = apistore_status_invalid(&options, "ListOptions", field, problem, why);
	return -1;
}

/* Check resourceVersionMatch and sendInitialEvents, in the words of kube-apiserver. */
static int check_match(const struct apistore_target *t, const char *match, const char *rv,
	bool next, struct apistore_answer *refused)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	static const char field[] = "resourceVersionMatch", initial[] = "sendInitialEvents";
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	cleanup_free char *send = apistore_target_param(t, initial);
	const char *forbidden =
		!match ? NULL
		: next ? "resourceVersionMatch is forbidden when continue is provided"
		: !rv  ? "resourceVersionMatch is forbidden unless resourceVersion is provided"
		: str_eq(match, "Exact") && str_eq(rv, "0")
			? "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
			: NULL;

	if (forbidden)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, field, NULL, "%s", forbidden);
	else if (match && !str_eq(match, "Exact") && !str_eq(match, "NotOlderThan"))
		schema_cause_add_text(&causes, SCHEMA_UNSUPPORTED, field, match,
			"supported values: \"Exact\", \"NotOlderThan\", \"\"");
	if (send && *send)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, initial, NULL,
			"sendInitialEvents is forbidden for list");
	if (causes.n == 0)
		return 0;
	*refused = apistore_status_causes(&options, "ListOptions", &causes);
	return -1;
}

/* Choose the version of the list from resourceVersion, resourceVersionMatch and continue. Unless an
 * exact one is asked for, it is the current one, which is never older than the version that the
 * client gave. */
static int choose_version(struct apistore_listing *l, const struct apistore_target *t,
	struct apistore_answer *refused)
{
	cleanup_free char *rv_param = apistore_target_param(t, "resourceVersion"),
			  *match_param = apistore_target_param(t, "resourceVersionMatch"),
			  *next_param = apistore_target_param(t, "continue");
	/* An empty parameter counts as absent. */
	const char *rv = rv_param && *rv_param ? rv_param : NULL,
		   *match = match_param && *match_param ? match_param : NULL,
		   *next = next_param && *next_param ? next_param : NULL;
	uint64_t want = 0, now = apistore_objects_rv(l->s);
	int64_t token_rv = 0;
	bool exact;

	if (check_match(t, match, rv, next, refused) < 0)
		return -1;
	if (rv && str_to_u64(rv, INT64_MAX, &want) < 0)
		return refuse_option(
			refused, "resourceVersion", "Invalid value", "must be a whole number");
	if (next && rv && want != 0) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"specifying resource version is not allowed when using continue");
		return -1;
	}
	if (next && !read_token(l, next, &token_rv)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"continue key is not valid: encoded start key is not valid");
		return -1;
	}
	/* As in kube-apiserver, a limit without a match makes a resourceVersion exact. */
	exact = want > 0 && (str_eq(match, "Exact") || (!match && l->limit > 0));
	l->at = token_rv > 0 ? (uint64_t)token_rv : exact ? want : now;
	if (want > now || l->at > now) {
		*refused = apistore_status_too_large(want > now ? want : l->at, now);
		return -1;
	}
	if (l->at < apistore_db_oldest(l->s->db)) {
		*refused = next ? expired_token(l)
				: apistore_status_refusal(410, "Expired",
					  "The resourceVersion for the provided list is too old.");
		return -1;
	}
	return 0;
}

/* ---- pages */

struct page {
	struct apistore_listing *l;
	uint64_t n;      /* objects counted */
	char *ns, *name; /* owned: the last object of the page */
};

/* Is it the current version, which table object answers without the history? */
static bool is_current(const struct apistore_listing *l)
{
	return l->at == apistore_db_rv(l->s->db);
}

/* Count one object. The first one beyond the limit shows that there is a next page. */
static bool count_item(void *arg, const struct apistore_version *v)
{
	struct page *p = arg;

	if (!apistore_selector_matches(p->l->select, v->key.ns, v->key.name, v->meta))
		return true;
	if (p->n++ < p->l->limit) {
		free(p->ns);
		free(p->name);
		p->ns = xstrdup(v->key.ns);
		p->name = xstrdup(v->key.name);
		return true;
	}
	p->l->more = true;
	/* remainingItemCount is left out with a selector; for the current version SQLite counts. */
	return p->l->select == NULL && !is_current(p->l);
}

static struct apistore_scan scan_of(const struct apistore_listing *l, bool no_body)
{
	return (struct apistore_scan){.resource = l->resource,
		.ns = l->ns,
		.after_ns = l->after_ns,
		.after_name = l->after_name,
		.at = l->at,
		.no_body = no_body};
}

/* Find out whether there is a next page, where it begins and how many objects are left. */
static int find_page(struct apistore_listing *l, struct err *err)
{
	struct apistore_scan scan = scan_of(l, true);
	struct page p = {.l = l};
	int rc;

	/* Without a selector the keys are enough to count; with one, the stored labels are needed
	 * too. */
	scan.only_keys = l->select == NULL;
	rc = apistore_db_scan(l->s->db, &scan, count_item, &p, err);

	if (rc >= 0 && l->more && !l->select && is_current(l)) {
		const struct apistore_key last = {l->resource, p.ns, p.name};

		rc = apistore_db_count_after(l->s->db, &last, l->ns, &p.n, err);
		p.n += l->limit;
	}
	if (rc >= 0 && l->more) {
		l->next = token_of(l->at, true, p.ns, p.name);
		l->left = p.n - l->limit;
	}
	free(p.ns);
	free(p.name);
	return rc < 0 ? -1 : 0;
}

/* Options are checked before anything is read. A list without a limit needs no look at its end. */
struct apistore_listing *apistore_list_new(
	struct apistore_objects *s, struct apistore_target *take_t, struct apistore_answer *refused)
{
	struct apistore_listing *l = list_new(s, take_t, 0);
	cleanup_free char *limit = apistore_target_param(take_t, "limit");
	struct err err = ERR_INIT;
	int rc = -1;

	l->target = *take_t;
	*take_t = (struct apistore_target){0};
	if (limit && *limit && str_to_u64(limit, INT64_MAX, &l->limit) < 0)
		*refused = apistore_status_refusal(
			400, "BadRequest", "limit is not a number: %s", log_esc(limit));
	else
		rc = choose_version(l, &l->target, refused);
	if (rc == 0 && l->limit > 0 && find_page(l, &err) < 0) {
		(void)apistore_objects_failed(s, &err);
		*refused = apistore_status_storage(&err);
		rc = -1;
	}
	if (rc == 0)
		return l;
	apistore_list_free(l);
	return NULL;
}

/* ---- text */

static void add_text(struct body *out, const char *text)
{
	body_add(out, text, strlen(text), 0);
}

/* Append the list up to its first item. */
static void add_head(struct apistore_listing *l, struct body *out)
{
	const struct apistore_target *t = &l->target;
	const char *kind = apistore_objects_kind(l->s, t->group, t->resource)->kind;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *head = NULL;

	strbuf_addf(&b, "\"resourceVersion\":\"%" PRIu64 "\"", l->at);
	if (l->more) {
		strbuf_addf(&b, ",\"continue\":\"%s\"", l->next);
		if (!l->select)
			strbuf_addf(&b, ",\"remainingItemCount\":%" PRIu64, l->left);
	}
	if (l->schema) {
		apistore_form_head(&l->form, l->schema, b.data, out);
		return;
	}
	head = xasprintf(
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":{%s},\"items\":[",
		kind ? kind : "", kind ? t->group : "", kind && t->group[0] ? "/" : "",
		kind ? t->version : "v1", b.data);
	add_text(out, head);
}

struct pull {
	struct apistore_listing *l;
	struct body *out;
	size_t end; /* the length of out at which the piece is long enough */
	bool full;  /* the piece ended before the list or page did */
};

/* Append one object in the form asked for. An item of a list of built-in kinds has no kind and
 * apiVersion, which are the first v->head bytes of its text. */
static void add_object(
	struct apistore_listing *l, const struct apistore_version *v, struct body *out)
{
	size_t skip = l->events || l->custom
			      ? 0
			      : v->head + (v->len > v->head && v->body[v->head] == ',');

	if (l->events && l->schema) {
		apistore_form_object(&l->form, l->schema, v->body, v->len, l->given == 0, out);
	} else if (l->schema) {
		apistore_form_item(&l->form, l->schema, v->body, v->len, out);
	} else if (apistore_events_renames(l->group)) {
		apistore_form_event(v->body, v->len, !l->events, out);
	} else {
		if (skip > 0)
			add_text(out, "{");
		body_add(out, v->body + skip, v->len - skip, 0);
	}
}

static bool ends_page(const struct apistore_listing *l)
{
	return l->limit > 0 && l->given == l->limit;
}

/* Is the piece long enough, or the page full? The next object then ends the scan. */
static bool has_enough(const struct pull *p)
{
	return p->out->len >= p->end || ends_page(p->l);
}

/* Filter the scan by the selector. Once the piece is long enough anything is wanted, so that the
 * scan ends at the next object instead of searching for one that matches. */
static bool is_wanted(void *arg, const struct apistore_version *v)
{
	const struct pull *p = arg;

	return has_enough(p) ||
	       apistore_selector_matches(p->l->select, v->key.ns, v->key.name, v->meta);
}

/* Append one object, unless the piece is long enough, and remember it as the place to continue
 * after. */
static bool add_item(void *arg, const struct apistore_version *v)
{
	struct pull *p = arg;
	struct apistore_listing *l = p->l;

	if (has_enough(p)) {
		p->full = !ends_page(l);
		return false;
	}
	free(l->after_ns);
	free(l->after_name);
	l->after_ns = xstrdup(v->key.ns);
	l->after_name = xstrdup(v->key.name);
	if (l->events)
		add_text(p->out, "{\"type\":\"ADDED\",\"object\":");
	else if (l->given > 0)
		add_text(p->out, ",");
	add_object(l, v, p->out);
	if (l->events)
		add_text(p->out, "}\n");
	l->given++;
	return true;
}

bool apistore_list_is_empty(const struct apistore_listing *l)
{
	return l->given == 0;
}

/* Each piece is a scan of its own, after the last object. Between two pieces the version may be
 * compacted, which ends the list with an error in the middle. */
int apistore_list_pull(struct apistore_listing *l, struct body *out, size_t max, struct err *err)
{
	struct pull p = {l, out, out->len + max, false};
	struct apistore_scan scan;
	cleanup_free char *after_ns = NULL, *after_name = NULL;

	if (l->ended)
		return 0;
	if (l->begun && l->at < apistore_db_oldest(l->s->db))
		return err_set_http(err, ERR_GONE, 410, "the version of the list was compacted");
	/* Commit first: if the open transaction were rolled back later, objects that it deleted
	 * would be missing from this piece. If it fails, it is rolled back now, and the list goes
	 * on. */
	if (l->begun && l->s->open && apistore_objects_commit(l->s, err) < 0)
		*err = (struct err)ERR_INIT;
	l->schema = l->form.shape == APISTORE_SHAPE_OBJECT
			    ? NULL
			    : apistore_objects_kind(l->s, l->group, l->plural)->schema;
	if (!l->begun)
		add_head(l, out);
	l->begun = true;
	scan = scan_of(l, false);
	scan.wants = l->select ? is_wanted : NULL;
	scan.after_ns = after_ns = xstrdup(l->after_ns); /* add_item replaces l->after_* */
	scan.after_name = after_name = xstrdup(l->after_name);
	if (apistore_db_scan(l->s->db, &scan, add_item, &p, err) < 0)
		return -1;
	if (p.full)
		return 1;
	l->ended = true;
	if (!l->events)
		add_text(out, "]}");
	return 0;
}
