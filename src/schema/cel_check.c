/* SPDX-License-Identifier: MIT */
/*
 * What can be said of a rule before it is run: names that the schema does not have, and a rule that
 * is not a condition. Places of which the schema says nothing may be anything.
 */
#include "config.h"

#include "cel_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* What an expression gives, as far as it is known. */
struct known {
	const struct schema_node *s; /* NULL: not said */
	enum schema_node_type type;  /* NONE: anything */
};

struct checker {
	const struct schema_cel *c;
	const char *rule;
	struct err *err;
};

static struct known check(struct checker *k, const struct cel_node *n);

static struct known of_schema(const struct schema_node *s)
{
	bool open = !s || s->int_or_string || s->nullable || (s->preserve && !s->n_props);

	return (struct known){s, open ? SCHEMA_TYPE_NONE : s->type};
}

static struct known of_type(enum schema_node_type t)
{
	return (struct known){NULL, t};
}

static void fault(struct checker *k, const struct cel_node *n, const char *what)
{
	cel_fault(k->rule, n->at, k->err, what);
}

static struct known check_select(struct checker *k, const struct cel_node *n, bool has)
{
	struct known of = check(k, n->arg[0]);
	const struct schema_node *s = of.s, *member = s ? schema_node_prop(s, n->name) : NULL;
	cleanup_free char *what = NULL;
	static const char *const times[] = {"date-time", "date", "datetime", "duration", "byte"};

	if (!s)
		return of_type(SCHEMA_TYPE_NONE);
	if (s->type != SCHEMA_TYPE_OBJECT && s->type != SCHEMA_TYPE_NONE) {
		what = xasprintf(
			"type '%s' does not support field selection", schema_type_name(s->type));
		fault(k, n, what);
	} else if (!member && !s->additional && s->additional_is != SCHEMA_ADDITIONAL_TRUE &&
		   s->type == SCHEMA_TYPE_OBJECT && !(s->preserve && !s->n_props) &&
		   !(s == k->c->type && (str_eq(n->name, "metadata") || str_eq(n->name, "kind") ||
						str_eq(n->name, "apiVersion")))) {
		what = xasprintf("undefined field '%s'", n->name);
		fault(k, n, what);
	}
	member = member ? member : s->additional;
	for (size_t i = 0; !has && member && member->format && i < ARRAY_LEN(times); i++)
		if (str_eq(member->format, times[i])) {
			free(what);
			what = xasprintf("a value of format %s is not supported here", times[i]);
			fault(k, n, what);
		}
	return of_schema(member);
}

static void want_bool(struct checker *k, const struct cel_node *at, struct known v)
{
	if (v.type != SCHEMA_TYPE_NONE && v.type != SCHEMA_TYPE_BOOLEAN)
		fault(k, at, "found no matching overload: expected a condition");
}

static bool is_scalar(enum schema_node_type t)
{
	return t != SCHEMA_TYPE_OBJECT && t != SCHEMA_TYPE_ARRAY;
}

static bool is_number(enum schema_node_type t)
{
	return t == SCHEMA_TYPE_INTEGER || t == SCHEMA_TYPE_NUMBER;
}

static void check_compare(struct checker *k, const struct cel_node *n)
{
	struct known a = check(k, n->arg[0]), b = check(k, n->arg[1]);
	bool order = n->kind != CEL_EQ && n->kind != CEL_NE;

	if (order && !(is_scalar(a.type) && is_scalar(b.type)))
		fault(k, n, "found no matching overload: lists and maps have no order");
	if (a.type != SCHEMA_TYPE_NONE && b.type != SCHEMA_TYPE_NONE && a.type != b.type &&
		!(is_number(a.type) && is_number(b.type)))
		fault(k, n, "found no matching overload: the types differ");
}

static struct known literal_type(const struct cel_node *n)
{
	switch (json_object_get_type(n->literal)) {
	case json_type_boolean:
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case json_type_int:
		return of_type(SCHEMA_TYPE_INTEGER);
	case json_type_double:
		return of_type(SCHEMA_TYPE_NUMBER);
	case json_type_string:
		return of_type(SCHEMA_TYPE_STRING);
	case json_type_null:
	case json_type_object:
	case json_type_array:
		break;
	}
	return of_type(SCHEMA_TYPE_NONE);
}

static struct known check_index(struct checker *k, const struct cel_node *n)
{
	struct known of = check(k, n->arg[0]);

	check(k, n->arg[1]);
	if (!of.s)
		return of_type(SCHEMA_TYPE_NONE);
	return of_schema(of.s->items ? of.s->items : of.s->additional);
}

static struct known check_call(struct checker *k, const struct cel_node *n)
{
	struct known a = check(k, n->arg[0]);

	if (n->kind == CEL_SIZE) {
		if (is_number(a.type) || a.type == SCHEMA_TYPE_BOOLEAN)
			fault(k, n, "found no matching overload for 'size'");
		return of_type(SCHEMA_TYPE_INTEGER);
	}
	check(k, n->arg[1]);
	if (a.type != SCHEMA_TYPE_NONE && a.type != SCHEMA_TYPE_STRING)
		fault(k, n, "found no matching overload for 'matches'");
	return of_type(SCHEMA_TYPE_BOOLEAN);
}

static struct known check(struct checker *k, const struct cel_node *n)
{
	struct known a, b;

	switch (n->kind) {
	case CEL_LITERAL:
		return literal_type(n);
	case CEL_SELF:
	case CEL_OLD:
		return of_schema(k->c->type);
	case CEL_SELECT:
		return check_select(k, n, false);
	case CEL_HAS:
		check_select(k, n->arg[0], true);
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case CEL_INDEX:
		return check_index(k, n);
	case CEL_SIZE:
	case CEL_MATCHES:
		return check_call(k, n);
	case CEL_LIST:
		for (size_t i = 0; i < n->n_args; i++)
			check(k, n->arg[i]);
		return of_type(SCHEMA_TYPE_ARRAY);
	case CEL_NOT:
		want_bool(k, n, check(k, n->arg[0]));
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case CEL_NEGATE:
		return check(k, n->arg[0]);
	case CEL_EQ:
	case CEL_NE:
	case CEL_LT:
	case CEL_LE:
	case CEL_GT:
	case CEL_GE:
		check_compare(k, n);
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case CEL_IN:
		check(k, n->arg[0]);
		a = check(k, n->arg[1]);
		if (a.type != SCHEMA_TYPE_NONE && is_scalar(a.type))
			fault(k, n, "found no matching overload for 'in'");
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case CEL_AND:
	case CEL_OR:
		want_bool(k, n, check(k, n->arg[0]));
		want_bool(k, n, check(k, n->arg[1]));
		return of_type(SCHEMA_TYPE_BOOLEAN);
	case CEL_COND:
		want_bool(k, n, check(k, n->arg[0]));
		a = check(k, n->arg[1]);
		b = check(k, n->arg[2]);
		return a.type == b.type ? a : of_type(SCHEMA_TYPE_NONE);
	}
	return of_type(SCHEMA_TYPE_NONE);
}

int cel_check(const struct schema_cel *c, const char *rule, struct err *err)
{
	struct checker k = {.c = c, .rule = rule, .err = err};
	struct known v = check(&k, c->root);

	if (!err_is_set(err) && v.type != SCHEMA_TYPE_NONE && v.type != SCHEMA_TYPE_BOOLEAN)
		err_set(err, ERR_INVALID, "cel expression must evaluate to a bool");
	return err_is_set(err) ? -1 : 0;
}
