/* SPDX-License-Identifier: MIT */
/*
 * Server-side apply as in structured-merge-diff. Entries are read from the object, changed as sets
 * of paths, and written back sorted. Fields that identify the object (name, uid, version and the
 * like) have no owner.
 */
#include "config.h"

#include "tec/apireq/managed.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#include "decode.h"

#define ENTRIES_MAX 200
#define UPDATES_MAX 10 /* entries of updates; the oldest are merged beyond that */
#define LAST        "kubectl.kubernetes.io/last-applied-configuration"

/* ---- entries */

struct entry {
	char *manager, *version, *sub, *time; /* owned; time NULL: none */
	bool apply;
	struct apireq_fieldset fields;
};

struct entries {
	struct entry *at; /* owned */
	size_t n;
};

static void entry_fini(struct entry *e)
{
	free(e->manager);
	free(e->version);
	free(e->sub);
	free(e->time);
	apireq_fieldset_fini(&e->fields);
}

static void entries_fini(struct entries *l)
{
	for (size_t i = 0; i < l->n; i++)
		entry_fini(&l->at[i]);
	free(l->at);
	*l = (struct entries){NULL, 0};
}
#define cleanup_entries __attribute__((cleanup(entries_fini)))

/* Drop entries that own no fields. This closes the gaps in place, which moves later entries: pointers
 * to them become invalid. */
static void entries_drop_empty(struct entries *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->at[i].fields.n == 0)
			entry_fini(&l->at[i]);
		else
			l->at[n++] = l->at[i];
	}
	l->n = n;
}

/* Find an entry. An apply is found in any apiVersion, an update only in the same. NULL: none. */
static struct entry *entries_find(
	const struct entries *l, const struct apireq_manager *m, bool apply)
{
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->at[i];

		if (e->apply == apply && str_eq(e->manager, m->name) && str_eq(e->sub, m->sub) &&
			(apply || str_eq(e->version, m->version)))
			return e;
	}
	return NULL;
}

/* The same, or append an empty entry. The array may move, so pointers to other entries become
 * invalid. */
static struct entry *entries_get(struct entries *l, const struct apireq_manager *m, bool apply)
{
	struct entry *e = entries_find(l, m, apply);

	if (e)
		return e;
	ARRAY_GROW(l->at, l->n);
	l->at[l->n] = (struct entry){.manager = xstrdup(m->name),
		.version = xstrdup(m->version),
		.sub = xstrdup(m->sub),
		.apply = apply};
	return &l->at[l->n++];
}

static void entry_set_time(struct entry *e, const char *time)
{
	free(e->time);
	e->time = time ? xstrdup(time) : NULL;
}

/* Read one entry; a second one of the same manager replaces the first. The errors are
 * kube-apiserver's. */
static int read_entry(struct json_object *o, struct entries *out, struct err *err)
{
	const char *op = json_get_str(o, "operation"), *version = json_get_str(o, "apiVersion"),
		   *manager = json_get_str(o, "manager"), *sub = json_get_str(o, "subresource"),
		   *time = json_get_str(o, "time");
	cleanup_json struct json_object *none = json_obj();
	struct json_object *fields = json_get(o, "fieldsV1");
	struct apireq_fieldset set;
	struct apireq_manager m = {manager ? manager : "", version, sub ? sub : "", NULL};
	struct entry *e;

	if (out->n == ENTRIES_MAX)
		return err_set(err, ERR_INVALID, "more than %d field managers", ENTRIES_MAX);
	if (!str_eq(op, "Apply") && !str_eq(op, "Update"))
		return err_set(err, ERR_INVALID, "operation must be `Apply` or `Update`");
	if (!version || !*version)
		return err_set(err, ERR_INVALID, "apiVersion must not be empty");
	if (!str_eq(json_get_str(o, "fieldsType"), "FieldsV1"))
		return err_set(err, ERR_INVALID, "missing or invalid fieldsType");
	if (apireq_fieldset_read(fields ? fields : none, &set, err) < 0)
		return -1;
	e = entries_get(out, &m, str_eq(op, "Apply"));
	apireq_fieldset_fini(&e->fields);
	e->fields = set;
	entry_set_time(e, time);
	return 0;
}

/* Read all entries, or none: an object with one malformed entry has no known owners. */
static int entries_read(struct json_object *o, struct entries *out, struct err *err)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields");

	*out = (struct entries){NULL, 0};
	for (size_t i = 0; i < json_len(a); i++)
		if (read_entry(json_at(a, i), out, err) < 0) {
			entries_fini(out);
			return -1;
		}
	return 0;
}

/* Compare by operation, time, manager, version and subresource, so that the order is total and an
 * object without a change gets the same text again. */
static int entries_by_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = (int)y->apply - (int)x->apply;

	if (!c)
		c = strcmp(x->time ? x->time : "", y->time ? y->time : "");
	if (!c)
		c = strcmp(x->manager, y->manager);
	if (!c)
		c = strcmp(x->version, y->version);
	return c ? c : strcmp(x->sub, y->sub);
}

/* Sort the entries and write them into the object. None means no member managedFields at all, as
 * after a reset by the client. */
static void entries_write(struct entries *l, struct json_object *o)
{
	struct json_object *m = store_objects_meta(o), *a;

	json_drop(m, "managedFields");
	entries_drop_empty(l);
	if (l->n == 0)
		return;
	qsort(l->at, l->n, sizeof(*l->at), entries_by_order);
	a = json_arr();
	/* Members are in kube-apiserver's order; empty ones are omitted. */
	for (size_t i = 0; i < l->n; i++) {
		const struct entry *e = &l->at[i];
		struct json_object *to = json_obj();

		json_add_str(to, "manager", e->manager[0] ? e->manager : NULL);
		json_add_str(to, "operation", e->apply ? "Apply" : "Update");
		json_add_str(json_add_str(to, "apiVersion", e->version), "time", e->time);
		json_add_str(to, "fieldsType", "FieldsV1");
		json_add(to, "fieldsV1", apireq_fieldset_json(&e->fields));
		json_push(a, json_add_str(to, "subresource", e->sub[0] ? e->sub : NULL));
	}
	json_add(m, "managedFields", a);
}

/* ---- fields without an owner */

/* Remove the fields that have no owner from a set, the same as in kube-apiserver. */
static void strip(struct apireq_fieldset *s)
{
	static const char *const below_meta[] = {"f:creationTimestamp", "f:generation",
		"f:managedFields", "f:name", "f:namespace", "f:resourceVersion", "f:selfLink",
		"f:uid"};
	cleanup_apireq_fieldset struct apireq_fieldset out = {NULL, 0};
	struct apireq_fieldset meta = {NULL, 0};

	for (size_t i = 0; i < ARRAY_LEN(below_meta); i++)
		apireq_fieldset_add(&meta, below_meta[i], true, NULL);
	apireq_fieldset_add(&out, "f:apiVersion", true, NULL);
	apireq_fieldset_add(&out, "f:kind", true, NULL);
	apireq_fieldset_add(&out, "f:metadata", true, &meta);
	apireq_fieldset_change(s, APIREQ_WITHOUT, &out);
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
static struct entries entries_after(const struct store_kind *k, const struct apireq_manager *m,
	struct json_object *was, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields"), *first;
	size_t n = json_len(a);
	struct err err = ERR_INIT;
	struct entries l = {NULL, 0};

	/* kube-apiserver does not notice an empty list in a custom resource. */
	if (!m->sub[0] && a && (n > 0 || !k->schema || !k->schema->crd)) {
		first = n == 1 ? json_at(a, 0) : NULL;
		if (n == 0 ||
			(json_object_is_type(first, json_type_object) && json_len(first) == 0))
			return l;
		if (entries_read(o, &l, &err) == 0)
			return l;
		err_clear(&err);
	}
	if (was && entries_read(was, &l, &err) < 0)
		l = (struct entries){NULL, 0};
	return l;
}

/* Merge the oldest updates of the same apiVersion into one entry, as kube-apiserver does, so that
 * the list does not grow with every client. */
static void cap_updates(struct entries *l)
{
	size_t updates = 0, first = l->n;

	for (size_t i = 0; i < l->n; i++)
		updates += !l->at[i].apply;
	if (updates <= UPDATES_MAX)
		return;
	qsort(l->at, l->n, sizeof(*l->at),
		entries_by_order); /* applies first, then updates from the oldest */
	for (size_t i = 0; i < l->n && updates > UPDATES_MAX; i++) {
		struct entry *e = &l->at[i], *to = first < l->n ? &l->at[first] : NULL;

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
		apireq_fieldset_change(&to->fields, APIREQ_UNION, &e->fields);
		entry_set_time(to, e->time);
		apireq_fieldset_fini(&e->fields);
		updates--;
	}
	entries_drop_empty(l);
}

/* Remove changed and removed fields from the entries of all other managers. taken: fields added or
 * modified. */
static void take_from_others(struct entries *l, const struct entry *self,
	const struct apireq_fieldset *taken, const struct apireq_fieldset *removed)
{
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->at[i];

		if (e == self)
			continue;
		apireq_fieldset_change(&e->fields, APIREQ_WITHOUT, taken);
		apireq_fieldset_change(&e->fields, APIREQ_WITHOUT, removed);
	}
}

/* Record an update from was to o in the entries; neither has managedFields. */
static void note_update(const struct apireq_place *p, const struct apireq_manager *m,
	struct json_object *was, struct json_object *o, struct entries *l)
{
	struct apireq_delta d = apireq_typed_compare(p, was, o);
	cleanup_apireq_fieldset struct apireq_fieldset taken =
		apireq_fieldset_combine(&d.modified, APIREQ_UNION, &d.added);
	struct entry *self;

	/* All entries lose the changed fields, the writer's included, whose own entry gets them
	 * back below. */
	take_from_others(l, NULL, &taken, &d.removed);
	strip(&taken);
	if (taken.n > 0) {
		self = entries_get(l, m, false);
		apireq_fieldset_change(&self->fields, APIREQ_UNION, &taken);
		entry_set_time(self, m->now);
	}
	apireq_delta_fini(&d);
	entries_drop_empty(l);
	cap_updates(l);
}

/* Update the entries after a write that replaces or patches the object. */
void apireq_managed_update(const struct apireq_place *p, const struct store_kind *k,
	const struct apireq_manager *m, struct json_object *was, struct json_object *o)
{
	cleanup_entries struct entries l = entries_after(k, m, was, o);
	cleanup_json struct json_object *before = was ? without_managed(was) : json_obj(),
					*bare = NULL;

	if (!was || l.n > 0) { /* ownership is tracked from creation or the first apply only */
		bare = without_managed(o);
		note_update(p, m, before, bare, &l);
	}
	entries_write(&l, o);
}

/* ---- conflicts of an apply */

/* The message and the causes while conflicts are listed. */
struct conflicts {
	const char *with; /* the manager whose fields come next; borrowed */
	struct strbuf text;
	struct json_object *causes; /* owned */
};

/* Add one conflicting field to the causes and to the text. */
static void tell_path(void *arg, const char *path)
{
	struct conflicts *c = arg;
	cleanup_free char *message = xasprintf("conflict with %s", c->with);
	struct json_object *cause = json_add_str(json_obj(), "reason", "FieldManagerConflict");

	json_push(c->causes, json_add_str(json_add_str(cause, "message", message), "field", path));
	strbuf_addf(&c->text, "\n- %s", path);
}

/* List the conflicting fields of one entry, and describe its manager as kube-apiserver does. */
static void tell(struct conflicts *c, const struct entry *e, const struct apireq_fieldset *fields)
{
	cleanup_strbuf struct strbuf who = STRBUF_INIT;

	json_quote(&who, e->manager, strlen(e->manager));
	if (e->sub[0]) {
		strbuf_adds(&who, " with subresource ");
		json_quote(&who, e->sub, strlen(e->sub));
	}
	if (!e->apply)
		strbuf_addf(&who, " using %s", e->version);
	c->with = strbuf_str(&who);
	strbuf_addf(&c->text, "%sconflicts with %s:", c->text.len ? "\n" : "", c->with);
	apireq_fieldset_each(fields, tell_path, c);
}

/* Sort by manager, as kube-apiserver lists conflicts. */
static int by_manager(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a,
			   *y = *(const struct entry *const *)b;
	int c = strcmp(x->manager, y->manager);

	return c ? c : entries_by_order(x, y);
}

/* Refuse fields in taken, but not in allowed (NULL: empty), that entries other than self own. A
 * manager may own fields in several entries, one per version; each gives a conflict of its own. A
 * single conflict is described in one line, several in a list, as in kube-apiserver. */
static int check_conflicts(const struct entries *l, const struct entry *self,
	const struct apireq_fieldset *taken, const struct apireq_fieldset *allowed,
	struct apireq_answer *refused)
{
	struct conflicts c = {NULL, STRBUF_INIT, json_arr()};
	cleanup_free const struct entry **sorted = xcalloc(l->n, sizeof(*sorted));
	cleanup_free char *message = NULL;
	struct json_object *first;
	size_t n;

	for (size_t i = 0; i < l->n; i++)
		sorted[i] = &l->at[i];
	qsort(sorted, l->n, sizeof(*sorted), by_manager);
	for (size_t i = 0; i < l->n; i++) {
		cleanup_apireq_fieldset struct apireq_fieldset both = {NULL, 0};

		if (sorted[i] != self)
			both = apireq_fieldset_combine(&sorted[i]->fields, APIREQ_BOTH, taken);
		if (allowed)
			apireq_fieldset_change(&both, APIREQ_WITHOUT, allowed);
		if (both.n > 0)
			tell(&c, sorted[i], &both);
	}
	n = json_len(c.causes);
	first = json_at(c.causes, 0);
	message = n == 1 ? xasprintf("Apply failed with 1 conflict: %s: %s",
				   json_get_str(first, "message"), json_get_str(first, "field"))
			 : xasprintf("Apply failed with %zu conflicts: %s", n, strbuf_str(&c.text));
	strbuf_fini(&c.text);
	if (n > 0)
		*refused = apireq_status_conflicts(message, c.causes);
	else
		json_object_put(c.causes);
	return n > 0 ? -1 : 0;
}

/* ---- applies */

/* Return the paths of all fields in an object, with the members on the way to them. */
static struct apireq_fieldset parents_in(const struct apireq_place *p, struct json_object *o)
{
	cleanup_apireq_fieldset struct apireq_fieldset raw = apireq_typed_fields(p, o);

	return apireq_typed_with_parents(p, &raw);
}

/* Remove fields that this manager applied before and no longer applies, unless another manager owns
 * them. The first round computes what is left with the fields of all managers put back; the second
 * restricts the removal to fields that this manager had applied. */
static void prune(const struct apireq_place *p, const struct entries *l,
	const struct apireq_fieldset *last, struct json_object **merged)
{
	cleanup_apireq_fieldset struct apireq_fieldset was = apireq_typed_with_parents(p, last),
						       all = parents_in(p, *merged),
						       owned = {NULL, 0}, managed = {NULL, 0};
	struct json_object *out = json_copy(*merged);

	/* Start without any field that it applied before ... */
	apireq_typed_remove(p, out, &was);
	/* ... put back the fields that a manager owns now ... */
	for (size_t i = 0; i < l->n; i++)
		apireq_fieldset_change(&owned, APIREQ_UNION, &l->at[i].fields);
	managed = apireq_typed_with_parents(p, &owned);
	for (int round = 0; round < 2; round++) {
		cleanup_apireq_fieldset struct apireq_fieldset keep = parents_in(p, out),
							       gone = {NULL, 0};

		if (round == 0)
			apireq_fieldset_change(&keep, APIREQ_UNION, &managed);
		gone = apireq_fieldset_combine(&all, APIREQ_WITHOUT, &keep);
		/* ... and remove nothing that was never this manager's. */
		if (round == 1)
			apireq_fieldset_change(&gone, APIREQ_BOTH, &was);
		json_object_put(out);
		out = json_copy(*merged);
		apireq_typed_remove(p, out, &gone);
	}
	json_object_put(*merged);
	*merged = out;
}

struct apply {
	const struct apireq_place *p;
	const struct apireq_manager *m;
	struct json_object *live, *conf; /* without managedFields */
	struct entries *l;
	const struct apireq_fieldset *allowed; /* fields that cannot conflict; NULL: none */
	bool force;
};

/* Merge, prune and compare. Returns the new object with the entries updated. NULL: *refused is
 * set. */
static struct json_object *try_apply(const struct apply *a, struct apireq_answer *refused)
{
	struct json_object *o = apireq_typed_merge(a->p, a->live, a->conf);
	struct entry *self = entries_get(a->l, a->m, true);
	cleanup_apireq_fieldset struct apireq_fieldset last = {NULL, 0}, taken = {NULL, 0};
	struct apireq_delta d;

	/* The set of the previous apply is moved out, to see what this one leaves out. */
	last = self->fields;
	self->fields = apireq_typed_fields(a->p, a->conf);
	strip(&self->fields);
	free(self->version);
	self->version = xstrdup(a->m->version);
	if (last.n > 0)
		prune(a->p, a->l, &last, &o);
	d = apireq_typed_compare(a->p, a->live, o);
	taken = apireq_fieldset_combine(&d.modified, APIREQ_UNION, &d.added);
	if (!a->force && check_conflicts(a->l, self, &taken, a->allowed, refused) < 0) {
		json_object_put(o);
		o = NULL;
	} else {
		take_from_others(a->l, self, &taken, &d.removed);
		if (!json_object_equal(a->live, o))
			entry_set_time(self, a->m->now);
		entries_drop_empty(a->l);
	}
	apireq_delta_fini(&d);
	return o;
}

/* Collect the fields that client-side "kubectl apply" set, by its annotation, and that nobody
 * changed since. A server-side apply by kubectl may take them over without a conflict. False:
 * none. */
static bool allowed_to_kubectl(const struct apply *a, struct apireq_fieldset *out)
{
	struct json_object *notes = json_get_obj(a->live, "metadata/annotations"), *v = NULL;
	cleanup_json struct json_object *last = NULL;
	struct apireq_delta d;
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
	*out = apireq_typed_fields(a->p, last);
	d = apireq_typed_compare(a->p, last, a->live);
	apireq_fieldset_change(out, APIREQ_WITHOUT, &d.modified);
	apireq_fieldset_change(out, APIREQ_WITHOUT, &d.added);
	apireq_fieldset_change(out, APIREQ_WITHOUT, &d.removed);
	apireq_delta_fini(&d);
	return true;
}

/* Update the annotation of client-side apply, if the object has it, so that the user can go back to
 * client-side apply. */
static void follow_last_applied(
	const struct apireq_manager *m, struct json_object *conf, struct json_object *o)
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
static char *undeclared(const struct store_kind *k, struct json_object *conf)
{
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	cleanup_json struct json_object *copy = json_copy(conf);
	struct err err = ERR_INIT;

	if (!k->schema || k->schema->crd)
		return NULL;
	(void)!apireq_decode(k->schema, copy, &unknown, &err);
	return unknown.n == 0 ? NULL
			      : xasprintf(".%s: field not declared in schema", unknown.text[0]);
}

/* Check the applied configuration. The answers, 500 included, are those of kube-apiserver. */
static int check_conf(const struct apireq_place *p, const struct store_kind *k,
	const struct apireq_manager *m, struct json_object *conf, struct apireq_answer *refused)
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
		*refused = apireq_status_refusal(400, "invalid object type: %s", gvk);
	else if (json_get(conf, "metadata/managedFields"))
		*refused = apireq_status_refusal(400, "metadata.managedFields must be nil");
	else if (meta && !json_object_is_type(meta, json_type_object))
		*refused = apireq_status_refusal(500,
			"failed to create typed patch object (/; %s): .metadata: expected map",
			gvk);
	else if ((why = apireq_typed_check(p, conf)) || (why = undeclared(k, conf)))
		*refused = apireq_status_refusal(500,
			"failed to create typed patch object (%s/%s; %s): %s", ns ? ns : "",
			name ? name : "", gvk, why);
	else
		return 0;
	return -1;
}

/* Return the part of the configuration that this request applies: only the status for the
 * subresource, or else all but the status. */
static struct json_object *part_of(
	const struct store_kind *k, const struct apireq_manager *m, struct json_object *conf)
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
struct json_object *apireq_managed_apply(const struct apireq_place *p, const struct store_kind *k,
	const struct apireq_manager *m, struct json_object *live, struct json_object *conf,
	bool force, struct apireq_answer *refused)
{
	cleanup_json struct json_object *bare = live ? without_managed(live) : json_obj(),
					*part = NULL;
	cleanup_apireq_fieldset struct apireq_fieldset allowed = {NULL, 0};
	cleanup_entries struct entries l = {NULL, 0};
	struct err err = ERR_INIT;
	struct apply a = {.p = p, .m = m, .live = bare, .l = &l, .force = force};
	struct json_object *o;

	if (check_conf(p, k, m, conf, refused) < 0)
		return NULL;
	if (live && entries_read(live, &l, &err) < 0) {
		*refused =
			apireq_status_refusal(500, "failed to decode managed fields: %s", err.text);
		return NULL;
	}
	if (live && l.n == 0) {
		cleanup_json struct json_object *nothing = json_obj(), *had = part_of(k, m, bare);
		const struct apireq_manager before = {
			"before-first-apply", m->version, m->sub, m->now};

		note_update(p, &before, nothing, had, &l);
	}
	/* From here on, only the part that this request may change counts. */
	a.conf = part = part_of(k, m, conf);
	if (l.n == ENTRIES_MAX && !entries_find(&l, m, true)) {
		*refused = apireq_status_refusal(
			400, "the object already has %d field managers, the maximum", ENTRIES_MAX);
		return NULL;
	}
	if (allowed_to_kubectl(&a, &allowed))
		a.allowed = &allowed;
	o = try_apply(&a, refused);
	if (o) {
		follow_last_applied(m, conf, o);
		entries_write(&l, o);
	}
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

void apireq_managed_keep_times(struct json_object *was, struct json_object *o)
{
	cleanup_json struct json_object *a = without_times(was), *b = without_times(o);
	struct json_object *had = json_get(was, "metadata/managedFields");

	if (had && json_object_equal(a, b))
		json_add(store_objects_meta(o), "managedFields", json_copy(had));
}
