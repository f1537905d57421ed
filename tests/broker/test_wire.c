/* SPDX-License-Identifier: MIT */
/* The admin API's messages: what the specification shows, and tables of what must be refused. */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/broker/wire.h"

#define NOW 1772323199 /* 2026-02-28T23:59:59Z */

Test(broker_wire, a_resource_path_has_three_plain_segments)
{
	static const struct {
		const char *path;
		bool ok;
	} rows[] = {
		{"default/11111111-2222-3333-4444-555555555555/root", true},
		{"a/b/c", true},
		{"_/-/0", true},
		{"a.b/c..d/e.", true},
		{"", false},
		{"a", false},
		{"a/b", false},
		{"a/b/", false},
		{"a//c", false},
		{"/a/b/c", false},
		{"//", false},
		{"a/b/c/", false},
		{"a/b/c/d", false},
		{".a/b/c", false},
		{"a/./c", false},
		{"a/../c", false},
		{"../../etc", false},
		{"a/b/c%20", false},
		{"a/b/%2e%2e", false},
		{"a/b/c d", false},
		{"a/b/c;d", false},
		{"a/b/c~", false},
		{"a/b/\xc3\xa4", false},
		{"a/b\\c/d", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = ERR_INIT;

		cr_expect_eq(broker_wire_resource_check(rows[i].path, &err) == 0, rows[i].ok, "%s",
			rows[i].path);
		cr_expect_eq(err.kind, rows[i].ok ? ERR_NONE : ERR_INVALID, "%s", rows[i].path);
	}
}

Test(broker_wire, policies_are_base64url_without_padding)
{
	static const struct {
		const char *body;
		bool with_id;
		const char *id, *text; /* NULL: refused */
	} rows[] = {
		{"{\"type\":\"rego\",\"policy_id\":\"default_cpu\",\"policy\":\"YWI\"}", true,
			"default_cpu", "ab"},
		{"{\"policy_id\":\"a-B_9\",\"policy\":\"YWI\",\"type\":7}", true, "a-B_9", "ab"},
		{"{\"policy\":\"YWI\"}", false, NULL, "ab"},
		{"{\"policy\":\"YWI\",\"policy_id\":\"../x\"}", false, NULL, "ab"},
		{"{\"policy\":\"w6Tigqw\"}", false, NULL, "\xc3\xa4\xe2\x82\xac"},
		{"{\"policy\":\"YWI=\"}", false, NULL, NULL},
		{"{\"policy\":\"YWJ\"}", false, NULL, NULL}, /* bits left over */
		{"{\"policy\":\"YW+/\"}", false, NULL, NULL},
		{"{\"policy\":\"YW I\"}", false, NULL, NULL},
		{"{\"policy\":\"\"}", false, NULL, NULL},
		{"{\"policy\":\"AAAA\"}", false, NULL, NULL}, /* NUL */
		{"{\"policy\":\"_w\"}", false, NULL, NULL},   /* no UTF-8 */
		{"{\"policy\":null}", false, NULL, NULL},
		{"{\"policy\":[\"YWI\"]}", false, NULL, NULL},
		{"{}", false, NULL, NULL},
		{"[]", false, NULL, NULL},
		{"null", false, NULL, NULL},
		{"", false, NULL, NULL},
		{"{\"policy\":\"YWI\"", false, NULL, NULL},
		{"{\"policy\":\"YWI\",\"policy\":\"YWI\"}", false, NULL, NULL},
		{"{\"policy\":\"YWI\"}", true, NULL, NULL},
		{"{\"policy_id\":\"\",\"policy\":\"YWI\"}", true, NULL, NULL},
		{"{\"policy_id\":\"a/b\",\"policy\":\"YWI\"}", true, NULL, NULL},
		{"{\"policy_id\":\"a.b\",\"policy\":\"YWI\"}", true, NULL, NULL},
		{"{\"policy_id\":\"a b\",\"policy\":\"YWI\"}", true, NULL, NULL},
		{"{\"policy_id\":7,\"policy\":\"YWI\"}", true, NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct broker_wire_policy p = {NULL, NULL, 0};
		struct err err = ERR_INIT;
		int rc = broker_wire_policy_parse(
			rows[i].body, strlen(rows[i].body), rows[i].with_id, &p, &err);

		cr_expect_eq(rc == 0, rows[i].text != NULL, "%s: %s", rows[i].body, err.text);
		if (rc == 0 && rows[i].text) {
			cr_expect_eq(p.len, strlen(rows[i].text));
			cr_expect_str_eq(p.text, rows[i].text);
			cr_expect(str_eq(p.id, rows[i].id), "%s", rows[i].body);
		} else {
			cr_expect_eq(err.kind, ERR_INVALID, "%s", rows[i].body);
		}
		broker_wire_policy_fini(&p);
	}
}

struct seen {
	struct strbuf text; /* name=entry; ... */
	const char *refuse;
};

static int see(void *arg, const char *name, const char *entry, size_t len, struct err *err)
{
	struct seen *s = arg;

	if (str_eq(s->refuse, name))
		return err_set(err, ERR_INVALID, "refused");
	strbuf_addf(&s->text, "%s=%s;", name, entry);
	cr_expect_eq(len, strlen(entry));
	return 0;
}

/* A message around a payload given as text. */
static void message(struct strbuf *out, const char *payload)
{
	strbuf_reset(out);
	strbuf_adds(out, "{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"");
	bytes_to_b64(out, payload, strlen(payload));
	strbuf_adds(out, "\"}");
}

#define ENTRY(name, value)                                                                         \
	name "={\"version\":\"0.1.0\",\"name\":\"" name                                            \
	     "\",\"expiration\":\"2027-02-28T23:59:59Z\",\"value\":" value "};"

Test(broker_wire, values_of_every_json_type_come_one_by_one)
{
	static const struct {
		const char *payload, *entries;
	} rows[] = {
		{"{}", ""},
		{"{\"a\":null}", ENTRY("a", "null")},
		{"{\"a\":{\"z\":[1,{\"y\":null,\"b\":false}],\"k\":\"v\\u00e4/\\n\"}}",
			ENTRY("a", "{\"k\":\"v\xc3\xa4/\\n\",\"z\":[1,{\"b\":false,\"y\":null}]}")},
		{"{\"b\":[],\"a\":{},\"c\":\"\",\"d\":true}",
			ENTRY("b", "[]") ENTRY("a", "{}") ENTRY("c", "\"\"") ENTRY("d", "true")},
		{"{\"n\":-12,\"f\":1.50,\"e\":1e3}",
			ENTRY("n", "-12") ENTRY("f", "1.50") ENTRY("e", "1e3")},
		{"{\"tpm_pcr4\":[\"00\",\"01\"]}", ENTRY("tpm_pcr4", "[\"00\",\"01\"]")},
	};
	cleanup_strbuf struct strbuf body = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = {STRBUF_INIT, NULL};
		struct err err = ERR_INIT;

		message(&body, rows[i].payload);
		cr_expect_eq(broker_wire_values(body.data, body.len, NOW, see, &s, &err), 0,
			"%s: %s", rows[i].payload, err.text);
		cr_expect_str_eq(strbuf_str(&s.text), rows[i].entries);
		strbuf_fini(&s.text);
	}
}

Test(broker_wire, a_refused_name_leaves_those_before_it)
{
	cleanup_strbuf struct strbuf body = STRBUF_INIT;
	struct seen s = {STRBUF_INIT, "b"};
	struct err err = ERR_INIT;

	message(&body, "{\"a\":1,\"b\":2,\"c\":3}");
	cr_expect_eq(broker_wire_values(body.data, body.len, NOW, see, &s, &err), -1);
	cr_expect_str_eq(strbuf_str(&s.text), ENTRY("a", "1"));
	strbuf_fini(&s.text);
}

Test(broker_wire, expiration_is_twelve_months_on)
{
	static const struct {
		int64_t now;
		const char *expires;
	} rows[] = {
		{0, "1971-01-01T00:00:00Z"},
		{951782400, "2001-02-28T00:00:00Z"},  /* 2000-02-29 */
		{1709251199, "2025-02-28T23:59:59Z"}, /* 2024-02-29T23:59:59Z */
		{1677628799, "2024-02-28T23:59:59Z"}, /* 2023-02-28 */
		{1709251200, "2025-03-01T00:00:00Z"},
	};
	cleanup_strbuf struct strbuf body = STRBUF_INIT;

	message(&body, "{\"a\":1}");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct seen s = {STRBUF_INIT, NULL};
		struct err err = ERR_INIT;

		cr_assert_eq(
			broker_wire_values(body.data, body.len, rows[i].now, see, &s, &err), 0);
		cr_expect_not_null(
			strstr(strbuf_str(&s.text), rows[i].expires), "%s", strbuf_str(&s.text));
		strbuf_fini(&s.text);
	}
}

Test(broker_wire, hostile_messages_are_refused)
{
	static const char *const bodies[] = {"", "{}", "[]", "null", "\"sample\"",
		"{\"version\":", "{\"version\":\"0.1.0\",\"type\":\"sample\"}",
		"{\"version\":\"0.1.0\",\"payload\":\"e30=\"}",
		"{\"version\":\"0.2.0\",\"type\":\"sample\",\"payload\":\"e30=\"}",
		"{\"version\":null,\"type\":\"sample\",\"payload\":\"e30=\"}",
		"{\"version\":1,\"type\":\"sample\",\"payload\":\"e30=\"}",
		"{\"version\":\"0.1.0\",\"type\":\"Sample\",\"payload\":\"e30=\"}",
		"{\"version\":\"0.1.0\",\"type\":\"swid\",\"payload\":\"e30=\"}",
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"e30\"}", /* no padding */
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"e3 0=\"}",
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"\"}",
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":{}}",
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"bnVsbA==\"}", /* null */
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"payload\":\"e30=\"}x",
		"{\"version\":\"0.1.0\",\"type\":\"sample\",\"type\":\"sample\",\"payload\":\"e30=\"}"};
	static const char *const payloads[] = {"[]", "[{\"a\":1}]", "7", "{\"a\":}", "{\"a\":NaN}",
		"{\"a\":1,\"a\":2}", "{\"a\":\"\\u0000\"}", "{\"a\":\"\xff\"}",
		"{\"a\":1}{\"b\":2}", "{'a':1}", "\xef\xbb\xbf{}"};
	cleanup_strbuf struct strbuf body = STRBUF_INIT, deep = STRBUF_INIT;
	struct seen s = {STRBUF_INIT, NULL};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct err err = ERR_INIT;

		cr_expect_eq(broker_wire_values(bodies[i], strlen(bodies[i]), NOW, see, &s, &err),
			-1, "%s", bodies[i]);
		cr_expect_eq(err.kind, ERR_INVALID, "%s", bodies[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct err err = ERR_INIT;

		message(&body, payloads[i]);
		cr_expect_eq(broker_wire_values(body.data, body.len, NOW, see, &s, &err), -1, "%s",
			payloads[i]);
	}
	strbuf_adds(&deep, "{\"a\":");
	for (unsigned i = 0; i < 100; i++)
		strbuf_addc(&deep, '[');
	message(&body, deep.data);
	cr_expect_eq(
		broker_wire_values(body.data, body.len, NOW, see, &s, &(struct err)ERR_INIT), -1);
	cr_expect_eq(s.text.len, 0);
	strbuf_fini(&s.text);
}

Test(broker_wire, an_absent_version_is_the_current_one)
{
	static const char body[] = "{\"type\":\"sample\",\"payload\":\"eyJhIjoxfQ==\"}";
	struct seen s = {STRBUF_INIT, NULL};
	struct err err = ERR_INIT;

	cr_expect_eq(broker_wire_values(body, strlen(body), NOW, see, &s, &err), 0, "%s", err.text);
	cr_expect_str_eq(strbuf_str(&s.text), ENTRY("a", "1"));
	strbuf_fini(&s.text);
}

Test(broker_wire, the_value_is_read_back_from_its_entry)
{
	static const struct {
		const char *entry, *value; /* NULL: refused */
	} rows[] = {
		{"{\"version\":\"0.1.0\",\"name\":\"a\",\"value\":null}", "null"},
		{"{\"value\":{\"b\":1,\"a\":[2]}}", "{\"a\":[2],\"b\":1}"},
		{"{\"value\":\"x\"}", "\"x\""},
		{"{\"name\":\"a\"}", NULL},
		{"[]", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		struct err err = ERR_INIT;
		int rc = broker_wire_entry_value(rows[i].entry, strlen(rows[i].entry), &out, &err);

		cr_expect_eq(rc == 0, rows[i].value != NULL, "%s", rows[i].entry);
		if (rows[i].value)
			cr_expect_str_eq(strbuf_str(&out), rows[i].value);
	}
}
