/* SPDX-License-Identifier: MIT */
/* The metadata of a list, with its continue token, comes before the items. */
#include "config.h"

#include "tec/apistore/listing.h"

#include <inttypes.h>

#include "tec/apistore/events.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

struct apistore_listing {
	struct apistore_list_cursor *c; /* owned; borrows from target */
	struct apistore_target target;
	const struct apistore_kind *kind; /* during a pull */
	bool begun, ended;                /* the head was written; and the end */
};

struct apistore_listing *apistore_listing_new(
	struct apistore_target *take_t, struct apistore_list_cursor *take_c)
{
	struct apistore_listing *l = xcalloc(1, sizeof(*l));

	l->c = take_c;
	l->target = *take_t;
	*take_t = (struct apistore_target){0};
	return l;
}

void apistore_listing_free(struct apistore_listing *l)
{
	if (!l)
		return;
	apistore_list_free(l->c);
	apistore_target_fini(&l->target);
	free(l);
}

static void add_text(struct body *out, const char *text)
{
	body_add(out, text, strlen(text), 0);
}

/* The schema by which items are converted; NULL: they are sent whole. */
static const struct schema_kind *shown_by(const struct apistore_listing *l)
{
	return l->target.form.shape == APISTORE_SHAPE_OBJECT ? NULL : l->kind->schema;
}

/* Append the list up to its first item. */
static void add_head(const struct apistore_listing *l, struct body *out)
{
	const struct apistore_target *t = &l->target;
	const char *kind = l->kind->kind;
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	cleanup_free char *head = NULL;

	strbuf_addf(&b, "\"resourceVersion\":\"%" PRIu64 "\"", l->c->at);
	if (l->c->more) {
		strbuf_addf(&b, ",\"continue\":\"%s\"", l->c->next);
		if (!t->select)
			strbuf_addf(&b, ",\"remainingItemCount\":%" PRIu64, l->c->left);
	}
	if (shown_by(l)) {
		apistore_form_head(&t->form, shown_by(l), b.data, out);
		return;
	}
	head = xasprintf(
		"{\"kind\":\"%sList\",\"apiVersion\":\"%s%s%s\",\"metadata\":{%s},\"items\":[",
		kind ? kind : "", kind ? t->group : "", kind && t->group[0] ? "/" : "",
		kind ? t->version : "v1", b.data);
	add_text(out, head);
}

struct pull {
	const struct apistore_listing *l;
	struct body *out;
	size_t end; /* the length of out at which the piece is long enough */
};

/* Append one object in the form asked for. An item of a list of built-in kinds has no kind and
 * apiVersion, which are the first v->head bytes of its text. */
static bool add_item(void *arg, const struct apistore_version *v)
{
	const struct pull *p = arg;
	const struct apistore_listing *l = p->l;
	size_t skip = l->kind->custom ? 0 : v->head + (v->len > v->head && v->body[v->head] == ',');

	if (l->c->given > 0)
		add_text(p->out, ",");
	if (shown_by(l)) {
		apistore_form_item(&l->target.form, shown_by(l), v->body, v->len, p->out);
	} else if (apistore_events_renames(l->target.group)) {
		apistore_form_event(v->body, v->len, true, p->out);
	} else {
		if (skip > 0)
			add_text(p->out, "{");
		body_add(p->out, v->body + skip, v->len - skip, 0);
	}
	return p->out->len < p->end;
}

/* The kind is looked up during each pull: a listing lives as long as its client reads. */
int apistore_listing_pull(struct apistore_listing *l, struct body *out, size_t max, struct err *err)
{
	struct pull p = {l, out, out->len + max};
	int rc;

	if (l->ended)
		return 0;
	l->kind = apistore_objects_kind(l->c->s, l->target.group, l->target.resource);
	if (!l->begun)
		add_head(l, out);
	l->begun = true;
	rc = apistore_list_take(l->c, add_item, &p, err);
	if (rc != 0)
		return rc;
	l->ended = true;
	add_text(out, "]}");
	return 0;
}
