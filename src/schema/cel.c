/* SPDX-License-Identifier: MIT */
/*
 * Reads a rule into a tree: a hand-written lexer and recursive descent with a bounded depth, over
 * the grammar of the language without what we leave out. What is left out is named in the error.
 */
#include "config.h"

#include "tec/schema/cel.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cel_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define DEPTH_MAX 60

enum token { T_END, T_IDENT, T_INT, T_DOUBLE, T_STRING, T_OP };

struct parser {
	const char *rule, *p;
	struct schema_cel *c;
	struct err *err;
	unsigned depth;
	/* The token that is next. */
	enum token token;
	size_t at;
	char op[3];                 /* T_OP */
	struct strbuf text;         /* T_IDENT, T_STRING */
	struct json_object *number; /* owned; T_INT, T_DOUBLE */
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
	cel_fault(p->rule, at, p->err, what);
	return NULL;
}

/* ---- lexer */

static int hex_digits(struct parser *p, int n, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < n; i++, p->p++) {
		int c = (unsigned char)*p->p;

		if (!isxdigit(c))
			return -1;
		*out = *out * 16 + (uint32_t)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return 0;
}

static void add_rune(struct strbuf *b, uint32_t r)
{
	if (r < 0x80) {
		strbuf_addc(b, (char)r);
		return;
	}
	if (r >= 0x10000) {
		strbuf_addc(b, (char)(0xf0 | r >> 18));
		strbuf_addc(b, (char)(0x80 | (r >> 12 & 0x3f)));
	} else if (r >= 0x800)
		strbuf_addc(b, (char)(0xe0 | r >> 12));
	else
		strbuf_addc(b, (char)(0xc0 | r >> 6));
	if (r >= 0x800)
		strbuf_addc(b, (char)(0x80 | (r >> 6 & 0x3f)));
	strbuf_addc(b, (char)(0x80 | (r & 0x3f)));
}

static int lex_escape(struct parser *p)
{
	static const char from[] = "abfnrtv\\'\"`?", to[] = "\a\b\f\n\r\t\v\\'\"`?";
	const char *at;
	char c = *p->p;
	uint32_t r = 0;
	int n = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

	if (c && (at = strchr(from, c)) && !n) {
		p->p++;
		strbuf_addc(&p->text, to[at - from]);
		return 0;
	}
	if (n) {
		p->p++;
		if (hex_digits(p, n, &r) < 0)
			return -1;
	} else {
		for (int i = 0; i < 3; i++, p->p++) {
			if (*p->p < '0' || *p->p > (i ? '7' : '3'))
				return -1;
			r = r * 8 + (uint32_t)(*p->p - '0');
		}
	}
	if (r == 0 || r > 0x10ffff || (r >= 0xd800 && r < 0xe000))
		return -1;
	add_rune(&p->text, r);
	return 0;
}

/* p->p at the quote. */
static int lex_string(struct parser *p, bool raw)
{
	char quote[4] = {*p->p, *p->p, *p->p, '\0'};
	bool triple = strncmp(p->p, quote, 3) == 0;
	size_t n = triple ? 3 : 1;

	quote[n] = '\0';
	strbuf_reset(&p->text);
	for (p->p += n; *p->p && strncmp(p->p, quote, n) != 0;) {
		if (!triple && (*p->p == '\n' || *p->p == '\r'))
			break;
		if (*p->p != '\\' || raw) {
			strbuf_addc(&p->text, *p->p++);
			continue;
		}
		p->p++;
		if (lex_escape(p) < 0)
			return cel_fault(p->rule, (size_t)(p->p - p->rule), p->err,
				"Syntax error: unknown escape in a string");
	}
	if (strncmp(p->p, quote, n) != 0)
		return cel_fault(p->rule, p->at, p->err, "Syntax error: the string does not end");
	p->p += n;
	p->token = T_STRING;
	return 0;
}

static int lex_number(struct parser *p)
{
	char *end;
	bool hex = p->p[0] == '0' && (p->p[1] | 0x20) == 'x';
	size_t digits =
		hex ? 2 + strspn(p->p + 2, "0123456789abcdefABCDEF") : strspn(p->p, "0123456789");
	const char *rest = p->p + digits;
	bool dbl = !hex &&
		   ((*rest == '.' && isdigit((unsigned char)rest[1])) || (*rest | 0x20) == 'e');

	errno = 0;
	json_object_put(p->number);
	p->number = NULL;
	if (dbl) {
		double d = strtod(p->p, &end);

		if (!isfinite(d))
			return cel_fault(p->rule, p->at, p->err, "invalid double literal");
		p->number = json_object_new_double(d);
	} else {
		unsigned long long u = strtoull(p->p, &end, hex ? 16 : 10);

		if (errno || (hex && digits == 2))
			return cel_fault(p->rule, p->at, p->err, "invalid int literal");
		if ((*end | 0x20) == 'u')
			return cel_fault(
				p->rule, p->at, p->err, "unsigned numbers are not supported here");
		/* 2^63 only behind a minus; the parser sees to that. */
		if (u > (unsigned long long)INT64_MAX + 1)
			return cel_fault(p->rule, p->at, p->err, "invalid int literal");
		p->number = json_object_new_uint64(u);
	}
	if (isalpha((unsigned char)*end) || *end == '_')
		return cel_fault(p->rule, p->at, p->err, "Syntax error: invalid number");
	p->p = end;
	p->token = dbl ? T_DOUBLE : T_INT;
	return 0;
}

static void skip_blanks(struct parser *p)
{
	for (;;) {
		p->p += strspn(p->p, " \t\r\n\f");
		if (p->p[0] != '/' || p->p[1] != '/')
			return;
		p->p += strcspn(p->p, "\n");
	}
}

static int lex_op(struct parser *p)
{
	static const char *const two[] = {"==", "!=", "<=", ">=", "&&", "||"};

	p->token = T_OP;
	for (size_t i = 0; i < ARRAY_LEN(two); i++)
		if (strncmp(p->p, two[i], 2) == 0) {
			memcpy(p->op, two[i], 3);
			p->p += 2;
			return 0;
		}
	if (!strchr("<>!?:()[].,-+*/%{}", *p->p))
		return cel_fault(p->rule, p->at, p->err, "Syntax error: token recognition error");
	p->op[0] = *p->p++;
	p->op[1] = '\0';
	return 0;
}

static int next(struct parser *p)
{
	size_t n;

	skip_blanks(p);
	p->at = (size_t)(p->p - p->rule);
	p->op[0] = '\0';
	if (!*p->p) {
		p->token = T_END;
		return 0;
	}
	if (strchr("'\"", *p->p))
		return lex_string(p, false);
	if ((*p->p == 'r' || *p->p == 'R') && p->p[1] && strchr("'\"", p->p[1])) {
		p->p++;
		return lex_string(p, true);
	}
	if ((*p->p == 'b' || *p->p == 'B') && p->p[1] && strchr("'\"", p->p[1]))
		return cel_fault(p->rule, p->at, p->err, "bytes are not supported here");
	if (isdigit((unsigned char)*p->p) || (*p->p == '.' && isdigit((unsigned char)p->p[1])))
		return lex_number(p);
	if (!isalpha((unsigned char)*p->p) && *p->p != '_')
		return lex_op(p);
	for (n = 1; isalnum((unsigned char)p->p[n]) || p->p[n] == '_'; n++)
		;
	strbuf_reset(&p->text);
	strbuf_add(&p->text, p->p, n);
	p->p += n;
	p->token = T_IDENT;
	return 0;
}

static bool is_op(const struct parser *p, const char *op)
{
	return p->token == T_OP && str_eq(p->op, op);
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->token == T_IDENT && str_eq(strbuf_str(&p->text), word);
}

static int expect(struct parser *p, const char *op)
{
	cleanup_free char *what = NULL;

	if (is_op(p, op))
		return next(p);
	what = xasprintf("Syntax error: expected '%s'", op);
	return cel_fault(p->rule, p->at, p->err, what);
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
			return fail(p, p->at, "Syntax error: expected ',' or the end of a list");
		if (n && is_op(p, ",") && next(p) < 0)
			return NULL;
	}
	return n && next(p) == 0 ? n : NULL;
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
		n = next(p) < 0 ? NULL : parse_args(p, target ? with(n, target) : n, ")");
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
		return unsupported(p, p->at, "optional selection");
	if (p->token != T_IDENT)
		return fail(p, p->at, "Syntax error: expected a name behind '.'");
	name = xstrdup(strbuf_str(&p->text));
	if (next(p) < 0)
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
	size_t at = p->at;
	cleanup_free char *name = xstrdup(strbuf_str(&p->text)), *what = NULL;
	struct cel_node *n = NULL;

	if (next(p) < 0)
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
	struct cel_node *n = node(p, CEL_LITERAL, p->at);

	if (p->token == T_INT) {
		uint64_t u = json_object_get_uint64(p->number);

		if (u > INT64_MAX && !negative)
			return fail(p, p->at, "invalid int literal");
		n->literal = json_object_new_int64(!negative       ? (int64_t)u
						   : u > INT64_MAX ? INT64_MIN
								   : -(int64_t)u);
	} else {
		double d = json_object_get_double(p->number);

		n->literal = json_object_new_double(negative ? -d : d);
	}
	return next(p) < 0 ? NULL : n;
}

static struct cel_node *parse_primary(struct parser *p)
{
	struct cel_node *n;
	size_t at = p->at;

	switch (p->token) {
	case T_END:
		return fail(p, p->at, "Syntax error: unexpected end of the rule");
	case T_IDENT:
		return parse_name(p);
	case T_INT:
	case T_DOUBLE:
		return parse_number(p, false);
	case T_STRING:
		n = node(p, CEL_LITERAL, at);
		n->literal = json_object_new_string_len(strbuf_str(&p->text), (int)p->text.len);
		return next(p) < 0 ? NULL : n;
	case T_OP:
		break;
	}
	if (is_op(p, "(")) {
		n = next(p) < 0 ? NULL : parse_expr(p);
		return n && expect(p, ")") == 0 ? n : NULL;
	}
	if (is_op(p, "["))
		return next(p) < 0 ? NULL : parse_args(p, node(p, CEL_LIST, at), "]");
	if (is_op(p, "{"))
		return unsupported(p, at, "a map");
	return fail(p, at, "Syntax error: unexpected token");
}

static struct cel_node *parse_member(struct parser *p)
{
	struct cel_node *n = parse_primary(p);
	unsigned links = 0;

	while (n && (is_op(p, ".") || is_op(p, "["))) {
		size_t at = p->at;
		bool select = is_op(p, ".");

		if (++links > DEPTH_MAX)
			return fail(p, at, "the rule nests too deeply");
		if (next(p) < 0)
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
		return unsupported(p, p->at, "a message");
	return n;
}

static struct cel_node *parse_unary(struct parser *p)
{
	size_t at = p->at;
	struct cel_node *n;

	if (++p->depth > DEPTH_MAX)
		return fail(p, at, "the rule nests too deeply");
	if (is_op(p, "!")) {
		n = next(p) < 0 ? NULL : with(node(p, CEL_NOT, at), parse_unary(p));
	} else if (is_op(p, "-")) {
		if (next(p) < 0)
			return NULL;
		n = p->token == T_INT || p->token == T_DOUBLE
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
		size_t at = p->at;

		if (p->token == T_OP && p->op[0] && strchr("+-*/%", p->op[0]))
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
		n = next(p) < 0 ? NULL : binary(p, kind, at, n, parse_unary(p));
	}
	return NULL;
}

static struct cel_node *parse_logic(struct parser *p, bool either)
{
	struct cel_node *n = either ? parse_logic(p, false) : parse_relation(p);
	unsigned links = 0;

	while (n && is_op(p, either ? "||" : "&&")) {
		size_t at = p->at;

		if (++links > DEPTH_MAX)
			return fail(p, at, "the rule has too many conditions");
		if (next(p) < 0)
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
		return fail(p, p->at, "the rule nests too deeply");
	n = parse_logic(p, true);
	at = p->at;
	if (n && is_op(p, "?")) {
		yes = next(p) < 0 ? NULL : parse_logic(p, true);
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
	struct parser p = {.rule = rule, .p = rule, .c = c, .err = err, .text = STRBUF_INIT};

	c->type = type;
	if (strlen(rule) > SCHEMA_CEL_RULE_MAX)
		cel_fault(rule, 0, err, "the rule is too long");
	else if (next(&p) == 0)
		c->root = parse_expr(&p);
	if (c->root && p.token != T_END)
		cel_fault(rule, p.at, err, "Syntax error: unexpected token");
	strbuf_fini(&p.text);
	json_object_put(p.number);
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
