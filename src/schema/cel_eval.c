/* SPDX-License-Identifier: MIT */
/*
 * Runs a rule. Values of the object are borrowed from it; lists that the rule itself makes live in
 * a pool until the end. An error is a value: && and || may do without it, everything else passes it
 * on. When the budget is gone every value is that.
 */
#include "config.h"

#include "tec/schema/cel.h"

#include <string.h>

#include "cel_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/structural.h"

enum value_kind { V_JSON, V_ERROR, V_GONE };

struct value {
	enum value_kind kind;
	struct json_object *o;       /* borrowed from the object, the rule or the pool */
	const struct schema_node *s; /* NULL: not known */
};

struct run {
	struct json_object *self, *old;
	const struct schema_node *type;
	uint64_t *budget;
	struct json_object *pool; /* owned: an array of what the rule makes */
	struct err *err;          /* of the last V_ERROR */
};

static struct value eval(struct run *r, const struct cel_node *n);

/* ---- values */

static struct value json_value(struct json_object *o, const struct schema_node *s)
{
	return (struct value){V_JSON, o, s};
}

static struct value made(struct run *r, struct json_object *take_o)
{
	json_object_array_add(r->pool, take_o);
	return json_value(take_o, NULL);
}

static struct value boolean(struct run *r, bool b)
{
	return made(r, json_object_new_boolean(b));
}

static struct value error(struct run *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct value error(struct run *r, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	err_clear(r->err);
	err_set(r->err, ERR_INVALID, "%s", strbuf_str(&text));
	return (struct value){V_ERROR, NULL, NULL};
}

static struct value no_overload(struct run *r)
{
	return error(r, "no such overload");
}

static bool spend(struct run *r, uint64_t n)
{
	*r->budget = *r->budget > n ? *r->budget - n : 0;
	return *r->budget > 0;
}

static bool is_number(struct json_object *o)
{
	return json_object_is_type(o, json_type_int) || json_object_is_type(o, json_type_double);
}

/* -1, 0, 1; 2: not comparable (NaN). Integers are compared as such. */
static int compare_numbers(struct json_object *a, struct json_object *b)
{
	double x, y;

	if (json_object_is_type(a, json_type_int) && json_object_is_type(b, json_type_int)) {
		int64_t i = json_object_get_int64(a), j = json_object_get_int64(b);
		uint64_t u = json_object_get_uint64(a), v = json_object_get_uint64(b);

		if (i == INT64_MAX && j == INT64_MAX)
			return u < v ? -1 : u > v;
		return i < j ? -1 : i > j;
	}
	x = json_object_get_double(a);
	y = json_object_get_double(b);
	return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static int compare_strings(struct json_object *a, struct json_object *b)
{
	size_t n = (size_t)json_object_get_string_len(a), m = (size_t)json_object_get_string_len(b);
	int c = memcmp(json_object_get_string(a), json_object_get_string(b), n < m ? n : m);

	return c ? (c < 0 ? -1 : 1) : n < m ? -1 : n > m;
}

/* ---- equality: lists that are sets or maps are equal in any order */

static bool equal(
	struct run *r, struct json_object *a, struct json_object *b, const struct schema_node *s);

static bool lists_equal(
	struct run *r, struct json_object *a, struct json_object *b, const struct schema_node *s)
{
	size_t n = json_object_array_length(a);

	if (n != json_object_array_length(b))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_object_array_get_idx(a, i);
		bool found = false;

		if (!s || (!s->set && !s->map)) {
			if (!equal(r, v, json_object_array_get_idx(b, i), s ? s->items : NULL))
				return false;
			continue;
		}
		for (size_t j = 0; j < n && !found && spend(r, 1); j++)
			found = equal(r, v, json_object_array_get_idx(b, j), s->items);
		if (!found)
			return false;
	}
	return true;
}

static bool maps_equal(
	struct run *r, struct json_object *a, struct json_object *b, const struct schema_node *s)
{
	if (json_object_object_length(a) != json_object_object_length(b))
		return false;
	json_object_object_foreach (a, name, v) {
		struct json_object *w = NULL;

		if (!json_object_object_get_ex(b, name, &w) ||
			!equal(r, v, w, schema_node_member(s, name)))
			return false;
	}
	return true;
}

static bool equal(
	struct run *r, struct json_object *a, struct json_object *b, const struct schema_node *s)
{
	if (!spend(r, 1))
		return false;
	if (is_number(a) && is_number(b))
		return compare_numbers(a, b) == 0;
	if (json_object_get_type(a) != json_object_get_type(b))
		return false;
	if (json_object_is_type(a, json_type_string)) {
		spend(r, (uint64_t)json_object_get_string_len(a) / 16);
		return compare_strings(a, b) == 0;
	}
	if (json_object_is_type(a, json_type_array))
		return lists_equal(r, a, b, s);
	if (json_object_is_type(a, json_type_object))
		return maps_equal(r, a, b, s);
	return json_object_equal(a, b);
}

/* ---- expressions */

/* A value of the object; one that the schema has as an integer is none when it has a fraction or an
 * exponent, even where that is nothing. */
static struct value object_value(struct run *r, struct json_object *o, const struct schema_node *s)
{
	if (s && s->type == SCHEMA_TYPE_INTEGER && json_object_is_type(o, json_type_double))
		return error(r, "invalid data, expected int, got float64");
	return json_value(o, s);
}

static struct value eval_select(struct run *r, const struct cel_node *n, bool has)
{
	struct value of = eval(r, n->arg[0]);
	struct json_object *v = NULL;
	bool there;

	if (of.kind != V_JSON)
		return of;
	if (!json_object_is_type(of.o, json_type_object))
		return no_overload(r);
	there = json_object_object_get_ex(of.o, n->name, &v);
	if (has)
		return boolean(r, there);
	if (!there)
		return error(r, "no such key: %s", n->name);
	return object_value(r, v, schema_node_member(of.s, n->name));
}

/* A text as a member's name; NULL: it is none. */
static const char *key_of(struct json_object *o)
{
	const char *s = json_object_is_type(o, json_type_string) ? json_object_get_string(o) : NULL;

	return s && strlen(s) == (size_t)json_object_get_string_len(o) ? s : NULL;
}

static struct value eval_index(struct run *r, const struct cel_node *n)
{
	struct value of = eval(r, n->arg[0]), at = of.kind == V_JSON ? eval(r, n->arg[1]) : of;
	struct json_object *v = NULL;
	int64_t i;

	if (at.kind != V_JSON)
		return at;
	if (json_object_is_type(of.o, json_type_object)) {
		const char *key = key_of(at.o);

		if (!key)
			return no_overload(r);
		if (!json_object_object_get_ex(of.o, key, &v))
			return error(r, "no such key: %s", key);
		return object_value(r, v, schema_node_member(of.s, key));
	}
	if (!json_object_is_type(of.o, json_type_array) || !is_number(at.o))
		return no_overload(r);
	i = json_object_get_int64(at.o);
	if (i < 0 || (uint64_t)i >= json_object_array_length(of.o))
		return error(r, "index out of bounds: %lld", (long long)i);
	return object_value(
		r, json_object_array_get_idx(of.o, (size_t)i), schema_node_element(of.s));
}

static struct value eval_list(struct run *r, const struct cel_node *n)
{
	struct json_object *list = json_object_new_array();

	made(r, list);
	for (size_t i = 0; i < n->n_args; i++) {
		struct value v = eval(r, n->arg[i]);

		if (v.kind != V_JSON)
			return v;
		json_object_array_add(list, json_object_get(v.o));
	}
	return json_value(list, NULL);
}

static struct value eval_size(struct run *r, const struct cel_node *n)
{
	struct value v = eval(r, n->arg[0]);
	int64_t size = 0;

	if (v.kind != V_JSON)
		return v;
	if (json_object_is_type(v.o, json_type_array)) {
		size = (int64_t)json_object_array_length(v.o);
	} else if (json_object_is_type(v.o, json_type_object)) {
		size = json_object_object_length(v.o);
	} else if (json_object_is_type(v.o, json_type_string)) {
		const char *s = json_object_get_string(v.o);
		int len = json_object_get_string_len(v.o);

		spend(r, (uint64_t)len / 16);
		for (int i = 0; i < len; i++)
			size += ((unsigned char)s[i] & 0xc0) != 0x80;
	} else
		return no_overload(r);
	return made(r, json_object_new_int64(size));
}

static struct value eval_matches(struct run *r, const struct cel_node *n)
{
	struct value s = eval(r, n->arg[0]), p = s.kind == V_JSON ? eval(r, n->arg[1]) : s;
	struct schema_regex *own = NULL;
	struct err err = ERR_INIT;
	bool matched;

	if (p.kind != V_JSON)
		return p;
	if (!json_object_is_type(s.o, json_type_string) ||
		!json_object_is_type(p.o, json_type_string))
		return no_overload(r);
	if (!n->regex) {
		spend(r, (uint64_t)json_object_get_string_len(p.o));
		own = schema_regex_new(
			json_object_get_string(p.o), (size_t)json_object_get_string_len(p.o), &err);
		if (!own)
			return error(r, "%s", err.text);
	}
	spend(r, 1 + (uint64_t)json_object_get_string_len(s.o) / 16);
	matched = schema_regex_match(own ? own : n->regex, json_object_get_string(s.o),
		(size_t)json_object_get_string_len(s.o));
	schema_regex_free(own);
	return boolean(r, matched);
}

static struct value eval_compare(struct run *r, const struct cel_node *n)
{
	struct value a = eval(r, n->arg[0]), b = a.kind == V_JSON ? eval(r, n->arg[1]) : a;
	int c;

	if (b.kind != V_JSON)
		return b;
	if (n->kind == CEL_EQ || n->kind == CEL_NE)
		return boolean(r, equal(r, a.o, b.o, a.s ? a.s : b.s) == (n->kind == CEL_EQ));
	if (is_number(a.o) && is_number(b.o))
		c = compare_numbers(a.o, b.o);
	else if (json_object_is_type(a.o, json_type_string) &&
		 json_object_is_type(b.o, json_type_string))
		c = compare_strings(a.o, b.o);
	else if (json_object_is_type(a.o, json_type_boolean) &&
		 json_object_is_type(b.o, json_type_boolean))
		c = json_object_get_boolean(a.o) - json_object_get_boolean(b.o);
	else
		return no_overload(r);
	return boolean(r, n->kind == CEL_LT   ? c == -1
			  : n->kind == CEL_LE ? c == -1 || c == 0
			  : n->kind == CEL_GT ? c == 1
					      : c == 1 || c == 0);
}

static struct value eval_in(struct run *r, const struct cel_node *n)
{
	struct value v = eval(r, n->arg[0]), of = v.kind == V_JSON ? eval(r, n->arg[1]) : v;
	bool found = false;

	if (of.kind != V_JSON)
		return of;
	if (json_object_is_type(of.o, json_type_object))
		return boolean(
			r, key_of(v.o) && json_object_object_get_ex(of.o, key_of(v.o), NULL));
	if (!json_object_is_type(of.o, json_type_array))
		return no_overload(r);
	for (size_t i = 0; i < json_object_array_length(of.o) && !found; i++)
		found = equal(r, v.o, json_object_array_get_idx(of.o, i), v.s);
	return boolean(r, found);
}

static bool is_bool(struct value v, bool b)
{
	return v.kind == V_JSON && json_object_is_type(v.o, json_type_boolean) &&
	       json_object_get_boolean(v.o) == b;
}

/* One side that decides makes an error of the other one irrelevant. */
static struct value eval_logic(struct run *r, const struct cel_node *n)
{
	bool decides = n->kind == CEL_OR;
	struct value a = eval(r, n->arg[0]), b;
	struct err first = *r->err;

	if (is_bool(a, decides) || a.kind == V_GONE)
		return a;
	b = eval(r, n->arg[1]);
	if (is_bool(b, decides) || b.kind == V_GONE)
		return b;
	if (a.kind == V_ERROR) {
		*r->err = first;
		return a;
	}
	if (b.kind == V_ERROR)
		return b;
	return is_bool(a, !decides) && is_bool(b, !decides) ? b : no_overload(r);
}

static struct value eval_unary(struct run *r, const struct cel_node *n)
{
	struct value v = eval(r, n->arg[0]);

	if (v.kind != V_JSON)
		return v;
	if (n->kind == CEL_NOT)
		return is_bool(v, true) || is_bool(v, false) ? boolean(r, is_bool(v, false))
							     : no_overload(r);
	if (json_object_is_type(v.o, json_type_double))
		return made(r, json_object_new_double(-json_object_get_double(v.o)));
	if (!json_object_is_type(v.o, json_type_int))
		return no_overload(r);
	if (json_object_get_int64(v.o) == INT64_MIN)
		return error(r, "integer overflow");
	return made(r, json_object_new_int64(-json_object_get_int64(v.o)));
}

static struct value eval(struct run *r, const struct cel_node *n)
{
	struct value v;

	if (!spend(r, 1))
		return (struct value){V_GONE, NULL, NULL};
	switch (n->kind) {
	case CEL_LITERAL:
		return json_value(n->literal, NULL);
	case CEL_LIST:
		return eval_list(r, n);
	case CEL_SELF:
		return object_value(r, r->self, r->type);
	case CEL_OLD:
		return object_value(r, r->old, r->type);
	case CEL_SELECT:
		return eval_select(r, n, false);
	case CEL_HAS:
		return eval_select(r, n->arg[0], true);
	case CEL_INDEX:
		return eval_index(r, n);
	case CEL_SIZE:
		return eval_size(r, n);
	case CEL_MATCHES:
		return eval_matches(r, n);
	case CEL_NOT:
	case CEL_NEGATE:
		return eval_unary(r, n);
	case CEL_EQ:
	case CEL_NE:
	case CEL_LT:
	case CEL_LE:
	case CEL_GT:
	case CEL_GE:
		return eval_compare(r, n);
	case CEL_IN:
		return eval_in(r, n);
	case CEL_AND:
	case CEL_OR:
		return eval_logic(r, n);
	case CEL_COND:
		v = eval(r, n->arg[0]);
		if (v.kind != V_JSON)
			return v;
		if (!is_bool(v, true) && !is_bool(v, false))
			return no_overload(r);
		return eval(r, n->arg[is_bool(v, true) ? 1 : 2]);
	}
	return no_overload(r);
}

enum schema_cel_result schema_cel_eval(const struct schema_cel *c, struct json_object *self,
	struct json_object *old, uint64_t *budget, struct err *err)
{
	struct err scratch = ERR_INIT;
	struct run r = {.self = self,
		.old = old,
		.type = c->type,
		.budget = budget,
		.pool = json_object_new_array(),
		.err = &scratch};
	struct value v = eval(&r, c->root);
	bool yes = is_bool(v, true);

	json_object_put(r.pool);
	if (!*budget || v.kind == V_GONE)
		return SCHEMA_CEL_BUDGET_GONE;
	if (v.kind == V_ERROR) {
		*err = scratch;
		return SCHEMA_CEL_ERROR;
	}
	return yes ? SCHEMA_CEL_TRUE : SCHEMA_CEL_FALSE;
}
