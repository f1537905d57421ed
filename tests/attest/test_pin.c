/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/attest/pin.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/jose/jwe.h"

#define ID   "11111111-2222-3333-4444-555555555555"
#define PATH "default/" ID "/root"
#define ONE  "{\"servers\":[{\"url\":\"http://a\",\"cert\":\"\"}],\"path\":\"" PATH "\""

static int read_config(const char *text, struct attest_config *c, struct err *err)
{
	return attest_config_read(text, strlen(text), c, err);
}

/* As render/ignition writes it. */
Test(attest_pin, the_operators_configuration)
{
	static const char text[] =
		"{\"servers\":[{\"url\":\"http://t:8080\",\"cert\":\"\"},{\"url\":\"https://u\",\"cert\":\"\"}],"
		"\"path\":\"" PATH "\",\"attestation_key\":{\"registration\":"
		"{\"url\":\"http://r:8001/register-ak\",\"uuid\":\"" ID "\",\"cert\":\"\"}}}";
	cleanup_attest_config struct attest_config c;
	struct err err = ERR_INIT;

	cr_assert_eq(read_config(text, &c, &err), 0, "%s", err.text);
	cr_assert_eq(c.n_servers, 2);
	cr_assert_str_eq(c.server[1].url, "https://u");
	cr_assert_null(c.server[1].cert);
	cr_assert_str_eq(c.path, PATH);
	cr_assert_str_eq(c.registration.url, "http://r:8001/register-ak");
	cr_assert_str_eq(c.uuid, ID);
	cr_assert(!c.limited && !c.init_data);
}

Test(attest_pin, the_header_has_what_decrypting_needs)
{
	cleanup_attest_config struct attest_config c, again;
	cleanup_free char *header = NULL;
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	cr_assert_eq(
		read_config(ONE
			",\"num_retries\":3,\"initdata\":\"{\\\"b\\\":\\\"2\\\",\\\"a\\\":\\\"x\\\\\\\"y\\\"}\"}",
			&c, &err),
		0, "%s", err.text);
	header = attest_config_write_header(&c);
	o = json_parse(header, strlen(header), &json_limits_public, &err);
	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(json_get_str(o, "alg"), "dir");
	cr_assert_str_eq(json_get_str(o, "enc"), "A256GCM");
	cr_assert_eq(attest_config_read_header(o, &again, &err), 0, "%s", err.text);
	cr_assert_str_eq(again.path, PATH);
	cr_assert_str_eq(again.server[0].url, "http://a");
	cr_assert(again.limited && again.retries == 3);
	cr_assert_str_eq(again.init_data,
		"version = \"0.1.0\"\nalgorithm = \"sha256\"\n\n[data]\na = \"x\\\"y\"\nb = \"2\"\n");
}

/* The vector of Trustee's protocol: the text's digest is what PCR 8 is extended with. */
Test(attest_pin, init_data_is_the_text_of_the_vector)
{
	static const char json[] = "{\"uuid\":\"" ID "\"}";
	struct err err = ERR_INIT;
	cleanup_free char *toml = attest_init_data(json, strlen(json), &err);
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	cr_assert(toml, "%s", err.text);
	bytes_sha256(toml, strlen(toml), digest);
	bytes_to_hex(digest, sizeof(digest), hex);
	cr_assert_str_eq(hex, "50d99cd745912d008e60daf20092db03e4aaac62355b058c3bca9fb70eb0ab10");
}

Test(attest_pin, headers_of_others)
{
	static const struct {
		const char *text;
		bool good;
	} t[] = {
		{"{\"clevis\":{\"path\":\"" PATH
		 "\",\"x\":1,\"servers\":[{\"cert\":\"\",\"url\":\"http://a\",\"y\":{}}],\"pin\":\"trustee\",\"initdata\":null}}",
			true},
		{"{\"clevis\":{\"pin\":\"tang\",\"tang\":{}}}", false},
		{"{\"clevis\":{\"pin\":\"trustee\"}}", false},
		{"{\"clevis\":[]}", false},
		{"{}", false},
		{"[]", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_attest_config struct attest_config c;
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(t[i].text, strlen(t[i].text), &json_limits_public, &err);

		cr_assert_eq(attest_config_read_header(o, &c, &err) == 0, t[i].good, "%s: %s",
			t[i].text, err.text);
	}
}

Test(attest_pin, refused_with_the_members_name)
{
	static const struct {
		const char *text, *words;
	} t[] = {
		{"", "JSON"},
		{"[]", "must be a JSON object"},
		{"{}", "servers"},
		{"{\"servers\":[]}", "servers"},
		{"{\"servers\":{},\"path\":\"a/b/c\"}", "servers"},
		{"{\"servers\":[1],\"path\":\"a/b/c\"}", "servers[0]"},
		{"{\"servers\":[{\"url\":\"ftp://a\"}],\"path\":\"a/b/c\"}", "servers[0].url"},
		{"{\"servers\":[{\"url\":\"http://u:p@a\"}],\"path\":\"a/b/c\"}", "servers[0].url"},
		{"{\"servers\":[{\"url\":\"http://a b\"}],\"path\":\"a/b/c\"}", "servers[0].url"},
		{"{\"servers\":[{\"url\":\"https://a\",\"cert\":\"x\"}],\"path\":\"a/b/c\"}",
			"cert"},
		{"{\"servers\":[{\"url\":\"https://a\",\"cert\":[]}],\"path\":\"a/b/c\"}", "cert"},
		{"{\"servers\":[{\"url\":\"http://a\"}]}", "path"},
		{"{\"servers\":[{\"url\":\"http://a\"}],\"path\":\"a/b\"}", "path"},
		{"{\"servers\":[{\"url\":\"http://a\"}],\"path\":\"a/b/c/d\"}", "path"},
		{"{\"servers\":[{\"url\":\"http://a\"}],\"path\":\"a/../c\"}", "path"},
		{"{\"servers\":[{\"url\":\"http://a\"}],\"path\":\"a/b?x/c\"}", "path"},
		{ONE ",\"num_retries\":-1}", "num_retries"},
		{ONE ",\"num_retries\":\"3\"}", "num_retries"},
		{ONE ",\"num_retries\":1.5}", "num_retries"},
		{ONE ",\"initdata\":{}}", "initdata"},
		{ONE ",\"initdata\":\"[]\"}", "initdata"},
		{ONE ",\"initdata\":\"{\\\"a\\\":1}\"}", "initdata"},
		{ONE ",\"attestation_key\":{\"registration\":{}}}", "registration"},
		{ONE ",\"attestation_key\":{\"registration\":{\"url\":\"http://a\",\"uuid\":\"x\"}}}",
			"uuid"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_attest_config struct attest_config c;
		struct err err = ERR_INIT;

		cr_assert_eq(read_config(t[i].text, &c, &err), -1, "%s", t[i].text);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, t[i].words) || strstr(err.text, "empty") ||
				  strstr(err.text, "JSON"),
			"%s: %s", t[i].text, err.text);
	}
}

Test(attest_pin, a_list_of_servers)
{
	static const char text[] =
		"{\"servers\":[{\"url\":\"https://a:1\",\"cert\":\"\"},{\"url\":\"http://b\"}]}\n";
	cleanup_attest_config struct attest_config c;
	struct err err = ERR_INIT;

	cr_assert_eq(attest_config_read_servers(text, strlen(text), &c, &err), 0, "%s", err.text);
	cr_assert_eq(c.n_servers, 2);
	cr_assert_str_eq(c.server[0].url, "https://a:1");
	cr_assert(!c.path && !c.init_data && !c.limited && !c.registration.url);
}

#define SERVER "{\"url\":\"http://a\",\"cert\":\"\"}"

Test(attest_pin, what_is_not_a_list_of_servers)
{
	static const struct {
		const char *text, *words;
	} t[] = {
		{"", "JSON"},
		{"{", "JSON"},
		{"null", ""},
		{"[" SERVER "]", "must be a JSON object"},
		{"{}", "must be a list of 1 to 16"},
		{"{\"servers\":[]}", "must be a list of 1 to 16"},
		{"{\"servers\":" SERVER "}", "must be a list of 1 to 16"},
		{"{\"servers\":[null]}", "servers[0] must be an object with a url"},
		{"{\"servers\":[" SERVER "]} x", ""},
		{"{\"servers\":[" SERVER "],\"servers\":[" SERVER "]}", ""},
		{"{\"servers\":[" SERVER "],\"path\":\"default/b/root\"}",
			"unexpected member \"path\""},
		{"{\"servers\":[" SERVER "],\"initdata\":null}", "unexpected member \"initdata\""},
		{"{\"servers\":[" SERVER "],\"num_retries\":0}",
			"unexpected member \"num_retries\""},
		{"{\"servers\":[" SERVER "],\"attestation_key\":{}}",
			"unexpected member \"attestation_key\""},
		{"{\"servers\":[" SERVER "],\"\":1}", "unexpected member \"\""},
		{"{\"servers\":[" SERVER ",{\"url\":\"http://a\",\"path\":\"x\"}]}",
			"servers[1]: unexpected member \"path\""},
		{"{\"servers\":[{\"url\":\"file:///etc/shadow\"}]}", "servers[0].url"},
		{"{\"servers\":[{\"url\":\"http://a\\u0000b\"}]}", ""},
		{"{\"servers\":[{\"url\":\"http://a\\u001b[2J\"}]}", "servers[0].url"},
		{"{\"servers\":[{\"url\":\"https://a\",\"cert\":\"-----BEGIN PRIVATE KEY-----\"}]}",
			"servers[0].cert"},
		{"{\"servers\":[{\"url\":\"http://a\",\"cert\":1}]}", "servers[0].cert"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_attest_config struct attest_config c;
		struct err err = ERR_INIT;

		cr_assert_eq(attest_config_read_servers(t[i].text, strlen(t[i].text), &c, &err), -1,
			"%s", t[i].text);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, t[i].words), "%s: %s", t[i].text, err.text);
		cr_assert(!strchr(err.text, '\x1b'));
	}
}

/* One more than there is room for, and more bytes than are read. */
Test(attest_pin, a_list_that_is_too_long)
{
	cleanup_strbuf struct strbuf many = STRBUF_INIT, large = STRBUF_INIT;
	cleanup_attest_config struct attest_config c, d;
	struct err err = ERR_INIT;

	strbuf_adds(&many, "{\"servers\":[" SERVER);
	for (unsigned i = 0; i < ATTEST_SERVERS_MAX; i++)
		strbuf_adds(&many, "," SERVER);
	strbuf_adds(&many, "]}");
	cr_assert_eq(attest_config_read_servers(many.data, many.len, &c, &err), -1);
	cr_assert(strstr(err.text, "must be a list of 1 to 16"), "%s", err.text);
	err_clear(&err);
	strbuf_adds(&large, "{\"servers\":[" SERVER "]");
	while (large.len < 300000)
		strbuf_adds(&large, "          ");
	strbuf_adds(&large, "}");
	cr_assert_eq(attest_config_read_servers(large.data, large.len, &d, &err), -1);
}

Test(attest_pin, keys)
{
	static const struct {
		const char *text;
		bool good;
	} t[] = {
		{"{\"key_type\":\"oct\",\"key\":\"0123456789abcdef0123456789abcdef\"}", true},
		{"{\"key\":\"0123456789abcdef0123456789abcdef\",\"x\":1,\"key_type\":\"oct\"}",
			true},
		{"{\"key_type\":\"oct\",\"key\":\"0123456789abcdef0123456789abcde\"}", false},
		{"{\"key_type\":\"EC\",\"key\":\"0123456789abcdef0123456789abcdef\"}", false},
		{"{\"key\":\"0123456789abcdef0123456789abcdef\"}", false},
		{"0123456789abcdef0123456789abcdef", false},
		{"[]", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		cleanup_secret struct secret *key =
			attest_pin_key(t[i].text, strlen(t[i].text), &err);

		cr_assert_eq(key != NULL, t[i].good, "%s", t[i].text);
		cr_assert(!strstr(err.text, "0123"), "the key is in the error");
	}
}
