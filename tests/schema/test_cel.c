/* SPDX-License-Identifier: MIT */
/* The subset of CEL: what rules say, how errors spread, and what is refused. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/cel.h"

static const char self_text[] = "{i: 5, n: -3, s: \"abc\", u: \"h\xc3\xa9\", b: true, nil: null, "
				"l: [1, 2, 3], e: [], m: {k: v, in: 1}, d.ot: x, d-ash: y, big: "
				"9223372036854775807}";

static const struct {
	const char *rule;
	const char *result; /* true, false, or the error */
} rows[] = {
	{"true", "true"}, {"false", "false"}, {"self.i == 5", "true"}, {"self.i == 5.0", "true"},
	{"self.i != 5", "false"}, {"self.i == '5'", "false"},
	{"5 == self.i && self.s == \"abc\"", "true"},
	{"self.i > 4 && self.i >= 5 && self.i < 6 && self.i <= 5", "true"},
	{"self.n == -3 && -self.i == -5", "true"}, {"self.i == 0x5", "true"},
	{"self.big == 9223372036854775807", "true"}, {"-9223372036854775808 < self.n", "true"},
	{"1.5e1 == 15", "true"}, {"'a' < 'b' && 'a' < 'aa' && !('b' < 'a')", "true"},
	{"false < true", "true"}, {"self.nil == null", "true"}, {"self.s == null", "false"},
	{"has(self.i)", "true"}, {"has(self.x)", "false"}, {"has(self.nil)", "true"},
	{"!has(self.x)", "true"}, {"!!has(self.i)", "true"}, {"has(self.m.k)", "true"},
	{"has(self.x.y)", "no such key: x"}, {"self.x == 1", "no such key: x"},
	{"self.m['k'] == 'v'", "true"}, {"self.m['z'] == 'v'", "no such key: z"},
	{"self.l[1] == 2", "true"}, {"self.l[3] == 2", "index out of bounds: 3"},
	{"self.l[-1] == 2", "index out of bounds: -1"}, {"self.m.__in__ == 1", "true"},
	{"self.d__dot__ot == 'x' && self.d__dash__ash == 'y'", "true"},
	{"size(self.l) == 3 && self.l.size() == 3", "true"},
	{"size(self.e) == 0 && size(self.m) == 2", "true"},
	{"size(self.u) == 2 && size('') == 0", "true"}, {"size(self.i) == 1", "no such overload"},
	{"self.s.matches('^[a-c]+$')", "true"}, {"matches(self.s, 'd')", "false"},
	{"self.s.matches(self.s)", "true"}, {"self.i.matches('a')", "no such overload"},
	{"2 in self.l", "true"}, {"2.0 in self.l", "true"}, {"9 in self.l", "false"},
	{"'k' in self.m", "true"}, {"1 in self.m", "false"}, {"'a' in ['a', 'b',]", "true"},
	{"1 in self.i", "no such overload"}, {"[1, 2, 3] == self.l", "true"},
	{"[] == self.e && [1] != self.l", "true"}, {"self.b ? self.i == 5 : self.x == 1", "true"},
	{"!self.b ? self.x == 1 : true", "true"}, {"self.x ? true : true", "no such key: x"},
	{"self.i ? true : true", "no such overload"}, {"true || self.x == 1", "true"},
	{"self.x == 1 || true", "true"}, {"self.x == 1 || false", "no such key: x"},
	{"false && self.x == 1", "false"}, {"self.x == 1 && false", "false"},
	{"self.x == 1 && true", "no such key: x"}, {"self.x == 1 || self.y == 1", "no such key: x"},
	{"self.i || true", "true"}, {"self.i || false", "no such overload"},
	{"!self.i", "no such overload"}, {"-self.s == 'a'", "no such overload"},
	{"self.s < self.i", "no such overload"}, {"self.i == 5 // a comment", "true"},
	{"self.s == r'abc' && '\\x61\\u0062\\143' == \"abc\"", "true"},
	{"'''a'b''' == \"a'b\"", "true"}, {"r'\\d' == '\\\\d'", "true"}, {"self == self", "true"},
	{"self == oldSelf", "false"}, {"oldSelf.i == 4 && self.i != oldSelf.i", "true"},
	{"(true)", "true"}, {"true == !false", "true"}, {"true || true && false", "true"},
	{"self.i", "false"}, /* not a condition: never true */
};

static char *run(const char *rule, const struct schema_node *type, uint64_t budget)
{
	struct err err = ERR_INIT;
	struct schema_cel *c = schema_cel_new(rule, type, &err);
	cleanup_json struct json_object *self = parse(self_text), *old = parse("{i: 4}");
	enum schema_cel_result r;

	if (!c)
		return xasprintf("refused: %s", err.text);
	r = schema_cel_eval(c, self, old, &budget, &err);
	schema_cel_free(c);
	return r == SCHEMA_CEL_TRUE    ? xstrdup("true")
	       : r == SCHEMA_CEL_FALSE ? xstrdup("false")
	       : r == SCHEMA_CEL_ERROR ? xstrdup(err.text)
				       : xstrdup("budget");
}

Test(schema_cel, says)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *r = run(rows[i].rule, NULL, 100000);

		cr_expect_str_eq(r, rows[i].result, "%s: %s", rows[i].rule, r);
	}
}

static const struct {
	const char *rule, *why;
} bad[] = {
	{"", "1:1: Syntax error"},
	{"self.", "1:6: Syntax error"},
	{"self.i ==", "1:10: Syntax error"},
	{"self.i = 1", "1:8: Syntax error"},
	{"self.i == 1 self", "1:13: Syntax error"},
	{"(self.i == 1", "1:13: Syntax error: expected ')'"},
	{"self.l[1 == 1", "1:14: Syntax error: expected ']'"},
	{"'abc", "1:1: Syntax error: the string does not end"},
	{"'a\nb'", "the string does not end"},
	{"'\\q'", "unknown escape"},
	{"'\\ud800'", "unknown escape"},
	{"'\\x0'", "unknown escape"},
	{"b'abc'", "bytes are not supported"},
	{"1u == 1", "unsigned numbers are not supported"},
	{"9223372036854775808 == 1", "invalid int literal"},
	{"99999999999999999999 == 1", "invalid int literal"},
	{"1e999 == 1", "invalid double literal"},
	{"12ab == 1", "invalid number"},
	{"self.l.all(x, x > 0)", "all() is not supported here"},
	{"self.l.exists(x, x > 0)", "exists() is not supported here"},
	{"self.l.map(x, x)", "map() is not supported here"},
	{"self.s.startsWith('a')", "startsWith() is not supported here"},
	{"int(self.s) == 1", "int() is not supported here"},
	{"duration(self.s) == 1", "duration() is not supported here"},
	{"self.i + 1 == 2", "arithmetic is not supported here"},
	{"self.i % 2 == 0", "arithmetic is not supported here"},
	{"{'a': 1} == self.m", "a map is not supported here"},
	{"self.?x == 1", "optional selection is not supported here"},
	{"foo == 1", "undeclared reference to 'foo'"},
	{"has(self)", "invalid argument to has() macro"},
	{"has(self.m['k'])", "invalid argument to has() macro"},
	{"has(self.a, self.b)", "found no matching overload"},
	{"size() == 1", "found no matching overload"},
	{"self.s.matches('(')", "missing closing parenthesis"},
	{"self.s.matches(1)", "found no matching overload"},
	{"1 + 1", "arithmetic"},
	{"5", "must evaluate to a bool"},
	{"'a'", "must evaluate to a bool"},
	{"size(self)", "must evaluate to a bool"},
	{"self.i == 1\n&& self.", "2:9: Syntax error"},
	{"\x01", "token recognition error"},
};

Test(schema_cel, refuses)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_free char *r = run(bad[i].rule, NULL, 100000);

		cr_expect(str_starts(r, "refused: ") && strstr(r, bad[i].why), "%s: %s",
			bad[i].rule, r);
	}
}

static const char type_text[] =
	"{type: object, properties: {i: {type: integer}, s: {type: string}, t: {type: string, format: "
	"date-time}, m: {type: object, additionalProperties: {type: string}}, o: {type: object, "
	"properties: {x: {type: boolean}}}, l: {type: array, items: {type: integer}}, any: "
	"{x-kubernetes-int-or-string: true}}}";

static const struct {
	const char *rule, *why; /* NULL: fine */
} typed[] = {
	{"self.i == 5", NULL},
	{"has(self.t)", NULL},
	{"self.m.anything == 'a'", NULL},
	{"self.o.x", NULL},
	{"self.l[0] == 1", NULL},
	{"self.any == 5 || self.any == '5'", NULL},
	{"self.metadata.name == 'a' && self.kind == 'K'", NULL},
	{"self.nope == 5", "1:5: undefined field 'nope'"},
	{"self.o.nope", "1:7: undefined field 'nope'"},
	{"has(oldSelf.o.nope)", "undefined field 'nope'"},
	{"self.i.x == 1", "type 'integer' does not support field selection"},
	{"self.i", "must evaluate to a bool"},
	{"self.i == 'a'", "the types differ"},
	{"self.s && true", "expected a condition"},
	{"!self.s", "expected a condition"},
	{"self.m < self.m", "no order"},
	{"1 in self.s", "no matching overload for 'in'"},
	{"size(self.i) == 1", "no matching overload for 'size'"},
	{"self.i.matches('a')", "no matching overload for 'matches'"},
	{"self.t == 'a'", "a value of format date-time is not supported"},
};

Test(schema_cel, knows_the_schema)
{
	struct schema_node *type = node_of(type_text);

	for (size_t i = 0; i < ARRAY_LEN(typed); i++) {
		struct err err = ERR_INIT;
		struct schema_cel *c = schema_cel_new(typed[i].rule, type, &err);

		cr_expect_eq(c != NULL, typed[i].why == NULL, "%s: %s", typed[i].rule, err.text);
		cr_expect(c || strstr(err.text, typed[i].why), "%s: %s", typed[i].rule, err.text);
		schema_cel_free(c);
	}
	schema_structural_free(type);
}

Test(schema_cel, tells_whether_it_needs_the_old_value)
{
	struct err err = ERR_INIT;
	struct schema_cel *a = schema_cel_new("self == oldSelf", NULL, &err),
			  *b = schema_cel_new("self == 'oldSelf'", NULL, &err);

	cr_assert(schema_cel_uses_old(a) && !schema_cel_uses_old(b));
	schema_cel_free(a);
	schema_cel_free(b);
}

Test(schema_cel, is_bounded)
{
	struct strbuf b = STRBUF_INIT;
	static const char *const repeat[] = {
		"(", "!", "-", "[", "true ? ", "true || ", "self.l[", "1 == "};
	cleanup_free char *r = run("self.l == [1, 2, 3] && self.s.matches('^(a|b|c)*$')", NULL, 5);

	cr_assert_str_eq(r, "budget");
	for (size_t i = 0; i < ARRAY_LEN(repeat); i++) {
		struct err err = ERR_INIT;

		strbuf_reset(&b);
		while (b.len < SCHEMA_CEL_RULE_MAX - 20)
			strbuf_adds(&b, repeat[i]);
		strbuf_adds(&b, "true");
		cr_expect_null(schema_cel_new(b.data, NULL, &err), "%s", repeat[i]);
	}
	strbuf_fini(&b);
}

/* Lists that are sets or maps are the same in any order. */
Test(schema_cel, compares_lists_by_their_type)
{
	static const struct {
		const char *type, *a, *b;
		bool same;
	} lists[] = {
		{"{type: array, items: {type: string}}", "[a, b]", "[b, a]", false},
		{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, b]",
			"[b, a]", true},
		{"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "[a, b]",
			"[b, c]", false},
		{"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [n], items: "
		 "{type: object, required: [n], properties: {n: {type: string}, v: {type: "
		 "integer}}}}",
			"[{n: a, v: 1}, {n: b, v: 2}]", "[{n: b, v: 2}, {n: a, v: 1}]", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		cleanup_free char *text =
			xasprintf("{type: object, properties: {l: %s}}", lists[i].type);
		struct schema_node *type = node_of(text);
		cleanup_json struct json_object *a = json_add(json_obj(), "l", parse(lists[i].a)),
						*b = json_add(json_obj(), "l", parse(lists[i].b));
		struct err err = ERR_INIT;
		uint64_t budget = 1000;
		struct schema_cel *c = schema_cel_new("self.l == oldSelf.l", type, &err);

		cr_assert(c, "%s", err.text);
		cr_assert_eq(schema_cel_eval(c, a, b, &budget, &err),
			lists[i].same ? SCHEMA_CEL_TRUE : SCHEMA_CEL_FALSE, "%s", lists[i].a);
		schema_cel_free(c);
		schema_structural_free(type);
	}
}
