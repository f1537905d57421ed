/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/rats/names.h"

#define UUID "11111111-2222-3333-4444-555555555555"

/* 294 bytes, as an RSA-2048 key has them. */
static void fill(uint8_t *der, size_t len)
{
	for (size_t i = 0; i < len; i++)
		der[i] = (uint8_t)(0xf8 + i * 37);
}

Test(rats_names, identity_is_240_characters_of_the_base64_from_44_on)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	char name[RATS_IDENTITY_NAME_LEN + 1];
	uint8_t der[294];

	fill(der, sizeof(der));
	bytes_to_b64(&b64, der, sizeof(der));
	cr_assert(strpbrk(b64.data, "+") && strpbrk(b64.data, "/"), "the input covers both");
	cr_assert_eq(rats_identity_name(der, sizeof(der), name), 0);
	cr_assert_eq(strlen(name), RATS_IDENTITY_NAME_LEN);
	cr_assert_eq(strncmp(name, "ak.", 3), 0);
	for (size_t i = 0; i < 240; i++) {
		char c = b64.data[44 + i];

		cr_assert_eq(name[3 + i], c == '+' ? '-' : c == '/' ? '_' : c);
	}
}

Test(rats_names, identity_is_legal_in_every_storage_backend)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	uint8_t der[550];

	fill(der, sizeof(der));
	cr_assert_eq(rats_identity_name(der, sizeof(der), name), 0);
	cr_assert_eq(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				  "._-"),
		RATS_IDENTITY_NAME_LEN);
}

Test(rats_names, identity_of_a_short_key_is_refused)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	uint8_t der[294] = {0};

	cr_assert_eq(rats_identity_name(der, 0, name), -1);
	cr_assert_eq(rats_identity_name(der, 162, name), -1); /* RSA-1024 */
	cr_assert_eq(rats_identity_name(der, 291, name), -1);
	cr_assert_eq(rats_identity_name(der, 294, name), 0);
}

Test(rats_names, value_holds_the_whole_key_and_the_machine)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT, value = STRBUF_INIT, want = STRBUF_INIT;
	uint8_t der[294];

	fill(der, sizeof(der));
	bytes_to_b64(&b64, der, sizeof(der));
	rats_identity_value(der, sizeof(der), UUID, &value);
	strbuf_addf(&want, "{\"ak\":\"%s\",\"machine\":\"" UUID "\"}", b64.data);
	cr_assert_str_eq(value.data, want.data);
}

Test(rats_names, value_quotes_a_strange_machine)
{
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = NULL;
	uint8_t der[294] = {0};

	rats_identity_value(der, sizeof(der), "a\"b\\c", &value);
	o = json_parse(value.data, value.len, &json_limits_public, &err);
	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(json_get_str(o, "machine"), "a\"b\\c");
}

Test(rats_names, resource_path_of_a_uuid)
{
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(UUID, path);
	cr_assert_str_eq(path, "default/" UUID "/root");
}

Test(rats_names, resource_path_of_anything_else_is_empty)
{
	static const char *const bad[] = {"", "..", "a/b", "../../../kbs/x",
		"11111111-2222-3333-4444-55555555555A", UUID "/", UUID "x"};
	char path[RATS_RESOURCE_PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		rats_resource_path(bad[i], path);
		cr_assert_str_eq(path, "", "%s", bad[i]);
	}
}

Test(rats_names, a_disk_keys_path_is_exactly_that)
{
	static const struct {
		const char *path;
		bool root;
	} t[] = {{"default/" UUID "/root", true}, {"default/" UUID "/toor", false},
		{"default/" UUID "/root/", false}, {"/default/" UUID "/root", false},
		{"other/" UUID "/root", false}, {"default/" UUID, false}, {"default//root", false},
		{"", false}};
	char id[UUID_TEXT_LEN + 1];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_expect_eq(rats_resource_is_root(t[i].path, id), t[i].root, "%s", t[i].path);
		if (t[i].root)
			cr_expect_str_eq(id, UUID);
	}
}

Test(rats_names, identity_is_cut_out_of_the_base64_text)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;
	uint8_t der[294];

	fill(der, sizeof(der));
	bytes_to_b64(&b64, der, sizeof(der));
	cr_assert_eq(rats_identity_name(der, sizeof(der), name), 0);
	for (size_t i = 44; i < 284; i++) {
		char c = b64.data[i];

		cr_assert_eq(name[i - 44 + 3], c == '+' ? '-' : c == '/' ? '_' : c, "%zu", i);
	}
	cr_assert_eq(strlen(name), 243);
}
