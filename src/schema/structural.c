/* SPDX-License-Identifier: MIT */
/*
 * Read an openAPIV3Schema of crd/ into nodes, patterns and rules, and apply it. The files are part
 * of the program: tests/schema/test_crd.c checks that they contain no keyword that is not read here.
 *
 * Pruning drops unknown members, and known ones that are null. Its recursion is as deep as the
 * object, which its parser has limited.
 *
 * Types, values and lists of an object are checked first, then the rules, which do not run while
 * types are wrong. What an update leaves unchanged is not held against it ("ratcheting", KEP-4008):
 * its causes are dropped again.
 */
#include "config.h"

#include "tec/schema/structural.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* ---- what is asked of a node */

static const char *const type_names[] = {[SCHEMA_TYPE_NONE] = "",
	[SCHEMA_TYPE_OBJECT] = "object",
	[SCHEMA_TYPE_ARRAY] = "array",
	[SCHEMA_TYPE_STRING] = "string",
	[SCHEMA_TYPE_INTEGER] = "integer",
	[SCHEMA_TYPE_BOOLEAN] = "boolean"};

char *schema_node_mismatch(const struct schema_node *s, struct json_object *v)
{
	static const enum schema_node_type types[] = {[json_type_object] = SCHEMA_TYPE_OBJECT,
		[json_type_array] = SCHEMA_TYPE_ARRAY,
		[json_type_string] = SCHEMA_TYPE_STRING,
		[json_type_int] = SCHEMA_TYPE_INTEGER,
		[json_type_boolean] = SCHEMA_TYPE_BOOLEAN};
	enum json_type is = json_object_get_type(v);
	/* Kubernetes knows int64 only. */
	bool huge = is == json_type_int && json_object_get_uint64(v) > INT64_MAX;

	if ((huge ? SCHEMA_TYPE_NONE : types[is]) == s->type)
		return NULL;
	return xasprintf("must be of type %s, not %s", type_names[s->type], json_type_to_name(is));
}

/* ---- reading */

/* Also frees a node whose construction failed halfway. */
void schema_structural_free(struct schema_node *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_props; i++)
		schema_structural_free(s->prop[i].node);
	for (size_t i = 0; i < s->n_rules; i++)
		schema_cel_free(s->rule[i].cel);
	schema_structural_free(s->items);
	schema_regex_free(s->pattern);
	free(s->prop);
	free(s->rule);
	json_object_put(s->schema);
	free(s);
}

/* `set` tells an absent limit from a limit of 0. */
static struct schema_limit read_limit(struct json_object *schema, const char *name)
{
	return (struct schema_limit){json_get(schema, name) != NULL, json_get_int(schema, name, 0)};
}

/* Read all keywords about single values; only the pattern can fail. */
static int read_values(struct schema_node *n, struct err *err)
{
	struct json_object *s = n->schema;
	struct err why = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(type_names); i++)
		if (str_eq(type_names[i], json_get_str(s, "type")))
			n->type = (enum schema_node_type)i;
	n->date_time = str_eq(json_get_str(s, "format"), "date-time");
	n->max_length = read_limit(s, "maxLength");
	n->min_length = read_limit(s, "minLength");
	n->max_items = read_limit(s, "maxItems");
	n->min_items = read_limit(s, "minItems");
	n->maximum = read_limit(s, "maximum");
	n->minimum = read_limit(s, "minimum");
	n->enumeration = json_get(s, "enum");
	n->required = json_get(s, "required");
	n->pattern_text = json_get_str(s, "pattern");
	if (!n->pattern_text)
		return 0;
	n->pattern = schema_regex_new(n->pattern_text, strlen(n->pattern_text), &why);
	return n->pattern
		       ? 0
		       : err_set(err, ERR_INVALID, "pattern '%s': %s", n->pattern_text, why.text);
}

/* Sorted by name, for causes in a fixed order, too. */
static int read_props(struct schema_node *n, struct err *err)
{
	json_each (json_get(n->schema, "properties"), name, v) {
		struct schema_node *p = schema_structural_new(v, err);

		if (!p)
			return -1;
		ARRAY_GROW(n->prop, n->n_props);
		n->prop[n->n_props++] = (struct schema_prop){name, p};
		n->has_rules = n->has_rules || p->has_rules;
	}
	if (n->n_props)
		qsort(n->prop, n->n_props, sizeof(*n->prop), schema_prop_order);
	return 0;
}

/* A rule is compiled against the schema of its own node, whose members must be read before.
 * fieldPath begins with a dot, which is skipped. */
static int read_rules(struct schema_node *n, struct err *err)
{
	struct json_object *list = json_get(n->schema, "x-kubernetes-validations");

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *o = json_at(list, i);
		const char *path = json_get_str(o, "fieldPath"), *text = json_get_str(o, "rule");
		struct err why = ERR_INIT;
		struct schema_cel *cel = schema_cel_new(text ? text : "", n, &why);

		if (!cel)
			return err_set(err, ERR_INVALID, "rule '%s': %s", text, why.text);
		ARRAY_GROW(n->rule, n->n_rules);
		n->rule[n->n_rules++] = (struct schema_rule){
			cel, json_get_str(o, "message"), path ? path + 1 : NULL};
		n->has_rules = true;
	}
	return 0;
}

/* Rules come last: compiling them looks members up. has_rules is inherited upwards, so that a walk
 * skips branches without rules. */
struct schema_node *schema_structural_new(struct json_object *schema, struct err *err)
{
	struct schema_node *n = xcalloc(1, sizeof(*n));
	const char *type = json_get_str(schema, "x-kubernetes-list-type");
	struct json_object *keys = json_get(schema, "x-kubernetes-list-map-keys"),
			   *items = json_get(schema, "items");

	n->schema = json_object_get(schema);
	n->merge.type = str_eq(type, "set")   ? SCHEMA_MERGE_SET
			: str_eq(type, "map") ? SCHEMA_MERGE_MAP
					      : SCHEMA_MERGE_PLAIN;
	/* Up to four keys, but only the first one is compared below: crd/ needs no more. */
	for (size_t i = 0; i < json_len(keys) && i < ARRAY_LEN(n->merge.keys); i++)
		n->merge.keys[i] = json_object_get_string(json_at(keys, i));
	if (items)
		n->items = schema_structural_new(items, err);
	n->has_rules = n->items && n->items->has_rules;
	if (!items == !n->items && read_values(n, err) == 0 && read_props(n, err) == 0 &&
		read_rules(n, err) == 0)
		return n;
	schema_structural_free(n);
	return NULL;
}

/* ---- pruning */

struct prune {
	struct strbuf path;
	struct schema_texts *unknown;
};

/* Report the path of a dropped member, as kube-apiserver names it in a warning. */
static void note(struct prune *p, const char *name)
{
	schema_texts_add(p->unknown, "%s%s%s", strbuf_str(&p->path), p->path.len ? "." : "", name);
}

/* Drop all members that are not in the list, and report them. */
static void keep_only(struct prune *p, struct json_object *o, const char *const *names)
{
	json_each (o, name, v) {
		const char *const *n = names;

		while (*n && !str_eq(name, *n))
			n++;
		if (*n)
			continue;
		note(p, name);
		json_drop(o, name);
	}
}

/* The elements of a list in metadata have a fixed set of members, too. */
static void prune_elements(
	struct prune *p, struct json_object *meta, const char *list, const char *const *names)
{
	struct json_object *a = json_get_arr(meta, list);
	size_t before = schema_path_add(&p->path, list);

	for (size_t i = 0; i < json_len(a); i++) {
		size_t here = schema_path_index(&p->path, i);

		keep_only(p, json_at(a, i), names);
		schema_path_cut(&p->path, here);
	}
	schema_path_cut(&p->path, before);
}

/* Prune metadata: ObjectMeta is the same for every kind, and no schema of a CRD describes it. */
static void prune_metadata(struct prune *p, struct json_object *meta)
{
	static const char *const names[] = {"annotations", "creationTimestamp",
		"deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
		"generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
		"resourceVersion", "selfLink", "uid", NULL};
	static const char *const owner[] = {
		"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid", NULL};
	static const char *const managed[] = {"apiVersion", "fieldsType", "fieldsV1", "manager",
		"operation", "subresource", "time", NULL};
	size_t before = schema_path_add(&p->path, "metadata");

	keep_only(p, meta, names);
	prune_elements(p, meta, "ownerReferences", owner);
	prune_elements(p, meta, "managedFields", managed);
	schema_path_cut(&p->path, before);
}

/* Prune a value. Without a schema nothing is known, so every member is dropped. */
static void prune(
	struct prune *p, struct json_object *v, const struct schema_node *s, bool is_whole)
{
	json_each (v, name, member) {
		const struct schema_node *child = schema_node_member(s, name);
		size_t before;

		if (is_whole && str_eq(name, "metadata")) {
			prune_metadata(p, member);
		} else if (is_whole && (str_eq(name, "apiVersion") || str_eq(name, "kind"))) {
			continue;
		} else if (!child) {
			note(p, name);
			json_drop(v, name);
		} else if (!member) {
			json_drop(v, name);
		} else {
			before = schema_path_add(&p->path, name);
			prune(p, member, child, false);
			schema_path_cut(&p->path, before);
		}
	}
	if (!json_object_is_type(v, json_type_array))
		return;
	for (size_t i = 0; i < json_len(v); i++) {
		size_t before = schema_path_index(&p->path, i);

		prune(p, json_at(v, i), s ? s->items : NULL, false);
		schema_path_cut(&p->path, before);
	}
}

/* Sorted, since clients show the paths as warnings in this order. */
void schema_prune(const struct schema_node *s, struct json_object *o, struct schema_texts *unknown)
{
	struct prune p = {STRBUF_INIT, unknown};

	prune(&p, o, s, true);
	strbuf_fini(&p.path);
	schema_texts_sort(unknown);
}

/* ---- values and their previous versions */

struct walk {
	struct strbuf path;
	struct schema_causes *causes;
	struct schema_texts *warnings; /* NULL: not wanted */
};

/*
 * A value and its previous version in an update, where the two can be correlated: members by name,
 * elements of a list of type map by their key, other elements not at all. Equality is computed only
 * where something is wrong, and kept.
 */
struct correlated {
	const struct schema_node *s;
	struct json_object *now, *old;
	struct correlated *parent; /* the nearest ancestor that is correlated */
	bool known;                /* old is the previous version of now */
	signed char equal;         /* -1: not compared yet */
};

/* A value without an old version belongs to the nearest correlated ancestor. */
static struct correlated child_of(struct correlated *t, const struct schema_node *s,
	struct json_object *now, struct json_object *old)
{
	return (struct correlated){s, now, old, t->known ? t : t->parent, old != NULL, -1};
}

/* With an uncorrelated parent, no member of it is correlated. */
static struct correlated member_of(struct correlated *t, const struct schema_node *s,
	const char *name, struct json_object *now)
{
	return child_of(t, s, now, t->known ? json_get(t->old, name) : NULL);
}

/* Return what identifies an element of a set or of a map. */
static struct json_object *key_of(const struct schema_node *list, struct json_object *v)
{
	return list->merge.type == SCHEMA_MERGE_MAP ? json_get(v, list->merge.keys[0]) : v;
}

/* Find the old element with the same key; positions do not count. */
static struct correlated element_of(struct correlated *t, size_t i)
{
	struct json_object *now = json_at(t->now, i), *key = key_of(t->s, now), *old = NULL;

	if (t->known && t->s->merge.type == SCHEMA_MERGE_MAP && key)
		for (size_t j = 0; !old && j < json_len(t->old); j++)
			if (json_object_equal(key, key_of(t->s, json_at(t->old, j))))
				old = json_at(t->old, j);
	return child_of(t, t->s->items, now, old);
}

/* An uncorrelated value is unchanged when its nearest correlated ancestor is. */
static bool is_unchanged(struct correlated *t)
{
	if (!t->known)
		return t->parent && is_unchanged(t->parent);
	if (t->equal < 0)
		t->equal = (signed char)json_object_equal(t->now, t->old);
	return t->equal;
}

/* ---- types and values */

static void fault(struct walk *w, enum schema_problem problem, struct json_object *value,
	const char *fmt, ...) PRINTF_LIKE(4, 5);
static void fault(struct walk *w, enum schema_problem problem, struct json_object *value,
	const char *fmt, ...)
{
	cleanup_strbuf struct strbuf detail = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	schema_cause_add(
		w->causes, problem, strbuf_str(&w->path), value, "%s", strbuf_str(&detail));
}

/* At most one of length and pattern is reported: a wrong length explains the other. Lengths are in
 * code points: all bytes but UTF-8 continuation bytes. */
static void check_text(struct walk *w, const struct schema_node *s, struct json_object *v)
{
	const char *text = json_object_get_string(v);
	size_t len = (size_t)json_object_get_string_len(v);
	int64_t n = 0, us;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	if (s->max_length.set && n > s->max_length.value)
		fault(w, SCHEMA_TOO_LONG, NULL, "must have at most %lld characters",
			(long long)s->max_length.value);
	else if (s->min_length.set && n < s->min_length.value)
		fault(w, SCHEMA_INVALID, v, "must have at least %lld characters",
			(long long)s->min_length.value);
	else if (s->pattern && !schema_regex_match(s->pattern, text, len))
		fault(w, SCHEMA_INVALID, v, "must match '%s'", s->pattern_text);
	if (s->date_time && (strlen(text) != len || clock_parse(text, &us) < 0))
		fault(w, SCHEMA_TYPE_INVALID, v, "must be a time such as 2026-01-02T03:04:05Z");
}

/* Enums of crd/ are strings, hence the quotes. */
static void check_enum(struct walk *w, const struct schema_node *s, struct json_object *v)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	if (!s->enumeration)
		return;
	for (size_t i = 0; i < json_len(s->enumeration); i++) {
		struct json_object *want = json_at(s->enumeration, i);

		if (json_object_equal(want, v))
			return;
		strbuf_addf(&all, "%s\"%s\"", i ? ", " : "", json_object_get_string(want));
	}
	fault(w, SCHEMA_UNSUPPORTED, v, "supported values: %s", strbuf_str(&all));
}

/* Return the index of the first element whose key an earlier one has; the length when there is
 * none. */
static size_t find_duplicate(const struct schema_node *s, struct json_object *list)
{
	size_t n = json_len(list);

	for (size_t i = 0; i < n; i++) {
		struct json_object *key = key_of(s, json_at(list, i));

		for (size_t j = 0; key && j < i; j++)
			if (json_object_equal(key, key_of(s, json_at(list, j))))
				return i;
	}
	return n;
}

static void check(struct walk *w, struct correlated *t);

/* Check a list. One that is too long is not inspected further: it may have any size. Duplicates
 * that the old list had already are accepted. */
static void check_list(struct walk *w, struct correlated *t)
{
	const struct schema_node *s = t->s;
	size_t n = json_len(t->now), before, twice;

	if (s->max_items.set && (int64_t)n > s->max_items.value) {
		fault(w, SCHEMA_TOO_MANY, NULL, "must have at most %lld items, has %zu",
			(long long)s->max_items.value, n);
		return;
	}
	if (s->min_items.set && (int64_t)n < s->min_items.value)
		fault(w, SCHEMA_INVALID, NULL, "must have at least %lld items, has %zu",
			(long long)s->min_items.value, n);
	for (size_t i = 0; s->items && i < n; i++) {
		struct correlated element = element_of(t, i);

		before = schema_path_index(&w->path, i);
		check(w, &element);
		schema_path_cut(&w->path, before);
	}
	if (s->merge.type == SCHEMA_MERGE_PLAIN ||
		(t->known && find_duplicate(s, t->old) < json_len(t->old)))
		return;
	twice = find_duplicate(s, t->now);
	if (twice == n)
		return;
	before = schema_path_index(&w->path, twice);
	fault(w, SCHEMA_DUPLICATE, key_of(s, json_at(t->now, twice)), "%s", "");
	schema_path_cut(&w->path, before);
}

/* Members are checked in the order of the schema, then required ones that are missing. */
static void check_object(struct walk *w, struct correlated *t)
{
	for (size_t i = 0; i < t->s->n_props; i++) {
		const char *name = t->s->prop[i].name;
		struct json_object *v = NULL;
		struct correlated member;
		size_t before;

		if (!json_object_object_get_ex(t->now, name, &v))
			continue;
		member = member_of(t, t->s->prop[i].node, name, v);
		before = schema_path_add(&w->path, name);
		check(w, &member);
		schema_path_cut(&w->path, before);
	}
	for (size_t i = 0; i < json_len(t->s->required); i++) {
		const char *name = json_object_get_string(json_at(t->s->required, i));
		size_t before;

		if (json_object_object_get_ex(t->now, name, NULL))
			continue;
		before = schema_path_add(&w->path, name);
		fault(w, SCHEMA_REQUIRED, NULL, "%s", "");
		schema_path_cut(&w->path, before);
	}
}

/* Check a value and everything below it. Causes are taken back at the end if the value did not
 * change, because they were there before the update. */
static void check(struct walk *w, struct correlated *t)
{
	const struct schema_node *s = t->s;
	cleanup_free char *type = schema_node_mismatch(s, t->now);
	size_t before = w->causes->n;
	double d;

	if (type)
		fault(w, SCHEMA_TYPE_INVALID, NULL, "%s", type);
	switch (json_object_get_type(t->now)) {
	case json_type_string:
		check_text(w, s, t->now);
		break;
	case json_type_int:
	case json_type_double:
		/* Limits of crd/ are far below 2^53, so a double compares them exactly. */
		d = json_object_get_double(t->now);
		if (s->minimum.set && d < (double)s->minimum.value)
			fault(w, SCHEMA_INVALID, t->now, "must be at least %lld",
				(long long)s->minimum.value);
		if (s->maximum.set && d > (double)s->maximum.value)
			fault(w, SCHEMA_INVALID, t->now, "must be at most %lld",
				(long long)s->maximum.value);
		break;
	case json_type_array:
		check_list(w, t);
		break;
	case json_type_object:
		check_object(w, t);
		break;
	case json_type_boolean:
	case json_type_null:
		break;
	}
	check_enum(w, s, t->now);
	if (w->causes->n > before && t->known && is_unchanged(t))
		schema_causes_cut(w->causes, before);
}

/* ---- rules */

/* Report a rule that does not hold. A rule about the present value alone is only a warning where
 * nothing changed. */
static void rule_failed(struct walk *w, struct correlated *t, const struct schema_rule *r)
{
	cleanup_strbuf struct strbuf field = STRBUF_INIT;

	strbuf_adds(&field, strbuf_str(&w->path));
	if (r->field_path)
		schema_path_add(&field, r->field_path);
	if (schema_cel_uses_old(r->cel) || !is_unchanged(t))
		schema_cause_add(
			w->causes, SCHEMA_INVALID, strbuf_str(&field), NULL, "%s", r->message);
	else if (w->warnings)
		schema_texts_add(w->warnings, "%s: %s", strbuf_str(&field), r->message);
}

/* Rules with oldSelf need an old value, so they do not run on create or for new elements. */
static void run_rules(struct walk *w, struct correlated *t)
{
	const struct schema_node *s = t->s;

	if (!t->now || !s->has_rules)
		return;
	for (size_t i = 0; i < s->n_rules; i++)
		if ((t->known || !schema_cel_uses_old(s->rule[i].cel)) &&
			!schema_cel_holds(s->rule[i].cel, t->now, t->known ? t->old : NULL))
			rule_failed(w, t, &s->rule[i]);
	for (size_t i = 0; i < s->n_props; i++) {
		const char *name = s->prop[i].name;
		struct correlated member =
			member_of(t, s->prop[i].node, name, json_get(t->now, name));
		size_t before = schema_path_add(&w->path, name);

		run_rules(w, &member);
		schema_path_cut(&w->path, before);
	}
	for (size_t i = 0; s->items && i < json_len(t->now); i++) {
		struct correlated element = element_of(t, i);
		size_t before = schema_path_index(&w->path, i);

		run_rules(w, &element);
		schema_path_cut(&w->path, before);
	}
}

/* A write of /status checks only that part, but runs all rules, which may relate status to spec. */
void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	bool status, struct schema_causes *causes, struct schema_texts *warnings)
{
	struct walk w = {STRBUF_INIT, causes, warnings};
	struct correlated whole = {s, o, old, NULL, old != NULL, -1}, part = whole;
	struct json_object *v = json_get(o, "status");
	bool types_wrong = false;

	if (status) {
		part = member_of(&whole, schema_node_member(s, "status"), "status", v);
		schema_path_add(&w.path, "status");
	}
	if (part.s && part.now)
		check(&w, &part);
	schema_path_cut(&w.path, 0);
	for (size_t i = 0; i < causes->n; i++)
		types_wrong |= causes->cause[i].problem != SCHEMA_INVALID &&
			       causes->cause[i].problem != SCHEMA_DUPLICATE &&
			       causes->cause[i].problem != SCHEMA_FORBIDDEN;
	if (s->has_rules && types_wrong)
		schema_cause_add(causes, SCHEMA_INVALID, NULL, NULL,
			"the rules were not checked: correct the fields above first");
	else
		run_rules(&w, &whole);
	strbuf_fini(&w.path);
}
