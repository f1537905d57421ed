/* SPDX-License-Identifier: MIT */
/*
 * The entries are read from the object, changed as sets of paths, and written back in their order.
 * What names the object itself (its name, uid, version and the like) is nobody's.
 */
#include "config.h"

#include "tec/apistore/managed.h"

#include <stdlib.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/cause.h"

#include "apistore_internal.h"

#define UPDATES_MAX 10 /* entries of updates; older ones become one */
#define ENTRIES_MAX 200
#define LAST        "kubectl.kubernetes.io/last-applied-configuration"

struct entry {
	char *manager, *version, *sub, *time; /* owned; time NULL: none */
	bool apply;
	struct apistore_fieldset fields;
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
	apistore_fieldset_fini(&e->fields);
}

static void entries_fini(struct entries *l)
{
	for (size_t i = 0; i < l->n; i++)
		entry_fini(&l->at[i]);
	free(l->at);
	*l = (struct entries){NULL, 0};
}
#define cleanup_entries __attribute__((cleanup(entries_fini)))

static struct entry *add_entry(
	struct entries *l, const char *manager, const char *version, const char *sub, bool apply)
{
	ARRAY_GROW(l->at, l->n);
	l->at[l->n] = (struct entry){.manager = xstrdup(manager),
		.version = xstrdup(version),
		.sub = xstrdup(sub),
		.apply = apply};
	return &l->at[l->n++];
}

static void drop_empty(struct entries *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (apistore_fieldset_is_empty(&l->at[i].fields))
			entry_fini(&l->at[i]);
		else
			l->at[n++] = l->at[i];
	}
	l->n = n;
}

/* An applier is the same in every version. */
static struct entry *find_entry(
	const struct entries *l, const struct apistore_manager *m, bool apply)
{
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->at[i];

		if (e->apply == apply && str_eq(e->manager, m->name) && str_eq(e->sub, m->sub) &&
			(apply || str_eq(e->version, m->version)))
			return e;
	}
	return NULL;
}

static void set_time(struct entry *e, const char *time)
{
	free(e->time);
	e->time = time ? xstrdup(time) : NULL;
}

/* ---- reading and writing */

static int read_entry(struct json_object *o, struct entries *out, struct err *err)
{
	const char *op = json_get_str(o, "operation"), *version = json_get_str(o, "apiVersion"),
		   *manager = json_get_str(o, "manager"), *sub = json_get_str(o, "subresource"),
		   *time = json_get_str(o, "time");
	cleanup_json struct json_object *none = json_obj();
	struct json_object *fields = json_get(o, "fieldsV1");
	struct apistore_fieldset set;
	struct apistore_manager m = {manager ? manager : "", version, sub ? sub : "", NULL};
	struct entry *e;

	if (out->n == ENTRIES_MAX)
		return err_set(err, ERR_INVALID, "there are more than %d managers", ENTRIES_MAX);
	if (!str_eq(op, "Apply") && !str_eq(op, "Update"))
		return err_set(err, ERR_INVALID, "operation must be `Apply` or `Update`");
	if (!version || !*version)
		return err_set(err, ERR_INVALID, "apiVersion must not be empty");
	if (!str_eq(json_get_str(o, "fieldsType"), "FieldsV1"))
		return err_set(err, ERR_INVALID, "missing or invalid fieldsType");
	if (apistore_fieldset_read(fields ? fields : none, &set, err) < 0)
		return -1;
	e = find_entry(out, &m, str_eq(op, "Apply"));
	if (!e)
		e = add_entry(out, m.name, version, m.sub, str_eq(op, "Apply"));
	apistore_fieldset_become(&e->fields, set);
	set_time(e, time);
	return 0;
}

static int read_entries(struct json_object *o, struct entries *out, struct err *err)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields");

	*out = (struct entries){NULL, 0};
	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (read_entry(json_object_array_get_idx(a, i), out, err) < 0) {
			entries_fini(out);
			return -1;
		}
	return 0;
}

static int by_order(const void *a, const void *b)
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

static struct json_object *entry_json(const struct entry *e)
{
	struct json_object *o = json_add_str(json_obj(), "manager", e->manager);

	json_add_str(o, "operation", e->apply ? "Apply" : "Update");
	json_add_str(json_add_str(o, "apiVersion", e->version), "time", e->time);
	json_add_str(o, "fieldsType", "FieldsV1");
	json_add(o, "fieldsV1", apistore_fieldset_json(&e->fields));
	return json_add_str(o, "subresource", e->sub[0] ? e->sub : NULL);
}

static void write_entries(struct entries *l, struct json_object *o)
{
	struct json_object *m = apistore_objects_meta(o), *a;

	json_object_object_del(m, "managedFields");
	drop_empty(l);
	if (l->n == 0)
		return;
	qsort(l->at, l->n, sizeof(*l->at), by_order);
	a = json_arr();
	for (size_t i = 0; i < l->n; i++)
		json_push(a, entry_json(&l->at[i]));
	json_add(m, "managedFields", a);
}

/* A client that resets them, or says what they are, is believed; one that knows nothing of them does
 * not lose them. */
static struct entries entries_after(
	const struct apistore_manager *m, struct json_object *was, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/managedFields"), *first;
	size_t n = a ? json_object_array_length(a) : 0;
	struct err err = ERR_INIT;
	struct entries l = {NULL, 0};

	if (!m->sub[0] && a) {
		first = n == 1 ? json_object_array_get_idx(a, 0) : NULL;
		if (n == 0 || (n == 1 && json_object_object_length(first) == 0))
			return l;
		if (read_entries(o, &l, &err) == 0)
			return l;
		err_clear(&err);
	}
	if (was && read_entries(was, &l, &err) < 0)
		l = (struct entries){NULL, 0};
	return l;
}

/* ---- what is nobody's */

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

static void strip(struct apistore_fieldset *s)
{
	cleanup_apistore_fieldset struct apistore_fieldset out = unowned();

	apistore_fieldset_become(s, apistore_fieldset_without(s, &out));
}

/* managedFields are no part of what is compared and merged. */
static struct json_object *without_managed(struct json_object *o)
{
	struct json_object *copy = json_copy(o), *m = json_get_obj(copy, "metadata");

	if (m)
		json_object_object_del(m, "managedFields");
	return copy;
}

/* A new object of a built-in kind is compared with what its type always has. */
static struct json_object *nothing_yet(const struct apistore_kind *k)
{
#define POD      "\"spec\":{\"containers\":null}"
#define TEMPLATE "\"template\":{\"metadata\":{}," POD "}"
	static const struct {
		const char *kind, *text;
	} kinds[] = {{"Deployment", "{\"spec\":{\"strategy\":{}," TEMPLATE "}}"},
		{"ReplicaSet", "{\"spec\":{" TEMPLATE "}}"}, {"Job", "{\"spec\":{" TEMPLATE "}}"},
		{"Pod", "{" POD "}"}, {"Service", "{\"spec\":{}}"}, {"Namespace", "{\"spec\":{}}"},
		{"PersistentVolumeClaim", "{\"spec\":{\"resources\":{}}}"},
		{"Ingress", "{\"spec\":{}}"}, {"NetworkPolicy", "{\"spec\":{\"podSelector\":{}}}"},
		{"PodDisruptionBudget", "{\"spec\":{}}"}, {"Lease", "{\"spec\":{}}"},
		{"CustomResourceDefinition", "{\"spec\":{\"names\":{}}}"}};
	struct err err = ERR_INIT;

	for (size_t i = 0; !k->custom && i < ARRAY_LEN(kinds); i++)
		if (str_eq(k->kind, kinds[i].kind))
			return json_parse(
				kinds[i].text, strlen(kinds[i].text), &json_limits_public, &err);
	return json_obj();
}

/* ---- updates */

/* Several of the oldest updates become one entry. */
static void cap_updates(struct entries *l)
{
	size_t updates = 0, first = l->n;

	for (size_t i = 0; i < l->n; i++)
		updates += !l->at[i].apply;
	if (updates <= UPDATES_MAX)
		return;
	qsort(l->at, l->n, sizeof(*l->at), by_order); /* the applies, then the oldest update */
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
		apistore_fieldset_become(
			&to->fields, apistore_fieldset_union(&to->fields, &e->fields));
		set_time(to, e->time);
		apistore_fieldset_fini(&e->fields);
		updates--;
	}
	drop_empty(l);
}

/* What was changed or went is no other's any more. taken: what is new or different now. */
static void take_from_others(struct entries *l, const struct entry *self,
	const struct apistore_fieldset *taken, const struct apistore_fieldset *removed)
{
	for (size_t i = 0; i < l->n; i++) {
		struct entry *e = &l->at[i];

		if (e == self)
			continue;
		apistore_fieldset_become(&e->fields, apistore_fieldset_without(&e->fields, taken));
		apistore_fieldset_become(
			&e->fields, apistore_fieldset_without(&e->fields, removed));
	}
}

/* was and o have no managedFields. */
static void note_update(const struct apistore_place *p, const struct apistore_manager *m,
	struct json_object *was, struct json_object *o, struct entries *l)
{
	struct apistore_delta d = apistore_typed_compare(p, was, o);
	cleanup_apistore_fieldset struct apistore_fieldset taken =
		apistore_fieldset_union(&d.modified, &d.added);
	struct entry *self;

	take_from_others(l, NULL, &taken, &d.removed);
	strip(&taken);
	if (!apistore_fieldset_is_empty(&taken)) {
		self = find_entry(l, m, false);
		if (!self)
			self = add_entry(l, m->name, m->version, m->sub, false);
		apistore_fieldset_become(
			&self->fields, apistore_fieldset_union(&self->fields, &taken));
		set_time(self, m->now);
	}
	apistore_delta_fini(&d);
	drop_empty(l);
	cap_updates(l);
}

void apistore_managed_update(const struct apistore_place *p, const struct apistore_kind *k,
	const struct apistore_manager *m, struct json_object *was, struct json_object *o)
{
	cleanup_entries struct entries l = entries_after(m, was, o);
	cleanup_json struct json_object *before = was ? without_managed(was) : nothing_yet(k),
					*bare = NULL;

	if (was && l.n == 0) { /* nobody is noted before the first apply */
		write_entries(&l, o);
		return;
	}
	bare = without_managed(o);
	note_update(p, m, before, bare, &l);
	write_entries(&l, o);
}

/* ---- conflicts */

struct conflict {
	const struct entry *with; /* borrowed */
	struct apistore_fieldset fields;
};

struct conflicts {
	struct conflict *at; /* owned, sorted by manager */
	size_t n;
};

static void conflicts_fini(struct conflicts *c)
{
	for (size_t i = 0; i < c->n; i++)
		apistore_fieldset_fini(&c->at[i].fields);
	free(c->at);
	*c = (struct conflicts){NULL, 0};
}

static int by_manager(const void *a, const void *b)
{
	const struct entry *x = ((const struct conflict *)a)->with,
			   *y = ((const struct conflict *)b)->with;
	int c = strcmp(x->manager, y->manager);

	return c ? c : by_order(x, y);
}

static struct conflicts find_conflicts(const struct entries *l, const struct entry *self,
	const struct apistore_fieldset *taken, const struct apistore_fieldset *allowed)
{
	struct conflicts c = {NULL, 0};

	for (size_t i = 0; i < l->n; i++) {
		struct apistore_fieldset both;

		if (&l->at[i] == self)
			continue;
		both = apistore_fieldset_both(&l->at[i].fields, taken);
		if (allowed)
			apistore_fieldset_become(&both, apistore_fieldset_without(&both, allowed));
		if (apistore_fieldset_is_empty(&both))
			continue;
		ARRAY_GROW(c.at, c.n);
		c.at[c.n++] = (struct conflict){&l->at[i], both};
	}
	if (c.n > 1)
		qsort(c.at, c.n, sizeof(*c.at), by_manager);
	return c;
}

struct telling {
	const char *with;
	struct strbuf text;
	struct json_object *causes;
	size_t n;
};

static void tell_path(void *arg, const char *path)
{
	struct telling *t = arg;
	cleanup_free char *message = xasprintf("conflict with %s", t->with);
	struct json_object *cause = json_add_str(json_obj(), "reason", "FieldManagerConflict");

	json_push(t->causes, json_add_str(json_add_str(cause, "message", message), "field", path));
	strbuf_addf(&t->text, "\n- %s", path);
	t->n++;
}

static char *who(const struct entry *e)
{
	struct strbuf b = STRBUF_INIT;

	schema_quote_go(&b, e->manager, strlen(e->manager));
	if (e->sub[0]) {
		strbuf_adds(&b, " with subresource ");
		schema_quote_go(&b, e->sub, strlen(e->sub));
	}
	if (!e->apply)
		strbuf_addf(&b, " using %s", e->version);
	return strbuf_steal(&b);
}

static struct apistore_answer refuse_conflicts(const struct conflicts *c)
{
	struct telling t = {NULL, STRBUF_INIT, json_arr(), 0};
	cleanup_free char *message = NULL;
	struct apistore_answer a;

	for (size_t i = 0; i < c->n; i++) {
		cleanup_free char *with = who(c->at[i].with);

		t.with = with;
		strbuf_addf(&t.text, "%sconflicts with %s:", i ? "\n" : "", with);
		apistore_fieldset_each(&c->at[i].fields, tell_path, &t);
	}
	if (t.n == 1) {
		struct json_object *one = json_object_array_get_idx(t.causes, 0);

		message = xasprintf("Apply failed with 1 conflict: %s: %s",
			json_get_str(one, "message"), json_get_str(one, "field"));
	} else {
		message =
			xasprintf("Apply failed with %zu conflicts: %s", t.n, strbuf_str(&t.text));
	}
	strbuf_fini(&t.text);
	a = apistore_status_conflicts(message, t.causes);
	return a;
}

/* ---- applies */

/* Takes away what the manager applied before and applies no more, unless another has it. */
static void prune(const struct apistore_place *p, const struct entries *l,
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

	/* Without all that it applied ... */
	apistore_typed_remove(p, out, &was);
	/* ... and with what somebody has, ... */
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
		/* ... and with what was never this manager's. */
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
	struct entries *l;
	const struct apistore_fieldset *allowed; /* conflicts that do not count; NULL: none */
	bool force;
};

/* NULL: conflicts, which borrow the entries. */
static struct json_object *try_apply(const struct apply *a, struct conflicts *conflicts)
{
	struct json_object *o = apistore_typed_merge(a->p, a->live, a->conf);
	struct entry *self = find_entry(a->l, a->m, true);
	cleanup_apistore_fieldset struct apistore_fieldset last = {NULL, 0}, taken = {NULL, 0};
	struct apistore_delta d;

	if (!self)
		self = add_entry(a->l, a->m->name, a->m->version, a->m->sub, true);
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
		*conflicts = find_conflicts(a->l, self, &taken, a->allowed);
	if (conflicts->n > 0) {
		json_object_put(o);
		o = NULL;
	} else {
		take_from_others(a->l, self, &taken, &d.removed);
		if (!json_object_equal(a->live, o))
			set_time(self, a->m->now);
		drop_empty(a->l);
	}
	apistore_delta_fini(&d);
	return o;
}

/* What kubectl applied from its own side and nobody changed since: kubectl may take it over. */
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

/* kubectl's own note of what it applied follows what it applies here. */
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
		json_object_object_del(v, LAST);
	if (v && json_object_object_length(v) == 0)
		json_object_object_del(json_get(copy, "metadata"), "annotations");
	schema_json_go(&text, copy);
	strbuf_addc(&text, '\n');
	json_add_str(notes, LAST, strbuf_str(&text));
	json_object_put(copy);
	strbuf_fini(&text);
}

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
	else if ((why = apistore_typed_check(p, conf)))
		*refused = apistore_status_refusal(500, NULL,
			"failed to create typed patch object (%s/%s; %s): %s", ns ? ns : "",
			name ? name : "", gvk, why);
	else
		return 0;
	return -1;
}

/* What the apply is about: the status alone, or all but it. */
static struct json_object *part_of(
	const struct apistore_kind *k, const struct apistore_manager *m, struct json_object *conf)
{
	struct json_object *o, *status = NULL;

	if (!m->sub[0]) {
		o = json_copy(conf);
		if (k->status)
			json_object_object_del(o, "status");
		return o;
	}
	o = json_obj();
	if (json_object_object_get_ex(conf, "status", &status))
		json_add(o, "status", json_copy(status));
	return o;
}

struct json_object *apistore_managed_apply(const struct apistore_place *p,
	const struct apistore_kind *k, const struct apistore_manager *m, struct json_object *live,
	struct json_object *conf, bool force, struct apistore_answer *refused)
{
	cleanup_json struct json_object *bare = live ? without_managed(live) : json_obj(),
					*part = NULL;
	cleanup_apistore_fieldset struct apistore_fieldset allowed = {NULL, 0};
	cleanup_entries struct entries l = {NULL, 0};
	struct conflicts conflicts = {NULL, 0};
	struct err err = ERR_INIT;
	struct apply a = {.p = p, .m = m, .live = bare, .l = &l, .force = force};
	struct json_object *o;

	if (check_conf(p, k, m, conf, refused) < 0)
		return NULL;
	if (live && read_entries(live, &l, &err) < 0) {
		*refused = apistore_status_refusal(
			500, NULL, "failed to decode managed fields: %s", err.text);
		return NULL;
	}
	if (live && l.n == 0) {
		cleanup_json struct json_object *nothing = nothing_yet(k);
		const struct apistore_manager before = {
			"before-first-apply", m->version, m->sub, m->now};

		note_update(p, &before, nothing, bare, &l);
	}
	a.conf = part = part_of(k, m, conf);
	if (l.n == ENTRIES_MAX && !find_entry(&l, m, true)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"the object has %d field managers, which is the most", ENTRIES_MAX);
		return NULL;
	}
	if (allowed_to_kubectl(&a, &allowed))
		a.allowed = &allowed;
	o = try_apply(&a, &conflicts);
	if (o) {
		follow_last_applied(m, conf, o);
		write_entries(&l, o);
	} else {
		*refused = refuse_conflicts(&conflicts);
	}
	conflicts_fini(&conflicts);
	return o;
}
