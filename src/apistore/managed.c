/* SPDX-License-Identifier: MIT */
/*
 * Server-side apply as in structured-merge-diff. Entries are read from the object, changed as sets
 * of paths, and written back sorted. Fields that identify the object (name, uid, version and the
 * like) have no owner.
 */
#include "config.h"

#include "tec/apistore/managed.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#include "decode.h"
#include "managed_internal.h"

#define UPDATES_MAX 10 /* entries of updates; the oldest are merged beyond that */
#define LAST        "kubectl.kubernetes.io/last-applied-configuration"

/* ---- fields without an owner */

/* Build the set of fields without an owner, the same as kube-apiserver's. */
static struct apistore_fieldset unowned(void)
{
	static const char *const below_meta[] = {"f:creationTimestamp", "f:generation",
		"f:managedFields", "f:name", "f:namespace", "f:resourceVersion", "f:selfLink",
		"f:uid"};
	struct apistore_fieldset s = {NULL, 0}, meta = {NULL, 0};

	for (size_t i = 0; i < ARRAY_LEN(below_meta); i++)
		apistore_fieldset_add(&meta, below_meta[i], true, NULL);
	apistore_fieldset_add(&s, "f:apiVersion", true, NULL);
	apistore_fieldset_add(&s, "f:kind", true, NULL);
	apistore_fieldset_add(&s, "f:metadata", true, &meta);
	return s;
}

/* Remove the fields that have no owner from a set. */
static void strip(struct apistore_fieldset *s)
{
	cleanup_apistore_fieldset struct apistore_fieldset out = unowned();

	apistore_fieldset_become(s, apistore_fieldset_without(s, &out));
}

/* Return a copy without managedFields, which take no part in comparing and merging. */
static struct json_object *without_managed(struct json_object *o)
{
	struct json_object *copy = json_copy(o), *m = json_get_obj(copy, "metadata");

	if (m)
		json_drop(m, "managedFields");
	return copy;
}

/* ---- updates */

/* Choose the entries to start from after an update: those the client sent, none if it reset them,
 * or else the stored ones. A client that drops managedFields because it does not know them loses
 * nothing. */
static struct managed_entries entries_after(const struct apistore_kind *k,
	const struct apistore_manager *m, struct json_object *was, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields"), *first;
	size_t n = json_len(a);
	struct err err = ERR_INIT;
	struct managed_entries l = {NULL, 0};

	/* kube-apiserver does not notice an empty list in a custom resource. */
	if (!m->sub[0] && a && (n > 0 || !k->schema || !k->schema->crd)) {
		first = n == 1 ? json_at(a, 0) : NULL;
		if (n == 0 ||
			(json_object_is_type(first, json_type_object) && json_len(first) == 0))
			return l;
		if (managed_entries_read(o, &l, &err) == 0)
			return l;
		err_clear(&err);
	}
	if (was && managed_entries_read(was, &l, &err) < 0)
		l = (struct managed_entries){NULL, 0};
	return l;
}

/* Merge the oldest updates of the same apiVersion into one entry, as kube-apiserver does, so that
 * the list does not grow with every client. */
static void cap_updates(struct managed_entries *l)
{
	size_t updates = 0, first = l->n;

	for (size_t i = 0; i < l->n; i++)
		updates += !l->at[i].apply;
	if (updates <= UPDATES_MAX)
		return;
	qsort(l->at, l->n, sizeof(*l->at),
		managed_entries_by_order); /* applies first, then updates from the oldest */
	for (size_t i = 0; i < l->n && updates > UPDATES_MAX; i++) {
		struct managed_entry *e = &l->at[i], *to = first < l->n ? &l->at[first] : NULL;

		if (e->apply)
			continue;
		if (!to) {
			first = i;
			continue;
		}
		if (!str_eq(e->version, to->version))
			continue;
		free(to->manager);
		free(to->sub);
		to->manager = xstrdup("ancient-changes");
		to->sub = xstrdup("");
		apistore_fieldset_become(
			&to->fields, apistore_fieldset_union(&to->fields, &e->fields));
		managed_entry_set_time(to, e->time);
		apistore_fieldset_fini(&e->fields);
		updates--;
	}
	managed_entries_drop_empty(l);
}

/* Remove changed and removed fields from the entries of all other managers. taken: fields added or
 * modified. */
static void take_from_others(struct managed_entries *l, const struct managed_entry *self,
	const struct apistore_fieldset *taken, const struct apistore_fieldset *removed)
{
	for (size_t i = 0; i < l->n; i++) {
		struct managed_entry *e = &l->at[i];

		if (e == self)
			continue;
		apistore_fieldset_become(&e->fields, apistore_fieldset_without(&e->fields, taken));
		apistore_fieldset_become(
			&e->fields, apistore_fieldset_without(&e->fields, removed));
	}
}

/* Record an update from was to o in the entries; neither has managedFields. */
static void note_update(const struct apistore_place *p, const struct apistore_manager *m,
	struct json_object *was, struct json_object *o, struct managed_entries *l)
{
	struct apistore_delta d = apistore_typed_compare(p, was, o);
	cleanup_apistore_fieldset struct apistore_fieldset taken =
		apistore_fieldset_union(&d.modified, &d.added);
	struct managed_entry *self;

	/* All entries lose the changed fields, the writer's included, whose own entry gets them
	 * back below. */
	take_from_others(l, NULL, &taken, &d.removed);
	strip(&taken);
	if (!apistore_fieldset_is_empty(&taken)) {
		self = managed_entries_find(l, m, false);
		if (!self)
			self = managed_entries_add(l, m->name, m->version, m->sub, false);
		apistore_fieldset_become(
			&self->fields, apistore_fieldset_union(&self->fields, &taken));
		managed_entry_set_time(self, m->now);
	}
	apistore_delta_fini(&d);
	managed_entries_drop_empty(l);
	cap_updates(l);
}

/* Update the entries after a write that replaces or patches the object. */
void apistore_managed_update(const struct apistore_place *p, const struct apistore_kind *k,
	const struct apistore_manager *m, struct json_object *was, struct json_object *o)
{
	cleanup_managed_entries struct managed_entries l = entries_after(k, m, was, o);
	cleanup_json struct json_object *before = was ? without_managed(was) : json_obj(),
					*bare = NULL;

	if (was && l.n == 0) { /* ownership is tracked from creation or the first apply only */
		managed_entries_write(&l, o);
		return;
	}
	bare = without_managed(o);
	note_update(p, m, before, bare, &l);
	managed_entries_write(&l, o);
}

/* ---- applies */

/* Remove fields that this manager applied before and no longer applies, unless another manager owns
 * them. The first round computes what is left with the fields of all managers put back; the second
 * restricts the removal to fields that this manager had applied. */
static void prune(const struct apistore_place *p, const struct managed_entries *l,
	const struct apistore_fieldset *last, struct json_object **merged)
{
	cleanup_apistore_fieldset struct apistore_fieldset was = apistore_typed_with_parents(
								   p, last),
							   raw = apistore_typed_fields(p, *merged),
							   all = apistore_typed_with_parents(
								   p, &raw),
							   managed = {NULL, 0}, keep = {NULL, 0},
							   gone = {NULL, 0};
	struct json_object *out = json_copy(*merged);

	/* Start without any field that it applied before ... */
	apistore_typed_remove(p, out, &was);
	/* ... put back the fields that a manager owns now ... */
	for (size_t i = 0; i < l->n; i++)
		apistore_fieldset_become(
			&managed, apistore_fieldset_union(&managed, &l->at[i].fields));
	apistore_fieldset_become(&managed, apistore_typed_with_parents(p, &managed));
	for (int round = 0; round < 2; round++) {
		apistore_fieldset_become(&raw, apistore_typed_fields(p, out));
		apistore_fieldset_become(&keep, apistore_typed_with_parents(p, &raw));
		if (round == 0)
			apistore_fieldset_become(&keep, apistore_fieldset_union(&keep, &managed));
		apistore_fieldset_become(&gone, apistore_fieldset_without(&all, &keep));
		/* ... and remove nothing that was never this manager's. */
		if (round == 1)
			apistore_fieldset_become(&gone, apistore_fieldset_both(&gone, &was));
		json_object_put(out);
		out = json_copy(*merged);
		apistore_typed_remove(p, out, &gone);
	}
	json_object_put(*merged);
	*merged = out;
}

struct apply {
	const struct apistore_place *p;
	const struct apistore_manager *m;
	struct json_object *live, *conf; /* without managedFields */
	struct managed_entries *l;
	const struct apistore_fieldset *allowed; /* fields that cannot conflict; NULL: none */
	bool force;
};

/* Merge, prune and compare. Returns the new object with the entries updated. NULL: *conflicts is
 * set, which borrows the entries. */
static struct json_object *try_apply(const struct apply *a, struct managed_conflicts *conflicts)
{
	struct json_object *o = apistore_typed_merge(a->p, a->live, a->conf);
	struct managed_entry *self = managed_entries_find(a->l, a->m, true);
	cleanup_apistore_fieldset struct apistore_fieldset last = {NULL, 0}, taken = {NULL, 0};
	struct apistore_delta d;

	if (!self)
		self = managed_entries_add(a->l, a->m->name, a->m->version, a->m->sub, true);
	/* The set of the previous apply is moved out, to see what this one leaves out. */
	last = self->fields;
	self->fields = apistore_typed_fields(a->p, a->conf);
	strip(&self->fields);
	free(self->version);
	self->version = xstrdup(a->m->version);
	if (!apistore_fieldset_is_empty(&last))
		prune(a->p, a->l, &last, &o);
	d = apistore_typed_compare(a->p, a->live, o);
	taken = apistore_fieldset_union(&d.modified, &d.added);
	if (!a->force)
		*conflicts = managed_conflicts_find(a->l, self, &taken, a->allowed);
	if (conflicts->n > 0) {
		json_object_put(o);
		o = NULL;
	} else {
		take_from_others(a->l, self, &taken, &d.removed);
		if (!json_object_equal(a->live, o))
			managed_entry_set_time(self, a->m->now);
		managed_entries_drop_empty(a->l);
	}
	apistore_delta_fini(&d);
	return o;
}

/* Collect the fields that client-side "kubectl apply" set, by its annotation, and that nobody
 * changed since. A server-side apply by kubectl may take them over without a conflict. False:
 * none. */
static bool allowed_to_kubectl(const struct apply *a, struct apistore_fieldset *out)
{
	struct json_object *notes = json_get_obj(a->live, "metadata/annotations"), *v = NULL;
	cleanup_json struct json_object *last = NULL;
	struct apistore_delta d;
	struct err err = ERR_INIT;

	if (!str_eq(a->m->name, "kubectl") || !notes ||
		!json_object_object_get_ex(notes, LAST, &v) ||
		!json_object_is_type(v, json_type_string))
		return false;
	last = json_parse(json_object_get_string(v), (size_t)json_object_get_string_len(v),
		&json_limits_object, &err);
	if (!json_object_is_type(last, json_type_object) ||
		!str_eq(json_get_str(last, "apiVersion"), a->m->version))
		return false;
	*out = apistore_typed_fields(a->p, last);
	d = apistore_typed_compare(a->p, last, a->live);
	apistore_fieldset_become(out, apistore_fieldset_without(out, &d.modified));
	apistore_fieldset_become(out, apistore_fieldset_without(out, &d.added));
	apistore_fieldset_become(out, apistore_fieldset_without(out, &d.removed));
	apistore_delta_fini(&d);
	return true;
}

/* Update the annotation of client-side apply, if the object has it, so that the user can go back to
 * client-side apply. */
static void follow_last_applied(
	const struct apistore_manager *m, struct json_object *conf, struct json_object *o)
{
	struct json_object *notes = json_get_obj(o, "metadata/annotations"), *v = NULL, *copy;
	struct strbuf text = STRBUF_INIT;

	if (!str_eq(m->name, "kubectl") || !notes || !json_object_object_get_ex(notes, LAST, &v) ||
		json_object_get_string_len(v) == 0)
		return;
	copy = json_copy(conf);
	v = json_get_obj(copy, "metadata/annotations");
	if (v)
		json_drop(v, LAST);
	if (v && json_len(v) == 0)
		json_drop(json_get(copy, "metadata"), "annotations");
	json_canonical(&text, copy);
	strbuf_addc(&text, '\n');
	json_add_str(notes, LAST, strbuf_str(&text));
	json_object_put(copy);
	strbuf_fini(&text);
}

/* Report the first field that a built-in kind does not have; the caller frees the text. NULL: none.
 * Values of a wrong type are not reported here: decoding the result refuses them. */
static char *undeclared(const struct apistore_kind *k, struct json_object *conf)
{
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	cleanup_json struct json_object *copy = json_copy(conf);
	struct err err = ERR_INIT;

	if (!k->schema || k->schema->crd)
		return NULL;
	(void)!apistore_decode(k->schema, copy, &unknown, &err);
	return unknown.n == 0 ? NULL
			      : xasprintf(".%s: field not declared in schema", unknown.text[0]);
}

/* Check the applied configuration. The answers, 500 included, are those of kube-apiserver. */
static int check_conf(const struct apistore_place *p, const struct apistore_kind *k,
	const struct apistore_manager *m, struct json_object *conf, struct apistore_answer *refused)
{
	const char *kind = json_get_str(conf, "kind"), *version = json_get_str(conf, "apiVersion");
	const char *ns = json_get_str(conf, "metadata/namespace"),
		   *name = json_get_str(conf, "metadata/name");
	cleanup_free char *gvk =
		xasprintf("%s%s, Kind=%s", version && !strchr(version, '/') ? "/" : "",
			version ? version : "/", kind ? kind : "");
	struct json_object *meta = json_get(conf, "metadata");
	cleanup_free char *why = NULL;

	if (!kind || !version || !str_eq(version, m->version) ||
		(k->kind && !str_eq(kind, k->kind)))
		*refused =
			apistore_status_refusal(400, "BadRequest", "invalid object type: %s", gvk);
	else if (json_get(conf, "metadata/managedFields"))
		*refused = apistore_status_refusal(
			400, "BadRequest", "metadata.managedFields must be nil");
	else if (meta && !json_object_is_type(meta, json_type_object))
		*refused = apistore_status_refusal(500, NULL,
			"failed to create typed patch object (/; %s): .metadata: expected map",
			gvk);
	else if ((why = apistore_typed_check(p, conf)) || (why = undeclared(k, conf)))
		*refused = apistore_status_refusal(500, NULL,
			"failed to create typed patch object (%s/%s; %s): %s", ns ? ns : "",
			name ? name : "", gvk, why);
	else
		return 0;
	return -1;
}

/* Return the part of the configuration that this request applies: only the status for the
 * subresource, or else all but the status. */
static struct json_object *part_of(
	const struct apistore_kind *k, const struct apistore_manager *m, struct json_object *conf)
{
	struct json_object *o, *status = NULL;

	if (!m->sub[0]) {
		o = json_copy(conf);
		if (k->status)
			json_drop(o, "status");
		return o;
	}
	o = json_obj();
	if (json_object_object_get_ex(conf, "status", &status))
		json_add(o, "status", json_copy(status));
	return o;
}

/* The first apply to an object without entries gives all its fields to the manager
 * "before-first-apply", so that taking one over is a conflict. */
struct json_object *apistore_managed_apply(const struct apistore_place *p,
	const struct apistore_kind *k, const struct apistore_manager *m, struct json_object *live,
	struct json_object *conf, bool force, struct apistore_answer *refused)
{
	cleanup_json struct json_object *bare = live ? without_managed(live) : json_obj(),
					*part = NULL;
	cleanup_apistore_fieldset struct apistore_fieldset allowed = {NULL, 0};
	cleanup_managed_entries struct managed_entries l = {NULL, 0};
	struct managed_conflicts conflicts = {NULL, 0};
	struct err err = ERR_INIT;
	struct apply a = {.p = p, .m = m, .live = bare, .l = &l, .force = force};
	struct json_object *o;

	if (check_conf(p, k, m, conf, refused) < 0)
		return NULL;
	if (live && managed_entries_read(live, &l, &err) < 0) {
		*refused = apistore_status_refusal(
			500, NULL, "failed to decode managed fields: %s", err.text);
		return NULL;
	}
	if (live && l.n == 0) {
		cleanup_json struct json_object *nothing = json_obj(), *had = part_of(k, m, bare);
		const struct apistore_manager before = {
			"before-first-apply", m->version, m->sub, m->now};

		note_update(p, &before, nothing, had, &l);
	}
	/* From here on, only the part that this request may change counts. */
	a.conf = part = part_of(k, m, conf);
	if (l.n == MANAGED_ENTRIES_MAX && !managed_entries_find(&l, m, true)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"the object already has %d field managers, the maximum",
			MANAGED_ENTRIES_MAX);
		return NULL;
	}
	if (allowed_to_kubectl(&a, &allowed))
		a.allowed = &allowed;
	o = try_apply(&a, &conflicts);
	if (o) {
		follow_last_applied(m, conf, o);
		managed_entries_write(&l, o);
	} else {
		*refused = managed_conflicts_refuse(&conflicts);
	}
	managed_conflicts_fini(&conflicts);
	return o;
}

/* ---- times */

/* Return a copy without the times of its entries, to compare objects apart from them. */
static struct json_object *without_times(struct json_object *o)
{
	struct json_object *copy = json_copy(o), *a = json_get_arr(copy, "metadata/managedFields");

	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *entry = json_at(a, i);

		if (json_object_is_type(entry, json_type_object))
			json_drop(entry, "time");
	}
	return copy;
}

void apistore_managed_keep_times(struct json_object *was, struct json_object *o)
{
	cleanup_json struct json_object *a = without_times(was), *b = without_times(o);
	struct json_object *had = json_get(was, "metadata/managedFields");

	if (had && json_object_equal(a, b))
		json_add(apistore_objects_meta(o), "managedFields", json_copy(had));
}
