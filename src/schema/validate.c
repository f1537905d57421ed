/* SPDX-License-Identifier: MIT */
/*
 * Types, values and lists of an object are checked first, then the rules, which do not run while
 * types are wrong. What an update leaves unchanged is not held against it ("ratcheting", KEP-4008):
 * its causes are dropped again.
 */
#include "config.h"

#include <string.h>

#include "schema_internal.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/structural.h"

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

/* Lengths in schemas are in code points: count all bytes but UTF-8 continuation bytes. */
static size_t characters(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* At most one of length and pattern is reported: a wrong length explains the other. */
static void check_text(struct walk *w, const struct schema_node *s, struct json_object *v)
{
	const char *text = json_object_get_string(v);
	size_t len = (size_t)json_object_get_string_len(v);
	int64_t n = (int64_t)characters(text, len), us;

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

/* Limits of crd/ are far below 2^53, so a double compares them exactly. */
static void check_number(struct walk *w, const struct schema_node *s, struct json_object *v)
{
	double d = json_object_get_double(v);

	if (s->minimum.set && d < (double)s->minimum.value)
		fault(w, SCHEMA_INVALID, v, "must be at least %lld", (long long)s->minimum.value);
	if (s->maximum.set && d > (double)s->maximum.value)
		fault(w, SCHEMA_INVALID, v, "must be at most %lld", (long long)s->maximum.value);
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
	cleanup_free char *type = schema_node_mismatch(t->s, t->now);
	size_t before = w->causes->n;

	if (type)
		fault(w, SCHEMA_TYPE_INVALID, NULL, "%s", type);
	switch (json_object_get_type(t->now)) {
	case json_type_string:
		check_text(w, t->s, t->now);
		break;
	case json_type_int:
	case json_type_double:
		check_number(w, t->s, t->now);
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
	check_enum(w, t->s, t->now);
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

/* These problems leave the types intact, so rules can run in spite of them. */
static bool blocks_rules(const struct schema_causes *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->cause[i].problem != SCHEMA_INVALID &&
			c->cause[i].problem != SCHEMA_DUPLICATE &&
			c->cause[i].problem != SCHEMA_FORBIDDEN)
			return true;
	return false;
}

/* A write of /status checks only that part, but runs all rules, which may relate status to spec. */
void schema_validate(const struct schema_node *s, struct json_object *o, struct json_object *old,
	bool status, struct schema_causes *causes, struct schema_texts *warnings)
{
	struct walk w = {STRBUF_INIT, causes, warnings};
	struct correlated whole = {s, o, old, NULL, old != NULL, -1}, part = whole;
	struct json_object *v = json_get(o, "status");

	if (status) {
		part = member_of(&whole, schema_node_member(s, "status"), "status", v);
		schema_path_add(&w.path, "status");
	}
	if (part.s && part.now)
		check(&w, &part);
	schema_path_cut(&w.path, 0);
	if (s->has_rules && blocks_rules(causes))
		schema_cause_add(causes, SCHEMA_INVALID, NULL, NULL,
			"the rules were not checked: correct the fields above first");
	else
		run_rules(&w, &whole);
	strbuf_fini(&w.path);
}
