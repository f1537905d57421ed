/* SPDX-License-Identifier: MIT */
/* The subset of CEL: what rules say, what cannot be read, and what is refused. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/cel.h"
#include "tec/schema/structural.h"

static const char type_text[] =
	"{type: object, properties: {i: {type: integer}, s: {type: string}, b: {type: boolean}, o: {type: "
	"object, properties: {x: {type: string}}}, l: {type: array, items: {type: integer}}, any: "
	"{type: object}, nil: {type: string}}}";

static const char self_text[] = "{i: 5, s: abc, b: true, o: {x: v}, l: [1, 2, 3], nil: null}";

static const struct {
	const char *rule;
	const char *result;
} rows[] = {
	{"self.i == 5", "true"},
	{"self.i != 5", "false"},
	{"self.i <= 4", "false"},
	{"5 == self.i && self.s == 'abc'", "true"},
	{"'a' <= 'b' && 'a' <= 'aa' && 'a' <= 'a' && !('b' <= 'a')", "true"},
	{"has(self.i)", "true"},
	{"has(self.any)", "false"},
	{"has(self.nil)", "false"},
	{"!!has(self.i)", "true"},
	{"has(self.o.x)", "true"},
	{"has(oldSelf.o.x)", "false"},
	{"oldSelf.o.x == 'v'", "false"},
	{"has(oldSelf.s) == has(self.s)", "false"},
	{"size(self.l) == 3", "true"},
	{"size(self.l) != 0", "true"},
	{"size(oldSelf.l) != 0", "false"},
	{"self.s.matches('^[a-c]+$')", "true"},
	{"self.s.matches('d')", "false"},
	{"oldSelf.s.matches('d')", "false"},
	{"oldSelf.i == 4 && self.i != oldSelf.i", "true"},
	{" ( self . s == 'abc'\n) ", "true"},
	/* && binds more than ||, and what cannot be read matters only where nothing else decides. */
	{"has(self.s) || has(self.s) && has(self.any)", "true"},
	{"has(self.any) && has(self.s) || has(self.s)", "true"},
	{"has(self.s) || oldSelf.s == 'a'", "true"},
	{"oldSelf.s == 'a' || has(self.s)", "true"},
	{"oldSelf.s == 'a' || has(self.any)", "false"},
	{"has(self.any) && oldSelf.s == 'a'", "false"},
	{"oldSelf.s == 'a' && has(self.any)", "false"},
	{"oldSelf.s == 'a' && has(oldSelf.o.x)", "false"},
	{"!(oldSelf.s == 'a')", "false"},
};

/* With the schema's types; the caller frees. */
static char *run(const char *rule, const char *self, const char *old)
{
	struct schema_node *type = node_of(type_text);
	struct err err = ERR_INIT;
	struct schema_cel *c = schema_cel_new(rule, type, &err);
	cleanup_json struct json_object *now = parse(self), *then = parse(old);
	bool holds = c && schema_cel_holds(c, now, then);

	schema_structural_free(type);
	if (!c)
		return xasprintf("refused: %s", err.text);
	schema_cel_free(c);
	return xstrdup(holds ? "true" : "false");
}

Test(schema_cel, says)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_free char *r = run(rows[i].rule, self_text, "{i: 4}");

		cr_expect_str_eq(r, rows[i].result, "%s: %s", rows[i].rule, r);
	}
}

/* Values that are not what the schema says: nothing is true of them, nor is its opposite. */
Test(schema_cel, is_not_taken_in_by_other_types)
{
	static const struct {
		const char *rule, *self, *result;
	} hostile[] = {
		{"self.i == 5", "{i: '5'}", "false"},
		{"self.i == 5", "{i: {}}", "false"},
		{"self.s == 'abc'", "{s: [abc]}", "false"},
		{"self.nil == ''", "{}", "false"},
		{"self.s.matches('.*')", "{s: null}", "false"},
		{"size(self.l) == 1", "{l: {a: 1}}", "false"},
		{"has(self.o.x)", "{o: [x]}", "false"},
		{"has(self.o.x)", "{o: x}", "false"},
		{"self.o.x == 'v'", "{o: null}", "false"},
		{"has(self.i)", "[]", "false"},
		{"self.s.matches('^abc$')", "{s: \"abc\\n\"}", "false"},
	};

	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		cleanup_free char *r = run(hostile[i].rule, hostile[i].self, "{i: 4}");

		cr_expect_str_eq(
			r, hostile[i].result, "%s of %s: %s", hostile[i].rule, hostile[i].self, r);
	}
}

static const struct {
	const char *rule, *why;
} bad[] = {
	{"", "at byte 0: '' is not supported"},
	{"self.", "undefined field ''"},
	{"self.i ==", "at byte 9: '' is not supported"},
	{"self.i = 1", "expected a condition"},
	{"self.i == 1 self", "at byte 12: not supported: 'self'"},
	{"(self.i == 1", "expected ')'"},
	{"'abc", "the string is unterminated"},
	{"self.s == 'a\nb'", "the string is unterminated"},
	{"self.s == '\\n'", "contains an escape"},
	{"self.s == \"a\"", "'' is not supported"},
	{"self.i == 99999999999999999999", "not a whole number"},
	{"self.i == 1.5", "not a whole number"},
	{"self.i == 0x5", "not a whole number"},
	{"self.i == -1", "'' is not supported"},
	{"self.i == 1 == 1", "not supported: '== 1'"},
	{"self.i < 1", "expected a condition"},
	{"self.i >= 1", "expected a condition"},
	{"self.i + 1 == 2", "expected a condition"},
	{"self.l.all(x, x != 0)", "all() is not supported"},
	{"self.s.startsWith('a')", "startsWith() is not supported"},
	{"int(self.s) == 1", "int() is not supported"},
	{"'a' in self.l", "expected a condition"},
	{"self.l[0] == 1", "expected a condition"},
	{"has(self.i) ? has(self.s) : has(self.o)", "not supported: '? has"},
	{"foo == 1", "'foo' is not supported"},
	{"true", "'true' is not supported"},
	{"has(self)", "has() needs a field"},
	{"has(has(self.i))", "has() needs a field"},
	{"has(self.i, self.s)", "expected ')'"},
	{"has(self.nope)", "at byte 13: undefined field 'nope'"},
	{"self.i.x == 1", "undefined field 'x'"},
	{"size(self.s) == 1", "size() needs a list"},
	{"size(self)", "size() needs a list"},
	{"self.s.matches('(')", "missing closing parenthesis"},
	{"self.s.matches(1)", "expected a string in single quotes"},
	{"self.s.matches(self.s)", "expected a string in single quotes"},
	{"self.i.matches('a')", "matches() needs a string"},
	{"5", "expected a condition"},
	{"self.s && has(self.i)", "expected a condition"},
	{"has(self.i) && self.s", "expected a condition"},
	{"self.b", "expected a condition"},
	{"!self.s", "expected a condition"},
	{"self.i == 'a'", "cannot be compared"},
	{"self.any == 5", "cannot be compared"},
	{"self.l == oldSelf.l", "cannot be compared"},
	{"self == oldSelf", "cannot be compared"},
	{"has(self.i) <= has(self.s)", "cannot be compared"},
	{"\x01", "'' is not supported"},
};

Test(schema_cel, refuses)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_free char *r = run(bad[i].rule, self_text, "{i: 4}");

		cr_expect(str_starts(r, "refused: at byte ") && strstr(r, bad[i].why), "%s: %s",
			bad[i].rule, r);
	}
}

Test(schema_cel, tells_whether_it_needs_the_old_value)
{
	struct schema_node *type = node_of(type_text);
	struct err err = ERR_INIT;
	struct schema_cel *a = schema_cel_new("self.s == oldSelf.s", type, &err),
			  *b = schema_cel_new("self.s == 'oldSelf'", type, &err);

	cr_assert(schema_cel_uses_old(a) && !schema_cel_uses_old(b));
	schema_cel_free(a);
	schema_cel_free(b);
	schema_structural_free(type);
}

Test(schema_cel, is_bounded)
{
	static const char *const repeat[] = {
		"(", "!", "has(", "size(", "has(self.s) || ", "has(self.s) && (", "self.o."};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(repeat); i++)
		for (size_t len = 3500; len < 100000; len += 90000) {
			cleanup_free char *r = NULL;

			strbuf_reset(&b);
			while (b.len < len)
				strbuf_adds(&b, repeat[i]);
			strbuf_adds(&b, "has(self.s)");
			r = run(b.data, self_text, "{}");
			cr_expect(str_starts(r, "refused: "), "%s", repeat[i]);
		}
}
