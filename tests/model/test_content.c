/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/model/content.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

static bool hash(const char *text, char hex[SHA256_HEX_LEN + 1])
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s: %s", text, err.text);
	return model_content_sha256(o, hex);
}

Test(model_content, only_names_and_values_count)
{
	char a[SHA256_HEX_LEN + 1], b[SHA256_HEX_LEN + 1];

	cr_assert(hash("{\"data\":{\"a\":\"QQ==\",\"b\":\"Qg==\"}}", a));
	cr_assert_eq(strlen(a), SHA256_HEX_LEN);
	cr_assert(hash(
		"{\"metadata\":{\"name\":\"x\"},\"type\":\"t\",\"data\":{\"b\":\"Qg==\",\"a\":\"QQ==\"}}",
		b));
	cr_assert_str_eq(a, b);
}

Test(model_content, nothing_moves_between_members)
{
	static const char *const data[] = {"{\"a\":\"QQ==\",\"b\":\"Qg==\"}",
		"{\"a\":\"QQ==Qg==\",\"b\":\"\"}", "{\"a\":\"\",\"b\":\"QQ==Qg==\"}",
		"{\"aQQ==\":\"\",\"b\":\"Qg==\"}", "{\"a\":\"QQ==\",\"bQg==\":\"\"}",
		"{\"a\":\"QQ==\",\"b\":\"Qg==\",\"c\":\"\"}", "{\"a\":\"QQ==\"}",
		"{\"b\":\"QQ==\",\"a\":\"Qg==\"}", "{\"aa\":\"QQ==\",\"b\":\"Qg==\"}"};
	char hex[ARRAY_LEN(data)][SHA256_HEX_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(data); i++) {
		cleanup_free char *text = xasprintf("{\"data\":%s}", data[i]);

		cr_assert(hash(text, hex[i]));
		for (size_t k = 0; k < i; k++)
			cr_assert_str_neq(hex[i], hex[k], "%s %s", data[i], data[k]);
	}
}

Test(model_content, what_has_no_hash)
{
	static const char *const text[] = {"{}", "{\"data\":null}", "{\"data\":{}}",
		"{\"data\":\"QQ==\"}", "{\"data\":[\"QQ==\"]}", "{\"data\":{\"a\":null}}",
		"{\"data\":{\"a\":1}}", "{\"data\":{\"a\":{\"b\":\"QQ==\"}}}",
		"{\"data\":{\"a\":\"QQ==\",\"b\":[]}}"};
	cleanup_strbuf struct strbuf many = STRBUF_INIT;
	char hex[SHA256_HEX_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(text); i++) {
		memset(hex, 'x', sizeof(hex));
		cr_assert(!hash(text[i], hex), "%s", text[i]);
		cr_assert_str_eq(hex, "");
	}
	strbuf_adds(&many, "{\"data\":{\"a\":\"\"");
	for (int i = 1; i <= MODEL_CONTENT_MEMBERS_MAX; i++)
		strbuf_addf(&many, ",\"m%d\":\"\"", i);
	strbuf_adds(&many, "}}");
	cr_assert(!hash(strbuf_str(&many), hex));
}

Test(model_content, a_text_to_be_sent_has_the_hash_of_what_comes_of_it)
{
	static const char text[] = "{\"kind\":\"Secret\",\"data\":{\"b\":\"Qg==\",\"a\":\"QQ==\"}}";
	cleanup_secret struct secret *s = secret_new_copy(text, strlen(text));
	cleanup_secret struct secret *none = secret_new_copy("{\"data\":", 8);
	char a[SHA256_HEX_LEN + 1], b[SHA256_HEX_LEN + 1];

	cr_assert(hash(text, a));
	cr_assert(model_content_of_text(s, b));
	cr_assert_str_eq(a, b);
	cr_assert(!model_content_of_text(none, b));
	cr_assert_str_eq(b, "");
}
