/* SPDX-License-Identifier: MIT */
/*
 * Reads an expression into a tree, by recursive descent with a bounded depth. Refuses what Go's
 * regexp refuses, with its words, and Unicode classes, which it would take.
 */
#include "config.h"

#include "regex_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define DEPTH_MAX  100
#define REPEAT_MAX 1000
#define NODES_MAX  8000

struct parser {
	const char *all, *p, *end;
	struct regex_node **arena;
	struct err *err;
	unsigned depth, nodes;
	bool fold, multiline, dotall, ungreedy;
};

static struct regex_node *parse_alt(struct parser *p);

/* ---- nodes */

void regex_arena_free(struct regex_node *arena)
{
	for (struct regex_node *next; arena; arena = next) {
		next = arena->next;
		free(arena->range);
		free(arena);
	}
}

static struct regex_node *fail(struct parser *p, const char *what, const char *from, const char *to)
{
	if (!err_is_set(p->err))
		err_set(p->err, ERR_INVALID, "error parsing regexp: %s: `%.*s`", what,
			(int)(to - from), from);
	return NULL;
}

static struct regex_node *node(
	struct parser *p, enum regex_kind kind, struct regex_node *left, struct regex_node *right)
{
	struct regex_node *n;

	if (++p->nodes > NODES_MAX)
		return fail(p, "expression too large", p->all, p->all);
	n = xcalloc(1, sizeof(*n));
	n->kind = kind;
	n->left = left;
	n->right = right;
	n->next = *p->arena;
	*p->arena = n;
	return n;
}

static struct regex_node *literal(struct parser *p, int32_t r)
{
	struct regex_node *set = node(p, REGEX_SET, NULL, NULL);

	if (!set)
		return NULL;
	if (p->fold)
		regex_set_add_folded(set, r, r);
	else
		regex_set_add(set, r, r);
	regex_set_finish(set, false);
	return set;
}

static struct regex_node *any(struct parser *p)
{
	struct regex_node *set = node(p, REGEX_SET, NULL, NULL);

	if (!set)
		return NULL;
	if (!p->dotall)
		regex_set_add(set, '\n', '\n');
	regex_set_finish(set, true);
	return set;
}

/* ---- characters and classes */

static int32_t next_rune(struct parser *p)
{
	size_t n;
	int32_t r = regex_rune(p->p, (size_t)(p->end - p->p), &n);

	p->p += n;
	return r;
}

static int hex_digit(int c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static int32_t hex_escape(struct parser *p)
{
	int32_t r = 0;
	int n = 0;

	if (p->p < p->end && *p->p == '{') {
		for (p->p++; p->p < p->end && hex_digit(*p->p) >= 0 && r <= REGEX_RUNE_MAX; n++)
			r = r * 16 + hex_digit(*p->p++);
		if (n == 0 || p->p >= p->end || *p->p != '}' || r > REGEX_RUNE_MAX)
			return -1;
		p->p++;
		return r;
	}
	for (; n < 2 && p->p < p->end && hex_digit(*p->p) >= 0; n++)
		r = r * 16 + hex_digit(*p->p++);
	return n == 2 ? r : -1;
}

/* Behind a backslash: one character, or -1 for what is none (err is set). */
static int32_t escape(struct parser *p)
{
	static const char from[] = "afnrtv", to[] = "\a\f\n\r\t\v";
	const char *start = p->p - 1, *at;
	int32_t r;

	if (p->p >= p->end) {
		fail(p, "trailing backslash at end of expression", p->end, p->end);
		return -1;
	}
	r = next_rune(p);
	if (r < 0x80 && r != 0 && (at = strchr(from, (char)r)))
		return (unsigned char)to[at - from];
	if (r == 'x' && (r = hex_escape(p)) >= 0)
		return r;
	if (r == '0' || (r >= '1' && r <= '7' && p->p < p->end && *p->p >= '0' && *p->p <= '7')) {
		r -= '0';
		for (int i = 0; i < 2 && p->p < p->end && *p->p >= '0' && *p->p <= '7'; i++)
			r = r * 8 + (*p->p++ - '0');
		return r;
	}
	if (r >= 0 && r < 0x80 && (r == '_' || !regex_is_word(r)))
		return r;
	fail(p, "invalid escape sequence", start, p->p);
	return -1;
}

/* \d, \W and the like at p->p (behind no backslash yet)? Consumed when so. */
static bool perl_class(struct parser *p, struct regex_node *set)
{
	char c;

	if (p->end - p->p < 2 || p->p[0] != '\\' || !strchr("dDsSwW", p->p[1]) || !p->p[1])
		return false;
	c = (char)(p->p[1] | 0x20);
	regex_set_add_class(set, &c, 1, c != p->p[1], p->fold);
	p->p += 2;
	return true;
}

/* [:alpha:]: 1 = read, 0 = there is none, -1 = there is no such class. */
static int posix_class(struct parser *p, struct regex_node *set)
{
	const char *start = p->p, *stop, *name = p->p + 2;
	bool negated;

	if (p->end - p->p < 2 || p->p[0] != '[' || p->p[1] != ':')
		return 0;
	for (stop = name; stop + 1 < p->end && !(stop[0] == ':' && stop[1] == ']'); stop++)
		;
	if (stop + 1 >= p->end)
		return 0;
	negated = name < stop && *name == '^';
	if ((size_t)(stop - name) - negated < 2 ||
		!regex_set_add_class(
			set, name + negated, (size_t)(stop - name) - negated, negated, p->fold)) {
		fail(p, "invalid character class range", start, stop + 2);
		return -1;
	}
	p->p = stop + 2;
	return 1;
}

static int class_range(struct parser *p, struct regex_node *set)
{
	const char *start = p->p;
	int32_t from, to;

	for (int i = 0; i < 2; i++) {
		if (p->p >= p->end)
			break;
		if (*p->p == '\\') {
			p->p++;
			to = escape(p);
		} else
			to = next_rune(p);
		if (to < 0)
			return -1;
		if (i == 0)
			from = to;
		if (i == 0 && p->end - p->p >= 2 && p->p[0] == '-' && p->p[1] != ']') {
			p->p++;
			continue;
		}
		if (to < from) {
			fail(p, "invalid character class range", start, p->p);
			return -1;
		}
		if (p->fold)
			regex_set_add_folded(set, from, to);
		else
			regex_set_add(set, from, to);
		return 0;
	}
	return 0;
}

static struct regex_node *parse_class(struct parser *p)
{
	const char *start = p->p++;
	struct regex_node *set = node(p, REGEX_SET, NULL, NULL);
	bool negated = p->p < p->end && *p->p == '^', first = true;
	int posix;

	if (!set)
		return NULL;
	p->p += negated;
	for (; p->p < p->end && (*p->p != ']' || first); first = false) {
		if (p->end - p->p >= 2 && p->p[0] == '\\' && (p->p[1] | 0x20) == 'p')
			return fail(p, "Unicode classes are not supported", p->p, p->p + 2);
		posix = posix_class(p, set);
		if (posix < 0)
			return NULL;
		if (posix || perl_class(p, set))
			continue;
		if (class_range(p, set) < 0)
			return NULL;
	}
	if (p->p >= p->end)
		return fail(p, "missing closing ]", start, p->end);
	p->p++;
	regex_set_finish(set, negated);
	return set;
}

/* ---- groups, repeats */

static struct regex_node *bad_group(struct parser *p, const char *start)
{
	return fail(
		p, "invalid or unsupported Perl syntax", start, p->p < p->end ? p->p + 1 : p->end);
}

/* (?flags) or (?flags: ... ; p->p behind "(?". 1 = a group follows, 0 = flags alone, -1 = wrong. */
static int group_flags(struct parser *p, const char *start)
{
	bool off = false, seen = false;

	for (; p->p < p->end; p->p++) {
		switch (*p->p) {
		case 'i':
			p->fold = !off;
			break;
		case 'm':
			p->multiline = !off;
			break;
		case 's':
			p->dotall = !off;
			break;
		case 'U':
			p->ungreedy = !off;
			break;
		case '-':
			if (off) {
				bad_group(p, start);
				return -1;
			}
			off = true;
			seen = false;
			continue;
		case ':':
		case ')':
			if (off && !seen) {
				bad_group(p, start);
				return -1;
			}
			return *p->p++ == ':';
		default:
			bad_group(p, start);
			return -1;
		}
		seen = true;
	}
	fail(p, "missing argument to repetition operator", start, p->end);
	return -1;
}

/* ?P<name> or ?<name> at p->p. */
static bool group_name(struct parser *p)
{
	const char *q = p->p + 1, *name;

	if (q < p->end && *q == 'P')
		q++;
	if (q >= p->end || *q != '<')
		return false;
	for (name = ++q; q < p->end && regex_is_word((unsigned char)*q); q++)
		;
	if (q == name || q >= p->end || *q != '>')
		return false;
	p->p = q + 1;
	return true;
}

static struct regex_node *parse_group(struct parser *p)
{
	struct parser before = *p;
	const char *start = p->p++;
	struct regex_node *n;
	int kind = 1;

	if (p->p < p->end && *p->p == '?' && !group_name(p)) {
		p->p++;
		kind = group_flags(p, start);
		if (kind < 0)
			return NULL;
		if (kind == 0)
			return node(p, REGEX_EMPTY, NULL, NULL); /* for the rest of this group */
	}
	if (++p->depth > DEPTH_MAX)
		return fail(p, "expression nests too deeply", p->all, p->end);
	n = parse_alt(p);
	if (!n)
		return NULL;
	if (p->p >= p->end)
		return fail(p, "missing closing )", p->all, p->end);
	p->p++;
	p->depth--;
	p->fold = before.fold;
	p->multiline = before.multiline;
	p->dotall = before.dotall;
	p->ungreedy = before.ungreedy;
	return n;
}

/* {n}, {n,} or {n,m} at p->p: consumed. Anything else is literal text. */
static bool counts(struct parser *p, int *min, int *max)
{
	const char *q = p->p + 1;
	int v[2] = {0, -1}, i = 0;

	for (;; i++) {
		const char *digits = q;

		if (q + 1 < p->end && *q == '0' && q[1] >= '0' && q[1] <= '9')
			return false;
		for (v[i] = 0; q < p->end && *q >= '0' && *q <= '9'; q++)
			if (v[i] <= REPEAT_MAX)
				v[i] = v[i] * 10 + (*q - '0');
		if (q == digits) {
			if (i == 0)
				return false;
			v[1] = -1;
		}
		if (q < p->end && *q == ',' && i == 0) {
			q++;
			continue;
		}
		break;
	}
	if (q >= p->end || *q != '}')
		return false;
	p->p = q + 1;
	*min = v[0];
	*max = i == 0 ? v[0] : v[1];
	return true;
}

static struct regex_node *parse_repeat(struct parser *p, struct regex_node *atom)
{
	const char *last = NULL;

	while (atom && p->p < p->end) {
		const char *start = p->p;
		int min = 0, max = -1;
		struct regex_node *n;

		if (*p->p == '*' || *p->p == '+' || *p->p == '?') {
			min = *p->p == '+';
			max = *p->p == '?' ? 1 : -1;
			p->p++;
		} else if (*p->p != '{' || !counts(p, &min, &max))
			break;
		if (p->p < p->end && *p->p == '?')
			p->p++; /* not greedy: matches the same texts */
		if (last)
			return fail(p, "invalid nested repetition operator", last, p->p);
		if (min > REPEAT_MAX || max > REPEAT_MAX || (max >= 0 && min > max))
			return fail(p, "invalid repeat count", start, p->p);
		n = node(p, REGEX_REPEAT, atom, NULL);
		if (n) {
			n->min = min;
			n->max = max;
		}
		atom = n;
		last = start;
	}
	return atom;
}

static struct regex_node *parse_quoted(struct parser *p)
{
	struct regex_node *n = node(p, REGEX_EMPTY, NULL, NULL);

	for (p->p += 2; n && p->p < p->end; n = node(p, REGEX_CAT, n, literal(p, next_rune(p))))
		if (p->end - p->p >= 2 && p->p[0] == '\\' && p->p[1] == 'E') {
			p->p += 2;
			break;
		}
	return err_is_set(p->err) ? NULL : n;
}

static struct regex_node *parse_escape(struct parser *p)
{
	static const struct {
		char c;
		enum regex_kind kind;
	} assertions[] = {{'A', REGEX_TEXT_BEGIN}, {'z', REGEX_TEXT_END}, {'b', REGEX_WORD},
		{'B', REGEX_NOT_WORD}};
	char c = p->end - p->p >= 2 ? p->p[1] : '\0';
	struct regex_node *set;
	int32_t r;

	for (size_t i = 0; i < ARRAY_LEN(assertions); i++)
		if (c == assertions[i].c) {
			p->p += 2;
			return node(p, assertions[i].kind, NULL, NULL);
		}
	if ((c | 0x20) == 'p')
		return fail(p, "Unicode classes are not supported", p->p, p->p + 2);
	if (c == 'Q')
		return parse_quoted(p);
	if (c && strchr("dDsSwW", c)) {
		set = node(p, REGEX_SET, NULL, NULL);
		if (!set)
			return NULL;
		perl_class(p, set);
		regex_set_finish(set, false);
		return set;
	}
	p->p++;
	r = escape(p);
	return r < 0 ? NULL : literal(p, r);
}

static struct regex_node *parse_atom(struct parser *p)
{
	const char *start = p->p;
	int min, max;

	switch (*p->p) {
	case '(':
		return parse_group(p);
	case '[':
		return parse_class(p);
	case '\\':
		return parse_escape(p);
	case '.':
		p->p++;
		return any(p);
	case '^':
		p->p++;
		return node(p, p->multiline ? REGEX_LINE_BEGIN : REGEX_TEXT_BEGIN, NULL, NULL);
	case '$':
		p->p++;
		return node(p, p->multiline ? REGEX_LINE_END : REGEX_TEXT_END, NULL, NULL);
	case '*':
	case '+':
	case '?':
		return fail(p, "missing argument to repetition operator", p->p, p->p + 1);
	case '{':
		if (counts(p, &min, &max))
			return fail(p, "missing argument to repetition operator", start, p->p);
		break;
	default:
		break;
	}
	return literal(p, next_rune(p));
}

static struct regex_node *parse_alt(struct parser *p)
{
	struct regex_node *alt = NULL, *cat = node(p, REGEX_EMPTY, NULL, NULL);

	while (cat && p->p < p->end && *p->p != ')') {
		struct regex_node *atom;

		if (*p->p == '|') {
			p->p++;
			alt = alt ? node(p, REGEX_ALT, alt, cat) : cat;
			cat = alt ? node(p, REGEX_EMPTY, NULL, NULL) : NULL;
			continue;
		}
		atom = parse_repeat(p, parse_atom(p));
		if (!atom)
			return NULL;
		cat = cat->kind == REGEX_EMPTY ? atom : node(p, REGEX_CAT, cat, atom);
	}
	return alt && cat ? node(p, REGEX_ALT, alt, cat) : cat;
}

struct regex_node *regex_parse(
	const char *pattern, size_t len, struct regex_node **arena, struct err *err)
{
	struct parser p = {
		.all = pattern, .p = pattern, .end = pattern + len, .arena = arena, .err = err};
	struct regex_node *n = parse_alt(&p);

	if (n && p.p < p.end)
		return fail(&p, "unexpected )", pattern, p.end);
	return n;
}
