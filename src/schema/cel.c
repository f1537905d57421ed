/* SPDX-License-Identifier: MIT */
/*
 * Reads a rule into a tree: words from cel_lex.c, recursive descent with a bounded depth over
 * the grammar of the language without what we leave out. What is left out is named in the error.
 */
#include "config.h"

#include "tec/schema/cel.h"

#include <string.h>

#include "cel_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define DEPTH_MAX 60

struct parser {
	struct cel_lexer lex;
	struct schema_cel *c;
	struct err *err; /* also the lexer's */
	unsigned depth;
};

static struct cel_node *parse_expr(struct parser *p);

int cel_fault(const char *rule, size_t at, struct err *err, const char *what)
{
	size_t line = 1, column = 1;

	if (err_is_set(err))
		return -1;
	for (size_t i = 0; i < at; i++) {
		column = rule[i] == '\n' ? 1 : column + (((unsigned char)rule[i] & 0xc0) != 0x80);
		line += rule[i] == '\n';
	}
	return err_set(err, ERR_INVALID, "ERROR: <input>:%zu:%zu: %s", line, column, what);
}

static void *fail(struct parser *p, size_t at, const char *what)
{
	cel_fault(p->lex.rule, at, p->err, what);
	return NULL;
}

static bool is_op(const struct parser *p, const char *op)
{
	return p->lex.token == CEL_T_OP && str_eq(p->lex.op, op);
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->lex.token == CEL_T_IDENT && str_eq(strbuf_str(&p->lex.text), word);
}

static int expect(struct parser *p, const char *op)
{
	cleanup_free char *what = NULL;

	if (is_op(p, op))
		return cel_lex_next(&p->lex);
	what = xasprintf("Syntax error: expected '%s'", op);
	return cel_fault(p->lex.rule, p->lex.at, p->err, what);
}

/* ---- nodes */

static struct cel_node *node(struct parser *p, enum cel_kind kind, size_t at)
{
	struct cel_node *n = xcalloc(1, sizeof(*n));

	n->kind = kind;
	n->at = at;
	n->next = p->c->nodes;
	p->c->nodes = n;
	return n;
}

/* NULL when arg is NULL: it failed. */
static struct cel_node *with(struct cel_node *n, struct cel_node *arg)
{
	if (!n || !arg)
		return NULL;
	ARRAY_GROW(n->arg, n->n_args);
	n->arg[n->n_args++] = arg;
	return n;
}

static struct cel_node *binary(
	struct parser *p, enum cel_kind kind, size_t at, struct cel_node *a, struct cel_node *b)
{
	return with(with(node(p, kind, at), a), b);
}

/* ---- expressions */

/* Arguments behind an open parenthesis, up to the closing one. */
static struct cel_node *parse_args(struct parser *p, struct cel_node *n, const char *close)
{
	while (n && !is_op(p, close)) {
		n = with(n, parse_expr(p));
		if (n && !is_op(p, ",") && !is_op(p, close))
			return fail(
				p, p->lex.at, "Syntax error: expected ',' or the end of a list");
		if (n && is_op(p, ",") && cel_lex_next(&p->lex) < 0)
			return NULL;
	}
	return n && cel_lex_next(&p->lex) == 0 ? n : NULL;
}

static struct cel_node *unsupported(struct parser *p, size_t at, const char *name)
{
	cleanup_free char *what = xasprintf("%s is not supported here", name);

	return fail(p, at, what);
}

/* NAME(...) and, with a target, TARGET.NAME(...); the open parenthesis is next. */
static struct cel_node *parse_call(
	struct parser *p, const char *name, size_t at, struct cel_node *target)
{
	static const struct {
		const char *name;
		enum cel_kind kind;
		size_t args; /* the target counts */
	} calls[] = {{"has", CEL_HAS, 1}, {"size", CEL_SIZE, 1}, {"matches", CEL_MATCHES, 2}};
	cleanup_free char *label = xasprintf("%s()", name);

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct cel_node *n;

		if (!str_eq(name, calls[i].name) || (target && calls[i].kind == CEL_HAS))
			continue;
		n = node(p, calls[i].kind, at);
		n = cel_lex_next(&p->lex) < 0 ? NULL
					      : parse_args(p, target ? with(n, target) : n, ")");
		if (n && n->n_args != calls[i].args)
			return fail(p, at, "found no matching overload");
		if (n && n->kind == CEL_HAS && n->arg[0]->kind != CEL_SELECT)
			return fail(p, at, "invalid argument to has() macro");
		return n;
	}
	return unsupported(p, at, label);
}

/* "__dot__" is "."; a name that is a word of the language is written between two underscores. */
static char *unescape_name(const char *s)
{
	static const struct {
		const char *from, *to;
	} escapes[] = {
		{"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
	static const char *const words[] = {"true", "false", "null", "in", "as", "break", "const",
		"continue", "else", "for", "function", "if", "import", "let", "loop", "package",
		"namespace", "return", "var", "void", "while"};
	struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if (strlen(s) == n + 4 && str_starts(s, "__") && str_ends(s, "__") &&
			strncmp(s + 2, words[i], n) == 0)
			return xstrdup(words[i]);
	}
	while (*s) {
		size_t i = 0;

		while (i < ARRAY_LEN(escapes) && !str_starts(s, escapes[i].from))
			i++;
		if (i < ARRAY_LEN(escapes)) {
			strbuf_adds(&b, escapes[i].to);
			s += strlen(escapes[i].from);
		} else
			strbuf_addc(&b, *s++);
	}
	return strbuf_steal(&b);
}

/* Behind a dot. */
static struct cel_node *parse_select(struct parser *p, struct cel_node *target, size_t at)
{
	cleanup_free char *name = NULL;
	struct cel_node *n;

	if (is_op(p, "?"))
		return unsupported(p, p->lex.at, "optional selection");
	if (p->lex.token != CEL_T_IDENT)
		return fail(p, p->lex.at, "Syntax error: expected a name behind '.'");
	name = xstrdup(strbuf_str(&p->lex.text));
	if (cel_lex_next(&p->lex) < 0)
		return NULL;
	if (is_op(p, "("))
		return parse_call(p, name, at, target);
	n = with(node(p, CEL_SELECT, at), target);
	if (n)
		n->name = unescape_name(name);
	return n;
}

static struct cel_node *parse_name(struct parser *p)
{
	size_t at = p->lex.at;
	cleanup_free char *name = xstrdup(strbuf_str(&p->lex.text)), *what = NULL;
	struct cel_node *n = NULL;

	if (cel_lex_next(&p->lex) < 0)
		return NULL;
	if (is_op(p, "("))
		return parse_call(p, name, at, NULL);
	if (str_eq(name, "self"))
		return node(p, CEL_SELF, at);
	if (str_eq(name, "oldSelf")) {
		p->c->uses_old = true;
		return node(p, CEL_OLD, at);
	}
	if (str_eq(name, "true") || str_eq(name, "false")) {
		n = node(p, CEL_LITERAL, at);
		n->literal = json_object_new_boolean(str_eq(name, "true"));
		return n;
	}
	if (str_eq(name, "null"))
		return node(p, CEL_LITERAL, at);
	what = xasprintf("undeclared reference to '%s' (in container '')", name);
	return fail(p, at, what);
}

static struct cel_node *parse_number(struct parser *p, bool negative)
{
	struct cel_node *n = node(p, CEL_LITERAL, p->lex.at);

	if (p->lex.token == CEL_T_INT) {
		uint64_t u = json_object_get_uint64(p->lex.number);

		if (u > INT64_MAX && !negative)
			return fail(p, p->lex.at, "invalid int literal");
		n->literal = json_object_new_int64(!negative       ? (int64_t)u
						   : u > INT64_MAX ? INT64_MIN
								   : -(int64_t)u);
	} else {
		double d = json_object_get_double(p->lex.number);

		n->literal = json_object_new_double(negative ? -d : d);
	}
	return cel_lex_next(&p->lex) < 0 ? NULL : n;
}

static struct cel_node *parse_primary(struct parser *p)
{
	struct cel_node *n;
	size_t at = p->lex.at;

	switch (p->lex.token) {
	case CEL_T_END:
		return fail(p, p->lex.at, "Syntax error: unexpected end of the rule");
	case CEL_T_IDENT:
		return parse_name(p);
	case CEL_T_INT:
	case CEL_T_DOUBLE:
		return parse_number(p, false);
	case CEL_T_STRING:
		n = node(p, CEL_LITERAL, at);
		n->literal =
			json_object_new_string_len(strbuf_str(&p->lex.text), (int)p->lex.text.len);
		return cel_lex_next(&p->lex) < 0 ? NULL : n;
	case CEL_T_OP:
		break;
	}
	if (is_op(p, "(")) {
		n = cel_lex_next(&p->lex) < 0 ? NULL : parse_expr(p);
		return n && expect(p, ")") == 0 ? n : NULL;
	}
	if (is_op(p, "["))
		return cel_lex_next(&p->lex) < 0 ? NULL : parse_args(p, node(p, CEL_LIST, at), "]");
	if (is_op(p, "{"))
		return unsupported(p, at, "a map");
	return fail(p, at, "Syntax error: unexpected token");
}

static struct cel_node *parse_member(struct parser *p)
{
	struct cel_node *n = parse_primary(p);
	unsigned links = 0;

	while (n && (is_op(p, ".") || is_op(p, "["))) {
		size_t at = p->lex.at;
		bool select = is_op(p, ".");

		if (++links > DEPTH_MAX)
			return fail(p, at, "the rule nests too deeply");
		if (cel_lex_next(&p->lex) < 0)
			return NULL;
		if (select) {
			n = parse_select(p, n, at);
			continue;
		}
		n = binary(p, CEL_INDEX, at, n, parse_expr(p));
		if (n && expect(p, "]") < 0)
			return NULL;
	}
	if (n && is_op(p, "{"))
		return unsupported(p, p->lex.at, "a message");
	return n;
}

static struct cel_node *parse_unary(struct parser *p)
{
	size_t at = p->lex.at;
	struct cel_node *n;

	if (++p->depth > DEPTH_MAX)
		return fail(p, at, "the rule nests too deeply");
	if (is_op(p, "!")) {
		n = cel_lex_next(&p->lex) < 0 ? NULL : with(node(p, CEL_NOT, at), parse_unary(p));
	} else if (is_op(p, "-")) {
		if (cel_lex_next(&p->lex) < 0)
			return NULL;
		n = p->lex.token == CEL_T_INT || p->lex.token == CEL_T_DOUBLE
			    ? parse_number(p, true)
			    : with(node(p, CEL_NEGATE, at), parse_unary(p));
	} else
		n = parse_member(p);
	p->depth--;
	return n;
}

static struct cel_node *parse_relation(struct parser *p)
{
	static const struct {
		const char *op;
		enum cel_kind kind;
	} ops[] = {{"==", CEL_EQ}, {"!=", CEL_NE}, {"<", CEL_LT}, {"<=", CEL_LE}, {">", CEL_GT},
		{">=", CEL_GE}};
	struct cel_node *n = parse_unary(p);
	unsigned links = 0;

	while (n) {
		enum cel_kind kind = CEL_LITERAL;
		size_t at = p->lex.at;

		if (p->lex.token == CEL_T_OP && p->lex.op[0] && strchr("+-*/%", p->lex.op[0]))
			return unsupported(p, at, "arithmetic");
		for (size_t i = 0; i < ARRAY_LEN(ops); i++)
			if (is_op(p, ops[i].op))
				kind = ops[i].kind;
		if (is_word(p, "in"))
			kind = CEL_IN;
		if (kind == CEL_LITERAL)
			return n;
		if (++links > DEPTH_MAX)
			return fail(p, at, "the rule nests too deeply");
		n = cel_lex_next(&p->lex) < 0 ? NULL : binary(p, kind, at, n, parse_unary(p));
	}
	return NULL;
}

static struct cel_node *parse_logic(struct parser *p, bool either)
{
	struct cel_node *n = either ? parse_logic(p, false) : parse_relation(p);
	unsigned links = 0;

	while (n && is_op(p, either ? "||" : "&&")) {
		size_t at = p->lex.at;

		if (++links > DEPTH_MAX)
			return fail(p, at, "the rule has too many conditions");
		if (cel_lex_next(&p->lex) < 0)
			return NULL;
		n = binary(p, either ? CEL_OR : CEL_AND, at, n,
			either ? parse_logic(p, false) : parse_relation(p));
	}
	return n;
}

static struct cel_node *parse_expr(struct parser *p)
{
	struct cel_node *n, *yes, *no;
	size_t at;

	if (++p->depth > DEPTH_MAX)
		return fail(p, p->lex.at, "the rule nests too deeply");
	n = parse_logic(p, true);
	at = p->lex.at;
	if (n && is_op(p, "?")) {
		yes = cel_lex_next(&p->lex) < 0 ? NULL : parse_logic(p, true);
		no = yes && expect(p, ":") == 0 ? parse_expr(p) : NULL;
		n = with(with(with(node(p, CEL_COND, at), n), yes), no);
	}
	p->depth--;
	return n;
}

/* ---- rules */

/* Patterns that stand in the rule are compiled with it. */
static int compile_patterns(struct schema_cel *c, const char *rule, struct err *err)
{
	for (struct cel_node *n = c->nodes; n; n = n->next) {
		struct err why = ERR_INIT;
		struct json_object *o;

		if (n->kind != CEL_MATCHES || n->n_args != 2 || n->arg[1]->kind != CEL_LITERAL)
			continue;
		o = n->arg[1]->literal;
		if (!json_object_is_type(o, json_type_string))
			return cel_fault(
				rule, n->at, err, "found no matching overload for 'matches'");
		n->regex = schema_regex_new(
			json_object_get_string(o), (size_t)json_object_get_string_len(o), &why);
		if (!n->regex)
			return cel_fault(rule, n->at, err, why.text);
	}
	return 0;
}

struct schema_cel *schema_cel_new(const char *rule, const struct schema_node *type, struct err *err)
{
	struct schema_cel *c = xcalloc(1, sizeof(*c));
	struct parser p = {.lex = {.rule = rule, .p = rule, .err = err, .text = STRBUF_INIT},
		.c = c,
		.err = err};

	c->type = type;
	if (strlen(rule) > SCHEMA_CEL_RULE_MAX)
		cel_fault(rule, 0, err, "the rule is too long");
	else if (cel_lex_next(&p.lex) == 0)
		c->root = parse_expr(&p);
	if (c->root && p.lex.token != CEL_T_END)
		cel_fault(rule, p.lex.at, err, "Syntax error: unexpected token");
	strbuf_fini(&p.lex.text);
	json_object_put(p.lex.number);
	if (!err_is_set(err) && compile_patterns(c, rule, err) == 0 && cel_check(c, rule, err) == 0)
		return c;
	schema_cel_free(c);
	return NULL;
}

void schema_cel_free(struct schema_cel *c)
{
	if (!c)
		return;
	for (struct cel_node *n = c->nodes, *after; n; n = after) {
		after = n->next;
		free(n->arg);
		free(n->name);
		json_object_put(n->literal);
		schema_regex_free(n->regex);
		free(n);
	}
	free(c);
}

bool schema_cel_uses_old(const struct schema_cel *c)
{
	return c->uses_old;
}
