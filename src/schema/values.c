/* SPDX-License-Identifier: MIT */
/*
 * Types and values of an object against its schema, in the order and with the words of
 * kube-openapi's validator. count is its "match count": of several alternatives that all fail, the
 * causes of the one with most successful checks are told.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

struct values {
	struct strbuf path;
	const char *prefix; /* of the field, not of the words: "status" */
};

struct result {
	struct schema_causes causes;
	size_t count;
};

static void check(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r);

static char *field_of(const struct values *w)
{
	const char *path = strbuf_str(&w->path);

	if (*path == '.')
		path++;
	return xasprintf("%s%s%s", w->prefix, *w->prefix && *path ? "." : "", path);
}

static void fault(struct values *w, struct result *r, enum schema_problem problem,
	struct json_object *value, const char *fmt, ...) PRINTF_LIKE(5, 6);
static void fault(struct values *w, struct result *r, enum schema_problem problem,
	struct json_object *value, const char *fmt, ...)
{
	cleanup_free char *field = field_of(w);
	cleanup_strbuf struct strbuf detail = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&detail, fmt, ap);
	va_end(ap);
	schema_cause_add(&r->causes, problem, field, value, "%s%s%s",
		problem == SCHEMA_UNSUPPORTED || problem == SCHEMA_TOO_LONG ||
				problem == SCHEMA_TOO_MANY
			? ""
			: strbuf_str(&w->path),
		problem == SCHEMA_UNSUPPORTED || problem == SCHEMA_TOO_LONG ||
				problem == SCHEMA_TOO_MANY
			? ""
			: " in body ",
		strbuf_str(&detail));
}

/* Too many or too few elements or members: the value is how many there are. */
static void count_fault(
	struct values *w, struct result *r, bool many, size_t n, const char *of, int64_t limit)
{
	cleanup_json struct json_object *value = json_object_new_int64((int64_t)n);

	if (many)
		fault(w, r, SCHEMA_TOO_MANY, value, "must have at most %lld %s", (long long)limit,
			limit == 1 ? "item" : "items");
	else
		fault(w, r, SCHEMA_INVALID, value, "should have at least %lld %s", (long long)limit,
			of);
}

/* A message about the whole, without a field. */
static void whole_fault(struct values *w, struct result *r, const char *what, const char *more)
{
	cleanup_strbuf struct strbuf quoted = STRBUF_INIT;

	schema_quote_go(&quoted, strbuf_str(&w->path), w->path.len);
	schema_cause_add_text(&r->causes, SCHEMA_INVALID, w->prefix, "", "%s %s%s",
		strbuf_str(&quoted), what, more);
}

static void merge(struct result *to, struct result *from)
{
	for (size_t i = 0; i < from->causes.n; i++) {
		if (to->causes.n >= SCHEMA_CAUSES_MAX || to->causes.bytes >= SCHEMA_CAUSES_BYTES) {
			to->causes.cut = true;
			break;
		}
		ARRAY_GROW(to->causes.cause, to->causes.n);
		to->causes.cause[to->causes.n++] = from->causes.cause[i];
		to->causes.bytes += strlen(from->causes.cause[i].message);
		from->causes.cause[i] = (struct schema_cause){.field = NULL};
	}
	to->count += from->count;
	schema_causes_fini(&from->causes);
}

/* ---- type */

static bool is_integer(double d)
{
	double near = fabs(d - trunc(d));

	if (!(fabs(d) <= 9007199254740991.0))
		return false;
	return near == 0 || near / (fabs(d) + fabs(trunc(d))) < 1e-9;
}

static bool is_double(struct json_object *v)
{
	return json_object_is_type(v, json_type_double) ||
	       (json_object_is_type(v, json_type_int) && json_object_get_uint64(v) > INT64_MAX);
}

static bool allows(const struct schema_node *s, enum schema_node_type t)
{
	return s->type == t ||
	       (s->int_or_string && (t == SCHEMA_TYPE_INTEGER || t == SCHEMA_TYPE_STRING));
}

static enum schema_node_type type_of(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_boolean:
		return SCHEMA_TYPE_BOOLEAN;
	case json_type_double:
		return SCHEMA_TYPE_NUMBER;
	case json_type_int:
		return is_double(v) ? SCHEMA_TYPE_NUMBER : SCHEMA_TYPE_INTEGER;
	case json_type_object:
		return SCHEMA_TYPE_OBJECT;
	case json_type_array:
		return SCHEMA_TYPE_ARRAY;
	case json_type_string:
		return SCHEMA_TYPE_STRING;
	case json_type_null:
		break;
	}
	return SCHEMA_TYPE_NONE;
}

static void type_fault(struct values *w, struct result *r, const char *want, const char *is)
{
	cleanup_json struct json_object *value = json_object_new_string(is);

	fault(w, r, SCHEMA_TYPE_INVALID, value, "must be of type %s: \"%s\"", want, is);
}

static bool type_fits(const struct schema_node *s, struct json_object *v)
{
	enum schema_node_type is = type_of(v);

	return allows(s, is) ||
	       (is == SCHEMA_TYPE_NUMBER && allows(s, SCHEMA_TYPE_INTEGER) &&
		       is_integer(json_object_get_double(v))) ||
	       (is == SCHEMA_TYPE_INTEGER && allows(s, SCHEMA_TYPE_NUMBER));
}

static void check_type(
	struct values *w, const struct schema_node *s, struct json_object *v, struct result *r)
{
	const char *want = s->int_or_string ? "integer,string" : schema_type_name(s->type);
	enum schema_node_type is = type_of(v);
	bool typed = s->type || s->int_or_string;

	if (!v) {
		if (typed && !s->nullable)
			type_fault(w, r, want, "null");
		else
			r->count++;
		return;
	}
	if (!typed && !s->format)
		return;
	r->count++;
	if (s->format && is != SCHEMA_TYPE_STRING && is != SCHEMA_TYPE_ARRAY && !type_fits(s, v)) {
		type_fault(w, r, s->format,
			is == SCHEMA_TYPE_INTEGER  ? "int64"
			: is == SCHEMA_TYPE_NUMBER ? "float64"
						   : "");
		return;
	}
	if ((s->format && !allows(s, SCHEMA_TYPE_NUMBER) && !allows(s, SCHEMA_TYPE_INTEGER) &&
		    (is == SCHEMA_TYPE_STRING || is == SCHEMA_TYPE_ARRAY)) ||
		type_fits(s, v))
		r->count++;
	else
		type_fault(w, r, want, schema_type_name(is));
}

/* ---- alternatives */

static void check_any(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r)
{
	struct result best = {.count = 0};
	bool found = false;

	for (size_t i = 0; i < s->any_of.n && !found; i++) {
		struct result one = {.count = 0};

		check(w, s->any_of.node[i], v, t, &one);
		found = one.causes.n == 0;
		if (found || i == 0 || one.count > best.count) {
			schema_causes_fini(&best.causes);
			best = one;
		} else
			schema_causes_fini(&one.causes);
	}
	if (s->any_of.n && !found)
		whole_fault(w, r, "must validate at least one schema (anyOf)", "");
	merge(r, &best);
}

static void check_one(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r)
{
	struct result best = {.count = 0};
	cleanup_free char *more = NULL;
	size_t valid = 0;

	for (size_t i = 0; i < s->one_of.n; i++) {
		struct result one = {.count = 0};
		bool better;

		check(w, s->one_of.node[i], v, t, &one);
		better = one.causes.n == 0 ? valid++ == 0
					   : valid == 0 && (i == 0 || one.count > best.count);
		if (better) {
			schema_causes_fini(&best.causes);
			best = one;
		} else
			schema_causes_fini(&one.causes);
	}
	if (s->one_of.n == 0)
		return;
	more = valid ? xasprintf("Found %zu valid alternatives", valid)
		     : xstrdup("Found none valid");
	if (valid != 1)
		whole_fault(w, r, "must validate one and only one schema (oneOf). ", more);
	if (valid > 1)
		schema_causes_fini(&best.causes);
	else
		merge(r, &best);
}

static void check_all(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r)
{
	size_t valid = 0;

	for (size_t i = 0; i < s->all_of.n; i++) {
		struct result one = {.count = 0};

		check(w, s->all_of.node[i], v, t, &one);
		valid += one.causes.n == 0;
		merge(r, &one);
	}
	if (valid != s->all_of.n)
		whole_fault(w, r, "must validate all the schemas (allOf)",
			valid ? "" : ". None validated");
	if (s->negated) {
		struct result one = {.count = 0};

		check(w, s->negated, v, t, &one);
		if (one.causes.n == 0)
			whole_fault(w, r, "must not validate the schema (not)", "");
		schema_causes_fini(&one.causes);
	}
}

/* ---- values */

static size_t runes(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

static void check_string(
	struct values *w, const struct schema_node *s, struct json_object *v, struct result *r)
{
	const char *text = json_object_get_string(v);
	size_t len = (size_t)json_object_get_string_len(v), n = runes(text, len);

	if (s->max_length.set && (int64_t)n > s->max_length.value)
		fault(w, r, SCHEMA_TOO_LONG, NULL, "may not be more than %lld %s",
			(long long)s->max_length.value,
			s->max_length.value == 1 ? "byte" : "bytes");
	else if (s->min_length.set && (int64_t)n < s->min_length.value)
		fault(w, r, SCHEMA_INVALID, v, "should be at least %lld chars long",
			(long long)s->min_length.value);
	else if (s->pattern && !schema_regex_match(s->pattern, text, len))
		fault(w, r, SCHEMA_INVALID, v, "should match '%s'", s->pattern_text);
	if (!s->format)
		return;
	r->count++;
	if (!schema_format_holds(s->format, text, len)) {
		cleanup_strbuf struct strbuf quoted = STRBUF_INIT;

		schema_quote_go(&quoted, text, len);
		fault(w, r, SCHEMA_TYPE_INVALID, v, "must be of type %s: %s", s->format,
			strbuf_str(&quoted));
	}
}

/* What C leaves undefined: a number beyond int64_t is its nearest one. */
static int64_t whole_of(double d)
{
	if (d >= 0x1p63)
		return INT64_MAX;
	return d >= -0x1p63 ? (int64_t)d : INT64_MIN;
}

static void add_number(struct strbuf *out, double limit, bool whole)
{
	cleanup_json struct json_object *o =
		whole ? json_object_new_int64(whole_of(limit)) : json_object_new_double(limit);

	schema_json_go(out, o);
}

/* A limit of an integer is an integer. */
static void check_bound(struct values *w, const struct schema_bound *b, struct json_object *v,
	bool upper, struct result *r)
{
	bool whole = !is_double(v), good;
	cleanup_strbuf struct strbuf limit = STRBUF_INIT;

	if (!b->set)
		return;
	if (whole) {
		int64_t x = json_object_get_int64(v), y = whole_of(b->value);

		good = upper ? x < y : x > y;
		good = good || (x == y && !b->exclusive);
	} else {
		double x = json_object_get_double(v);

		good = upper ? x < b->value : x > b->value;
		good = good || (x == b->value && !b->exclusive);
	}
	if (good)
		return;
	add_number(&limit, b->value, whole);
	fault(w, r, SCHEMA_INVALID, v, "should be %s than %s%s", upper ? "less" : "greater",
		b->exclusive ? "" : "or equal to ", strbuf_str(&limit));
}

static void check_number(
	struct values *w, const struct schema_node *s, struct json_object *v, struct result *r)
{
	const struct schema_bound *m = &s->multiple_of;
	double d = json_object_get_double(v);
	bool whole = !is_double(v), good = true;
	cleanup_strbuf struct strbuf factor = STRBUF_INIT;

	if (m->set && whole && whole_of(m->value) <= 0) { /* a fraction: what Go makes of it */
		cleanup_free char *field = field_of(w);
		cleanup_json struct json_object *value = json_object_new_int64(whole_of(m->value));

		schema_cause_add(&r->causes, SCHEMA_INVALID, field, value,
			"factor MultipleOf declared for %s must be positive: %lld",
			strbuf_str(&w->path), (long long)whole_of(m->value));
	} else if (m->set && whole)
		good = json_object_get_int64(v) % whole_of(m->value) == 0;
	else if (m->set && m->value > 0)
		good = is_integer(m->value < 1 ? 1 / m->value * d : d / m->value);
	if (!good) {
		add_number(&factor, m->value, whole);
		fault(w, r, SCHEMA_INVALID, v, "should be a multiple of %s", strbuf_str(&factor));
	}
	check_bound(w, &s->minimum, v, false, r);
	check_bound(w, &s->maximum, v, true, r);
	r->count++;
}

static void check_array(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r)
{
	size_t n = json_object_array_length(v);

	for (size_t i = 0; s->items && i < n; i++) {
		struct json_object *e = json_object_array_get_idx(v, i);
		struct schema_then then = schema_then_element(t, e, s->items);
		size_t before = schema_path_index(&w->path, i);
		struct result one = {.count = 0};

		check(w, s->items, e, &then, &one);
		if (one.causes.n && then.known && schema_then_equal(&then))
			schema_causes_fini(&one.causes);
		merge(r, &one);
		schema_path_cut(&w->path, before);
	}
	if (s->min_items.set && (int64_t)n < s->min_items.value)
		count_fault(w, r, false, n, "items", s->min_items.value);
	if (s->max_items.set && (int64_t)n > s->max_items.value)
		count_fault(w, r, true, n, "", s->max_items.value);
	r->count++;
}

static bool enum_has(struct json_object *want, struct json_object *v)
{
	if (json_object_is_type(v, json_type_double) && json_object_is_type(want, json_type_int))
		return whole_of(json_object_get_double(v)) == json_object_get_int64(want);
	if (json_object_is_type(v, json_type_int) && json_object_is_type(want, json_type_double))
		return json_object_get_double(v) == json_object_get_double(want);
	return want && json_object_equal(want, v);
}

static void check_enum(
	struct values *w, const struct schema_node *s, struct json_object *v, struct result *r)
{
	size_t n = s->enumeration ? json_object_array_length(s->enumeration) : 0;
	cleanup_strbuf struct strbuf values = STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		struct json_object *want = json_object_array_get_idx(s->enumeration, i);

		cleanup_strbuf struct strbuf text = STRBUF_INIT;

		if (enum_has(want, v))
			return;
		if (json_object_is_type(want, json_type_string))
			strbuf_add(&text, json_object_get_string(want),
				(size_t)json_object_get_string_len(want));
		else
			schema_json_go(&text, want);
		strbuf_adds(&values, i ? ", " : "");
		schema_quote_go(&values, strbuf_str(&text), text.len);
	}
	if (n)
		fault(w, r, SCHEMA_UNSUPPORTED, v, "supported values: %s", strbuf_str(&values));
}

/* ---- objects */

static void check_member(struct values *w, const struct schema_node *s, const char *name,
	struct json_object *v, struct schema_then *t, struct result *r)
{
	struct schema_then then = schema_then_member(t, name, v, s);
	size_t before = schema_path_add(&w->path, name);
	struct result one = {.count = 0};

	check(w, s, v, &then, &one);
	if (one.causes.n && then.known && schema_then_equal(&then))
		schema_causes_fini(&one.causes);
	merge(r, &one);
	schema_path_cut(&w->path, before);
}

static void check_unnamed(struct values *w, const struct schema_node *s, struct json_object *o,
	struct schema_then *t, struct result *r)
{
	json_object_object_foreach (o, name, v) {
		if (schema_node_prop(s, name))
			continue;
		if (s->additional) {
			check_member(w, s->additional, name, v, t, r);
		} else if (s->additional_is == SCHEMA_ADDITIONAL_FALSE) {
			cleanup_free char *field = field_of(w);

			schema_cause_add_text(&r->causes, SCHEMA_INVALID, field, name,
				"%s.%s in body is a forbidden property", strbuf_str(&w->path),
				name);
		}
	}
}

static void check_required(
	struct values *w, const struct schema_node *s, struct json_object *o, struct result *r)
{
	for (size_t i = 0; i < s->n_required; i++) {
		cleanup_free char *field = NULL;
		size_t before;

		if (json_object_object_get_ex(o, s->required[i], NULL))
			continue;
		before = schema_path_add(&w->path, s->required[i]);
		field = field_of(w);
		schema_cause_add(&r->causes, SCHEMA_REQUIRED, field, NULL, "%s", "");
		schema_path_cut(&w->path, before);
	}
}

static void check_object(struct values *w, const struct schema_node *s, struct json_object *o,
	struct schema_then *t, struct result *r)
{
	size_t n = (size_t)json_object_object_length(o);

	if (s->min_properties.set && (int64_t)n < s->min_properties.value)
		count_fault(w, r, false, n, "properties", s->min_properties.value);
	if (s->max_properties.set && (int64_t)n > s->max_properties.value)
		count_fault(w, r, true, n, "", s->max_properties.value);
	check_unnamed(w, s, o, t, r);
	for (size_t i = 0; i < s->n_props; i++) {
		struct json_object *v = NULL;

		if (json_object_object_get_ex(o, s->prop[i].name, &v))
			check_member(w, s->prop[i].node, s->prop[i].name, v, t, r);
	}
	check_required(w, s, o, r);
}

static void check(struct values *w, const struct schema_node *s, struct json_object *v,
	struct schema_then *t, struct result *r)
{
	check_type(w, s, v, r);
	if (!v) {
		check_enum(w, s, v, r);
		return;
	}
	check_any(w, s, v, t, r);
	check_one(w, s, v, t, r);
	check_all(w, s, v, t, r);
	r->count += 2;
	if (json_object_is_type(v, json_type_string)) {
		check_string(w, s, v, r);
		r->count++;
	} else if (json_object_is_type(v, json_type_int) ||
		   json_object_is_type(v, json_type_double)) {
		check_number(w, s, v, r);
		r->count++;
	} else if (json_object_is_type(v, json_type_array)) {
		check_array(w, s, v, t, r);
		r->count++;
	}
	check_enum(w, s, v, r);
	r->count++;
	if (json_object_is_type(v, json_type_object)) {
		check_object(w, s, v, t, r);
		r->count++;
	}
	r->count++;
}

void schema_check_values(const struct schema_node *s, struct json_object *v, struct schema_then *t,
	struct schema_causes *causes, const char *prefix)
{
	struct values w = {.path = STRBUF_INIT, .prefix = prefix};
	struct result r = {.count = 0}, all = {.causes = *causes};

	check(&w, s, v, t, &r);
	if (r.causes.n && t->known && schema_then_equal(t))
		schema_causes_fini(&r.causes);
	merge(&all, &r);
	*causes = all.causes;
	strbuf_fini(&w.path);
}
