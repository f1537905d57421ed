/* SPDX-License-Identifier: MIT */
/*
 * A rule is parsed by recursive descent, and its types are checked at the same time, so that a
 * running rule can only meet values that are missing or do not fit the schema. The operand that
 * reads such a value fails; as in CEL, the other side of && and || may decide the result without
 * it.
 */
#include "config.h"

#include "tec/schema/cel.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define NODES_MAX 200 /* in a rule, which also limits its depth */

enum kind {
	SELF,
	OLD,
	SELECT, /* a.name */
	TEXT,
	NUMBER,
	HAS, /* a: a SELECT */
	SIZE,
	MATCHES,
	NOT,
	EQ,
	NE,
	LE,
	AND,
	OR,
};

struct node {
	enum kind kind;
	enum schema_node_type type; /* BOOLEAN: a condition; NONE: only usable to select a member */
	struct node *a, *b, *next;  /* operands; the next one of all nodes of the rule */
	const struct schema_node *schema; /* borrowed; of SELF, OLD and SELECT */
	char *text; /* owned: the member's name of a SELECT, the string of a TEXT */
	int64_t number;
	struct schema_regex *regex; /* owned; for MATCHES */
};

struct schema_cel {
	struct node *root, *nodes; /* nodes: owned list of all */
	bool uses_old;
};

/* ---- reading a rule */

struct parser {
	struct schema_cel *c;
	const struct schema_node *type;
	const char *rule, *p; /* the whole rule; the next byte to read */
	unsigned depth, n_nodes;
	struct err *err;
};

static struct node *parse_logic(struct parser *p, bool either);

static struct node *fail(struct parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Keep the first error, with its position in the rule: later ones only follow from it. */
static struct node *fail(struct parser *p, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf what = STRBUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&what, fmt, ap);
	va_end(ap);
	if (!err_is_set(p->err))
		err_set(p->err, ERR_INVALID, "at byte %zu: %s", (size_t)(p->p - p->rule),
			strbuf_str(&what));
	return NULL;
}

/* Add a node to the rule, which owns it; NULL when there are too many. */
static struct node *add(struct parser *p, enum kind kind, enum schema_node_type type,
	struct node *a, struct node *b)
{
	struct node *n;

	if (++p->n_nodes > NODES_MAX)
		return fail(p, "the rule is too long");
	n = xcalloc(1, sizeof(*n));
	*n = (struct node){.kind = kind, .type = type, .a = a, .b = b, .next = p->c->nodes};
	p->c->nodes = n;
	return n;
}

/* Skip white space, then the token if it is next; "" only skips white space. */
static bool accept(struct parser *p, const char *token)
{
	p->p += strspn(p->p, " \t\r\n");
	if (!str_starts(p->p, token))
		return false;
	p->p += strlen(token);
	return true;
}

/* Pass n through when the token follows. A NULL n is an earlier error, which is kept. */
static struct node *expect(struct parser *p, const char *token, struct node *n)
{
	if (n && !accept(p, token))
		return fail(p, "expected '%s'", token);
	return n;
}

/* Read a word of letters, digits and "_"; "" when none follows. The caller frees it. */
static char *word(struct parser *p)
{
	const char *start;

	accept(p, "");
	start = p->p;
	while (isalnum((unsigned char)*p->p) || *p->p == '_')
		p->p++;
	return xstrndup(start, (size_t)(p->p - start));
}

/* Escapes are refused instead of interpreted: the patterns of crd/ need none. */
static struct node *parse_text(struct parser *p)
{
	size_t len;
	struct node *n;

	if (!accept(p, "'"))
		return fail(p, "expected a string in single quotes");
	len = strcspn(p->p, "'\\\n");
	if (p->p[len] != '\'')
		return fail(p, "the string is unterminated or contains an escape");
	n = add(p, TEXT, SCHEMA_TYPE_STRING, NULL, NULL);
	if (n)
		n->text = xstrndup(p->p, len);
	p->p += len + 1;
	return n;
}

/* Only non-negative whole numbers: the rules of crd/ need no others. */
static struct node *parse_number(struct parser *p)
{
	cleanup_free char *digits = word(p);
	uint64_t number;
	struct node *n;

	if (str_to_u64(digits, INT64_MAX, &number) < 0 || *p->p == '.')
		return fail(p, "not a whole number");
	n = add(p, NUMBER, SCHEMA_TYPE_INTEGER, NULL, NULL);
	if (n)
		n->number = (int64_t)number;
	return n;
}

/* Make a node for a value of the object, typed by its schema as far as a rule can use it. */
static struct node *of_schema(
	struct parser *p, enum kind kind, struct node *a, const struct schema_node *schema)
{
	bool plain = schema->type == SCHEMA_TYPE_STRING || schema->type == SCHEMA_TYPE_INTEGER ||
		     schema->type == SCHEMA_TYPE_ARRAY;
	struct node *n = add(p, kind, plain ? schema->type : SCHEMA_TYPE_NONE, a, NULL);

	if (n)
		n->schema = schema;
	return n;
}

/* Parse the members after self or oldSelf. An unknown member is an error, which catches misspelled
 * rules. The pattern of matches() is a literal, so it is compiled here, once. */
static struct node *parse_path(struct parser *p, struct node *n)
{
	while (n && accept(p, ".")) {
		cleanup_free char *name = word(p);
		const struct schema_node *member;
		struct node *pattern;
		struct err why = ERR_INIT;

		if (!accept(p, "(")) {
			member = schema_node_member(n->schema, name);
			if (!member)
				return fail(p, "undefined field '%s'", name);
			n = of_schema(p, SELECT, n, member);
			if (n)
				n->text = steal_ptr(&name);
			continue;
		}
		if (!str_eq(name, "matches"))
			return fail(p, "%s() is not supported", name);
		pattern = expect(p, ")", parse_text(p));
		if (!pattern)
			return NULL;
		if (n->type != SCHEMA_TYPE_STRING)
			return fail(p, "matches() needs a string");
		n = add(p, MATCHES, SCHEMA_TYPE_BOOLEAN, n, NULL);
		if (n && !(n->regex = schema_regex_new(pattern->text, strlen(pattern->text), &why)))
			return fail(p, "%s", why.text);
		return n;
	}
	return n;
}

/* Parse self, oldSelf, has() or size(). */
static struct node *parse_name(struct parser *p)
{
	cleanup_free char *name = word(p);
	struct node *n;

	if (str_eq(name, "self"))
		return parse_path(p, of_schema(p, SELF, NULL, p->type));
	if (str_eq(name, "oldSelf")) {
		p->c->uses_old = true;
		return parse_path(p, of_schema(p, OLD, NULL, p->type));
	}
	if (!accept(p, "("))
		return fail(p, "'%s' is not supported", name);
	if (!str_eq(name, "has") && !str_eq(name, "size"))
		return fail(p, "%s() is not supported", name);
	n = expect(p, ")", parse_logic(p, true));
	if (!n)
		return NULL;
	if (str_eq(name, "has"))
		return n->kind == SELECT ? add(p, HAS, SCHEMA_TYPE_BOOLEAN, n, NULL)
					 : fail(p, "has() needs a field");
	return n->type == SCHEMA_TYPE_ARRAY ? add(p, SIZE, SCHEMA_TYPE_INTEGER, n, NULL)
					    : fail(p, "size() needs a list");
}

/* Require a boolean: operands of &&, || and !, and the rule as a whole. */
static struct node *condition(struct parser *p, struct node *n)
{
	return !n || n->type == SCHEMA_TYPE_BOOLEAN ? n : fail(p, "expected a condition");
}

/* depth bounds the recursion: parentheses and "!" add no node before the inner part is parsed. */
static struct node *parse_unary(struct parser *p)
{
	struct node *n;

	if (p->depth >= NODES_MAX)
		return fail(p, "the rule nests too deeply");
	p->depth++;
	if (accept(p, "!")) {
		n = condition(p, parse_unary(p));
		n = n ? add(p, NOT, SCHEMA_TYPE_BOOLEAN, n, NULL) : NULL;
	} else if (accept(p, "("))
		n = expect(p, ")", parse_logic(p, true));
	else if (*p->p == '\'')
		n = parse_text(p);
	else
		n = isdigit((unsigned char)*p->p) ? parse_number(p) : parse_name(p);
	p->depth--;
	return n;
}

/* Both sides must have the same scalar type; CEL has no implicit conversions. */
static struct node *parse_compare(struct parser *p)
{
	struct node *a = parse_unary(p), *b;
	enum kind kind;

	if (!a)
		return NULL;
	if (accept(p, "=="))
		kind = EQ;
	else if (accept(p, "!="))
		kind = NE;
	else if (accept(p, "<="))
		kind = LE;
	else
		return a;
	b = parse_unary(p);
	if (!b)
		return NULL;
	if (a->type != b->type || a->type == SCHEMA_TYPE_NONE || a->type == SCHEMA_TYPE_ARRAY ||
		(a->type == SCHEMA_TYPE_BOOLEAN && kind == LE))
		return fail(p, "values of these types cannot be compared");
	return add(p, kind, SCHEMA_TYPE_BOOLEAN, a, b);
}

/* Parse a chain of || (either) or &&, which binds more tightly. */
static struct node *parse_logic(struct parser *p, bool either)
{
	struct node *n = either ? parse_logic(p, false) : parse_compare(p), *b;

	while (n && accept(p, either ? "||" : "&&")) {
		if (!condition(p, n))
			return NULL;
		b = condition(p, either ? parse_logic(p, false) : parse_compare(p));
		n = b ? add(p, either ? OR : AND, SCHEMA_TYPE_BOOLEAN, n, b) : NULL;
	}
	return n;
}

/* The whole text must be consumed: a rule of which only the beginning is understood is refused. */
struct schema_cel *schema_cel_new(const char *rule, const struct schema_node *type, struct err *err)
{
	struct schema_cel *c = xcalloc(1, sizeof(*c));
	struct parser p = {.c = c, .type = type, .rule = rule, .p = rule, .err = err};

	c->root = condition(&p, parse_logic(&p, true));
	accept(&p, "");
	if (c->root && *p.p)
		fail(&p, "not supported: '%.20s'", p.p);
	if (!err_is_set(err))
		return c;
	schema_cel_free(c);
	return NULL;
}

void schema_cel_free(struct schema_cel *c)
{
	if (!c)
		return;
	for (struct node *n = c->nodes, *after; n; n = after) {
		after = n->next;
		free(n->text);
		schema_regex_free(n->regex);
		free(n);
	}
	free(c);
}

bool schema_cel_uses_old(const struct schema_cel *c)
{
	return c->uses_old;
}

/* ---- running it */

/* The result of a node. Conditions are the numbers 0 and 1. */
struct value {
	bool failed;
	int64_t number;   /* value of a number or a condition */
	const char *text; /* borrowed from the object or the rule; NULL: not a string */
	size_t len;
};

struct run {
	struct json_object *self, *old;
};

static const struct value failed = {.failed = true};

static struct value eval(const struct run *r, const struct node *n);

static struct value number(int64_t n)
{
	return (struct value){.number = n};
}

/* Find the JSON of a path; NULL: missing or null. */
static struct json_object *read_path(const struct run *r, const struct node *n)
{
	if (n->kind != SELECT)
		return n->kind == SELF ? r->self : r->old;
	return json_get(read_path(r, n->a), n->text);
}

/* A value of another type than the schema's fails: the type error is reported elsewhere. */
static struct value eval_path(const struct run *r, const struct node *n)
{
	struct json_object *o = read_path(r, n);

	if (n->type == SCHEMA_TYPE_STRING && json_object_is_type(o, json_type_string))
		return (struct value){.text = json_object_get_string(o),
			.len = (size_t)json_object_get_string_len(o)};
	if (n->type == SCHEMA_TYPE_INTEGER && json_object_is_type(o, json_type_int))
		return number(json_object_get_int64(o));
	if (n->type == SCHEMA_TYPE_ARRAY && json_object_is_type(o, json_type_array))
		return number((int64_t)json_len(o));
	return failed;
}

/* Strings compare bytewise, as UTF-8 orders by code point; a shorter prefix comes first. */
static struct value eval_compare(const struct run *r, const struct node *n)
{
	struct value a = eval(r, n->a), b = a.failed ? a : eval(r, n->b);
	int order;

	if (b.failed)
		return b;
	if (a.text) {
		order = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);
		order = order ? order : a.len < b.len ? -1 : a.len > b.len;
	} else
		order = a.number < b.number ? -1 : a.number > b.number;
	return number(n->kind == EQ ? order == 0 : n->kind == NE ? order != 0 : order <= 0);
}

/* Operands have the right types, which the parser checked; only missing values fail. */
static struct value eval(const struct run *r, const struct node *n)
{
	bool decides = n->kind == OR;
	struct json_object *o;
	struct value v, other;

	switch (n->kind) {
	case SELF:
	case OLD:
	case SELECT:
		return eval_path(r, n);
	case TEXT:
		return (struct value){.text = n->text, .len = strlen(n->text)};
	case NUMBER:
		return number(n->number);
	case HAS:
		/* has(a.b) fails when a is missing; only b may be absent. */
		o = read_path(r, n->a->a);
		return json_object_is_type(o, json_type_object)
			       ? number(json_get(o, n->a->text) != NULL)
			       : failed;
	case SIZE:
		return eval_path(r, n->a);
	case MATCHES:
		v = eval(r, n->a);
		return v.failed ? v : number(schema_regex_match(n->regex, v.text, v.len));
	case NOT:
		v = eval(r, n->a);
		v.number = !v.number;
		return v;
	case EQ:
	case NE:
	case LE:
		return eval_compare(r, n);
	case AND:
	case OR:
		break;
	}
	/* A side that decides makes a failure of the other one irrelevant, whichever comes first. */
	v = eval(r, n->a);
	if (!v.failed && v.number == decides)
		return v;
	other = eval(r, n->b);
	return (!other.failed && other.number == decides) || !v.failed ? other : v;
}

/* A failed evaluation counts as "does not hold". */
bool schema_cel_holds(const struct schema_cel *c, struct json_object *self, struct json_object *old)
{
	const struct run r = {self, old};
	struct value v = eval(&r, c->root);

	return !v.failed && v.number;
}
