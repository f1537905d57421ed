/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model/extract.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/subset.h"
#include "tec/model/configmap.h"
#include "tec/pcr/platform.h"

Test(model_configmap, a_configmap_with_anything_in_it_is_taken_in)
{
	static const struct {
		const char *text;
		bool pcrs, file, names;
	} cases[] = {
		{"{" META("image-pcrs") "}}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":null}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":7}}", false, false, false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":\"[\"}}", true, false,
			false},
		{"{" META("image-pcrs") "},\"data\":{\"image-pcrs.json\":\"{}\"}}", true, false,
			false},
		{"{" META("trustee-rv-data") "},\"data\":{\"image-pcrs.json\":\"{}\"}}", false,
			false, false},
		{"{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"\"}}", false,
			true, false},
		{"{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"[{}]\","
					     "\"boot-sets.json\":\"x\"}}",
			false, true, true},
		{"{" META("other") "},\"data\":{\"image-pcrs.json\":\"{}\","
				   "\"reference-values.json\":\"[]\"}}",
			false, false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(model_configmap_extract, cases[i].text);
		const struct model_configmap *m = (const struct model_configmap *)o;

		cr_assert_eq(m->pcrs != NULL, cases[i].pcrs, "%s", cases[i].text);
		cr_assert_eq(m->file_sha256 != NULL, cases[i].file, "%s", cases[i].text);
		cr_assert_eq(m->names != NULL, cases[i].names, "%s", cases[i].text);
		cr_assert_eq(m->expires_s, 0);
	}
}

#define SB  "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define DBX "dbx-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

/* kubectl puts a file into data or binaryData as it pleases: both are mounted as the same bytes. */
Test(model_configmap, a_platform_is_known_by_the_bytes_that_are_mounted)
{
	static const struct pcr_platform_file none[PCR_PLATFORM_N_FILES] = {{NULL, 0}};
	struct pcr_platform_file both[PCR_PLATFORM_N_FILES] = {{NULL, 0}},
				 empty[PCR_PLATFORM_N_FILES] = {{NULL, 0}},
				 mok[PCR_PLATFORM_N_FILES] = {{NULL, 0}},
				 events[PCR_PLATFORM_N_FILES] = {{NULL, 0}};
	const struct {
		const char *members;
		const struct pcr_platform_file *files; /* NULL: not a platform */
	} cases[] = {
		{"\"data\":null", NULL},
		{"\"data\":{\"PK\":\"x\"}", NULL},
		{"\"data\":{\"" DBX "\":7}", NULL},
		{"\"data\":7,\"binaryData\":[]", NULL},
		{"\"data\":{\"" SB "\":\"\\u0006\\u0000\\u0000\\u0000\\u0001\",\"" DBX
		 "\":\"\\u0027\\u0000x\"}",
			both},
		{"\"data\":{\"other\":\"x\"},\"binaryData\":{\"" SB "\":\"BgAAAAE=\",\"" DBX
		 "\":\"JwB4\"}",
			both},
		{"\"data\":{\"" SB
		 "\":\"\\u0006\\u0000\\u0000\\u0000\\u0001\"},\"binaryData\":{\"" DBX
		 "\":\"JwB4\"}",
			both},
		{"\"data\":{\"" DBX "\":\"\"}", empty},
		{"\"binaryData\":{\"" DBX "\":\"\"}", empty},
		{"\"binaryData\":{\"" DBX "\":\"no base64\"}", none},
		{"\"data\":{\"AllowValidationDisabled\":\"true\"}", NULL},
		{"\"data\":{\"MokSBStateRT\":\"\\u0001\",\"AllowValidationDisabled\":\"true\"},"
		 "\"binaryData\":{\"MokListRT\":\"AAEC\"}",
			mok},
		{"\"data\":{\"AllowFirmwareApplications\":\"true\"}", NULL},
		{"\"data\":{\"FirmwareEvents\":\"4 x\",\"AllowFirmwareApplications\":\"true\\n\"}",
			events},
	};

	both[PCR_PLATFORM_SECURE_BOOT] = (struct pcr_platform_file){"\6\0\0\0\1", 5};
	both[PCR_PLATFORM_DBX] = (struct pcr_platform_file){"\47\0x", 3};
	empty[PCR_PLATFORM_DBX] = (struct pcr_platform_file){"", 0};
	mok[PCR_PLATFORM_MOK_LIST] = (struct pcr_platform_file){"\0\1\2", 3};
	mok[PCR_PLATFORM_MOK_SB_STATE] = (struct pcr_platform_file){"\1", 1};
	mok[PCR_PLATFORM_ALLOW_VALIDATION_OFF] = (struct pcr_platform_file){"true", 4};
	events[PCR_PLATFORM_EVENTS] = (struct pcr_platform_file){"4 x", 3};
	events[PCR_PLATFORM_ALLOW_APPLICATIONS] = (struct pcr_platform_file){"true\n", 5};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = xasprintf("{" META("ovmf") "},%s}", cases[i].members);
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(text, strlen(text), &json_limits_api, &err);
		cleanup_kobj const struct kobj *k = model_configmap_extract(o, &err);
		const struct model_configmap *m = (const struct model_configmap *)k;
		uint8_t digest[SHA256_LEN] = {0};

		cr_assert(m, "%s: %s", text, err.text);
		if (cases[i].files)
			pcr_platform_digest(cases[i].files, digest);
		cr_assert_eq(m->is_platform, cases[i].files != NULL, "%s", text);
		cr_assert_eq(m->validation_off_ok, cases[i].files == mok, "%s", text);
		cr_assert_eq(m->applications_ok, cases[i].files == events, "%s", text);
		cr_assert_arr_eq(m->variables, digest, SHA256_LEN, "%s", text);
		cr_assert_eq(m->validation_off_ok, cases[i].files == mok, "%s", text);
	}
}

Test(model_configmap, the_files_expiration_and_owner_are_kept)
{
	cleanup_kobj const struct kobj *o = read_as(model_configmap_extract,
		"{" META(
			"trustee-rv-data") ",\"ownerReferences\":[{\"uid\":\"c\",\"controller\":true}]},"
					   "\"data\":{\"reference-values.json\":"
					   "\"[{\\\"expiration\\\":\\\"2027-01-15T08:00:00Z\\\"}]\"}}");
	const struct model_configmap *m = (const struct model_configmap *)o;

	cr_assert_eq(m->expires_s, 1800000000);
	cr_assert_str_eq(m->plain.owner_uid, "c");
}

#define RV(file)    "{" META("trustee-rv-data") "},\"data\":{\"reference-values.json\":\"" file "\"}}"
#define PCR4(value) "{\\\"name\\\":\\\"tpm_pcr4\\\",\\\"value\\\":" value "}"

Test(model_configmap, the_files_arrays_are_told_by_their_text)
{
	static const struct {
		const char *text, *pcr4; /* NULL: there is none; "": it matches nothing */
	} cases[] = {
		{RV("[]"), NULL},
		{RV("{}"), NULL},
		{RV("[7,null,[],{}]"), NULL},
		{RV("[" PCR4("7") "]"), NULL},
		{RV("[" PCR4("{}") "]"), NULL},
		{RV("[" PCR4("[]") "]"), "[]"},
		{RV("[{}," PCR4("[ \\\"aa\\\", \\\"bb\\\" ]") "]"), "[\"aa\",\"bb\"]"},
		{RV("[" PCR4("[]") "," PCR4("[]") "]"), ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = read_as(model_configmap_extract, cases[i].text);
		const struct model_configmap *m = (const struct model_configmap *)o;
		uint8_t want[SHA256_LEN] = {0};

		cr_assert_eq(
			m->arrays, cases[i].pcr4 ? 1u << MODEL_RV_PCR4 : 0, "%s", cases[i].text);
		if (cases[i].pcr4 && cases[i].pcr4[0])
			bytes_sha256(cases[i].pcr4, strlen(cases[i].pcr4), want);
		cr_assert_arr_eq(
			m->array_sha256[MODEL_RV_PCR4], want, SHA256_LEN, "%s", cases[i].text);
	}
}

/* What is not kept does not arrive here at all. */
Test(model_configmap, what_is_read_of_configmaps_is_kept_of_them)
{
	static const char *const others[] = {MODEL_PCRS_FILE, MODEL_RV_FILE, MODEL_RV_NAMES};
	const char *const *list = kobj_configmap.keep->data;

	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++)
		cr_expect(kobj_keeps(list, pcr_platform_files[i], strlen(pcr_platform_files[i])));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		cr_expect(kobj_keeps(list, others[i], strlen(others[i])), "%s", others[i]);
	cr_expect_not(kobj_keeps(list, "notes.txt", 9));
}
