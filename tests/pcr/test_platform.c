/* SPDX-License-Identifier: MIT */
/* The digest of a platform's variables: what Python's hashlib gives for the same text. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/pcr/platform.h"

static void expect_digest(const struct pcr_platform_file *files, const char *hex)
{
	uint8_t digest[SHA256_LEN];
	char is[SHA256_HEX_LEN + 1];

	pcr_platform_digest(files, digest);
	bytes_to_hex(digest, SHA256_LEN, is);
	cr_expect_str_eq(is, hex);
}

Test(pcr_platform, the_digest_is_over_names_presence_lengths_and_bytes)
{
	static const struct pcr_platform_file files[PCR_PLATFORM_N_FILES] = {
		{"\6\0\0\0\1", 5}, {"pk", 2}, {"kek", 3}, {"", 0}, {NULL, 0}};
	static const struct pcr_platform_file none[PCR_PLATFORM_N_FILES] = {{NULL, 0}};

	expect_digest(files, "cea4e1f7a2ac738f8588bb4c01acb3f9ace35a6f8d28fe469d18a6ed3e74ba71");
	expect_digest(none, "5f357300d1b372d4dfc45ca7171f52eaf62648d5ed63e6686dd6742ccb287eee");
}

Test(pcr_platform, mok_variables_count_where_there_are_some)
{
	struct pcr_platform_file files[PCR_PLATFORM_N_FILES] = {{NULL, 0}};

	files[PCR_PLATFORM_MOK_LIST] = (struct pcr_platform_file){"list", 4};
	files[PCR_PLATFORM_MOK_LIST_X] = (struct pcr_platform_file){"", 0};
	expect_digest(files, "fc91b200f0e66abb4005c7acfc1473f035254443623a66f7ddd0dc5001d80834");
}

Test(pcr_platform, every_change_changes_it)
{
	const struct pcr_platform_file base[PCR_PLATFORM_N_FILES] = {
		{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"d", 1}};
	const struct pcr_platform_file other[][PCR_PLATFORM_N_FILES] = {
		{{"ab", 2}, {"c", 1}, {"", 0}, {NULL, 0}, {"d", 1}},
		{{"a", 1}, {"bc", 2}, {NULL, 0}, {NULL, 0}, {"d", 1}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {"", 0}, {"d", 1}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {"d", 1}, {NULL, 0}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"e", 1}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"d", 1}, {"", 0}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"d", 1}, {NULL, 0}, {"", 0}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0},
			{"d", 1}, [PCR_PLATFORM_ALLOW_VALIDATION_OFF] = {"true", 4}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"d", 1}, [PCR_PLATFORM_DBT] = {"", 0}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0}, {"d", 1}, [PCR_PLATFORM_DBR] = {"", 0}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0},
			{"d", 1}, [PCR_PLATFORM_EVENTS] = {"e", 1}},
		{{"a", 1}, {"bc", 2}, {"", 0}, {NULL, 0},
			{"d", 1}, [PCR_PLATFORM_ALLOW_APPLICATIONS] = {"true", 4}},
	};
	uint8_t was[SHA256_LEN], is[SHA256_LEN];

	pcr_platform_digest(base, was);
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		pcr_platform_digest(other[i], is);
		cr_expect(memcmp(was, is, SHA256_LEN) != 0, "case %zu", i);
	}
}

Test(pcr_platform, only_true_allows)
{
	static const struct {
		const char *text;
		size_t len;
		bool allows;
	} cases[] = {{"true", 4, true}, {"true\n", 5, true}, {NULL, 0, false}, {"", 0, false},
		{"tru", 3, false}, {"True", 4, false}, {"true ", 5, false}, {"true\n\n", 6, false},
		{"true\0", 5, false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(pcr_platform_allows(cases[i].text, cases[i].len), cases[i].allows,
			"case %zu", i);
}
