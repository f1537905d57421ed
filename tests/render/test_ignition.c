/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/render/ignition.h"

#define UUID "11111111-2222-3333-4444-555555555555"
#define T    "application/vnd.coreos.ignition+json"

Test(render_ignition, version_is_negotiated)
{
	static const struct {
		const char *accept;
		int minor;
	} cases[] = {
		{NULL, 6},
		{"", 6},
		{"  ", 6},
		{"*/*", 6},
		{"application/*", 6},
		{T, 6},
		{T ";version=3.2.0", 2},
		{T "; version=3.3.0", 3},
		{T ";version=\"3.4.0\"", 4},
		{T ";version=3.6.0", 6},
		{T ";version=3.7.0", 6},
		{T ";version=3.99.0", 6},
		{"Application/VND.CoreOS.ignition+JSON; Version=3.5.0", 5},
		{T ";version=3.1.0", -1},
		{T ";version=2.4.0", -1},
		{T ";version=4.0.0", -1},
		{T ";version=1", -1},
		/* as Ignition sends it: a named version wins over what is merely possible */
		{T ";version=3.3.0, */*;q=0.1", 3},
		{"*/*;q=0.1," T ";version=3.3.0", 3},
		{T ";version=3.1.0, */*;q=0.1", -1},
		{T "; version=2.4.0, " T "; version=1; q=0.5, */*; q=0.1", -1},
		{T ";version=3.2.0," T ";version=3.5.0," T ";version=3.4.0", 5},
		{T ";version=3.2.0," T ";version=3.5.0;q=0", 2},
		{T ";version=3.2.0;q=0.0", -1},
		{T ";version=3.2.0;q=0.000, */*", -1},
		{T ";version=3.2.0;q=0.001", 2},
		{T ";q=0;version=3.2.0", -1},
		{"*/*;q=0", -1},
		{"text/html", -1},
		{"text/html, */*;q=0.5", 6},
		{"text/html;version=3.2.0", -1},
		{"application/json", -1},
		/* 3.7.0-experimental reads 3.6.0; 3.6.0-experimental does not */
		{T ";version=3.7.0-experimental", 6},
		{T ";version=3.6.0-experimental", 5},
		{T ";version=3.2.0-experimental", -1},
		{T ";version=3.6.0-rc1", -1},
		{T ";version=", -1},
		{T ";version", -1},
		{T ";version=3", -1},
		{T ";version=3.", -1},
		{T ";version=3.4", -1},
		{T ";version=3.-4.0", -1},
		{T ";version=99999999999999999999.2.0", -1},
		{T ";version=\"3.4.0, */*", -1},
		{",,,", -1},
		{";;;=", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(render_ignition_version(cases[i].accept), cases[i].minor, "%s: %d",
			cases[i].accept, render_ignition_version(cases[i].accept));
}

static void render(const struct model_cluster *c, const struct render_ignition_ca *ca, int minor,
	struct strbuf *out)
{
	render_ignition(c, UUID, minor, ca, out);
}

Test(render_ignition, plain_http_answer_is_byte_exact)
{
	static const struct model_cluster c = {.public_trustee_addr = "trustee.example:8080"};
	static const struct render_ignition_ca ca = {0};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	render(&c, &ca, 6, &out);
	cr_assert_str_eq(out.data,
		"{\"ignition\":{\"version\":\"3.6.0\"},\"storage\":{"
		"\"filesystems\":[{\"device\":\"/dev/mapper/root\",\"format\":\"ext4\",\"label\":\"root\","
		"\"wipeFilesystem\":true}],"
		"\"luks\":[{\"name\":\"root\",\"label\":\"root\",\"device\":\"/dev/disk/by-partlabel/root\","
		"\"wipeVolume\":true,\"clevis\":{\"custom\":{\"pin\":\"trustee\",\"needsNetwork\":true,"
		"\"config\":\"{\\\"servers\\\":[{\\\"url\\\":\\\"http://trustee.example:8080\\\",\\\"cert\\\":\\\"\\\"}],"
		"\\\"path\\\":\\\"default/" UUID "/root\\\"}\"}}}]}}");
}

/* The pin's configuration out of the answer. */
static struct json_object *pin_config(const struct strbuf *out)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(out->data, out->len, &json_limits_object, &err);
	struct json_object *luks, *config;
	const char *text;

	cr_assert(o, "%s", err.text);
	luks = json_object_array_get_idx(json_get_arr(o, "storage/luks"), 0);
	text = json_get_str(luks, "clevis/custom/config");
	cr_assert(text);
	config = json_parse(text, strlen(text), &json_limits_object, &err);
	cr_assert(config, "%s", err.text);
	return config;
}

Test(render_ignition, certificates_and_further_servers_are_handed_out_in_order)
{
	static const struct model_cluster c = {.public_trustee_addr = "t:1",
		.trustee_secret = "ts",
		.public_ak_addr = "[::1]:8001",
		.ak_secret = "as",
		.n_servers = 2,
		.server_addr = {"x", "y:5"},
		.server_ca = {"xc", NULL}};
	static const struct render_ignition_ca ca = {
		.trustee = "-----BEGIN\nT\"\n", .ak = "A\n", .server = {"X\n", NULL}};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *config = NULL, *servers = render_ignition_servers(&c, &ca);
	cleanup_free char *text = NULL, *alone = json_text(servers);

	render(&c, &ca, 2, &out);
	cr_assert(str_starts(out.data, "{\"ignition\":{\"version\":\"3.2.0\"}"));
	config = pin_config(&out);
	text = json_text(config);
	cr_assert_str_eq(text,
		"{\"servers\":[{\"url\":\"https://t:1\",\"cert\":\"-----BEGIN\\nT\\\"\\n\"},"
		"{\"url\":\"https://x\",\"cert\":\"X\\n\"},{\"url\":\"http://y:5\",\"cert\":\"\"}],"
		"\"path\":\"default/" UUID "/root\","
		"\"attestation_key\":{\"registration\":{\"url\":\"https://[::1]:8001/register-ak\",\"uuid\":\"" UUID
		"\",\"cert\":\"A\\n\"}}}");
	cr_assert(str_starts(text + strlen("{\"servers\":"), alone));
}

Test(render_ignition, key_registration_without_secret_is_plain_http)
{
	static const struct model_cluster c = {.public_trustee_addr = "t", .public_ak_addr = "a"};
	static const struct render_ignition_ca ca = {0};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_json struct json_object *config = NULL;

	render(&c, &ca, 6, &out);
	config = pin_config(&out);
	cr_assert_str_eq(
		json_get_str(config, "attestation_key/registration/url"), "http://a/register-ak");
	cr_assert_str_eq(json_get_str(config, "attestation_key/registration/cert"), "");
}

Test(render_ignition, a_named_secret_is_never_downgraded_to_http)
{
	static const struct model_cluster c = {.public_trustee_addr = "t",
		.trustee_secret = "ts",
		.public_ak_addr = "a",
		.ak_secret = "as",
		.n_servers = 1,
		.server_addr = {"x"},
		.server_ca = {"xc"}};
	static const struct render_ignition_ca ca = {0};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	render(&c, &ca, 6, &out);
	cr_assert_null(strstr(out.data, "http://"));
}

Test(render_ignition, first_configuration_merges_the_operators_answer)
{
	static const struct {
		const char *url, *ca, *text;
	} cases[] = {
		{"http://h:8000/ignition", NULL,
			"{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"http://h:8000/ignition\"}]}}}"},
		{"https://h/ignition", "-----B +\n",
			"{\"ignition\":{\"version\":\"3.2.0\",\"config\":{\"merge\":[{\"source\":\"https://h/ignition\"}]},\"security\":{\"tls\":{\"certificateAuthorities\":[{\"source\":\"data:,-----B%20%2B%0A\"}]}}}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_object *o = render_ignition_first(cases[i].url, cases[i].ca);
		char *text = json_text(o);

		cr_expect_str_eq(text, cases[i].text);
		free(text);
		json_object_put(o);
	}
}
