/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/model/image.h"

static struct kobj *extract(const char *text, struct err *err)
{
	cleanup_json struct json_object *o = json_tokener_parse(text);

	return model_image_extract(o, err);
}

Test(model_image, keeps_the_reference)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o =
		extract("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			"\"spec\":{\"image\":\"quay.io/a/b@sha256:00\"}}",
			&err);

	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(model_image(o)->image, "quay.io/a/b@sha256:00");
	cr_assert_str_eq(o->name, "a");
}

Test(model_image, refuses_an_image_without_reference)
{
	struct err err = ERR_INIT, err2 = ERR_INIT;

	cr_assert_null(extract(
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{}}",
		&err));
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_null(extract("{\"spec\":{\"image\":\"a\"}}", &err2));
}

#define META "\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\""
#define HEX  "e8e48e3ad10bc243341b4663c0057aef0ec7894ccc9ecb0598f0830fa57f7220"

Test(model_image, a_whole_digest_is_told_from_half_a_one)
{
	static const struct {
		const char *image;
		bool ok;
	} cases[] = {
		{"quay.io/a/b@sha256:" HEX, true},
		{"quay.io/a/b:tag@sha256:" HEX, true},
		{"quay.io/a/b@sha256:", false},
		{"quay.io/a/b@sha256:00", false},
		{"@sha256:" HEX, false},
		{"quay.io/a/b@sha256:" HEX "0", false},
		{"quay.io/a/b@sha256:" HEX ":tag", false},
		{"quay.io/a/b@sha256:E8E48E3AD10BC243341B4663C0057AEF0EC7894CCC9ECB0598F0830FA57F7220",
			false},
		{"quay.io/a/b@sha512:" HEX, false},
		{"quay.io/a/b:tag", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;
		cleanup_free char *text =
			xasprintf("{" META "},\"spec\":{\"image\":\"%s\"}}", cases[i].image);
		cleanup_kobj const struct kobj *o = extract(text, &err);

		cr_assert(o, "%s", err.text);
		cr_assert_eq(model_image(o)->digest_ok, cases[i].ok, "%s", cases[i].image);
	}
}

Test(model_image, keeps_finalizer_owner_and_condition)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o = extract(
		"{" META ",\"generation\":2,\"finalizers\":[\"x\",\"" MODEL_IMAGE_FINALIZER "\"],"
		"\"ownerReferences\":[{\"uid\":\"c\",\"controller\":true},{\"uid\":\"d\"}]},"
		"\"spec\":{\"image\":\"i\"},\"status\":{\"conditions\":[{\"type\":\"Committed\","
		"\"status\":\"False\",\"reason\":\"PodPending\",\"message\":\"m\"}]}}",
		&err);

	cr_assert(o, "%s", err.text);
	cr_assert(model_image(o)->has_finalizer);
	cr_assert_eq(model_image(o)->n_owners, 2);
	cr_assert_str_eq(model_image(o)->owner_uid, "c");
	cr_assert_eq(model_image(o)->cond[IMAGE_COMMITTED].status, KOBJ_COND_FALSE);
	cr_assert_str_eq(model_image(o)->cond[IMAGE_COMMITTED].reason, "PodPending");
}

/* Who wrote something else meant Secure Boot to be on. */
Test(model_image, only_any_accepts_secure_boot_off)
{
	static const struct {
		const char *member;
		bool any;
	} cases[] = {{"", false}, {",\"secureBoot\":\"Required\"", false},
		{",\"secureBoot\":\"Any\"", true}, {",\"secureBoot\":\"any\"", false},
		{",\"secureBoot\":true", false}, {",\"secureBoot\":null", false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = ERR_INIT;
		cleanup_free char *text =
			xasprintf("{" META "},\"spec\":{\"image\":\"a\"%s}}", cases[i].member);
		cleanup_kobj const struct kobj *o = extract(text, &err);

		cr_assert(o, "%s", err.text);
		cr_assert_eq(model_image(o)->any_secure_boot, cases[i].any, "%s", text);
	}
}

Test(model_image, only_marks_with_its_own_uid_count)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *ours =
		extract("{" META ",\"annotations\":{\"" MODEL_IMAGE_PCRS_MARK "\":\"u " HEX
			"\",\"" MODEL_IMAGE_JOB_MARK "\":\"u x\"}},\"spec\":{\"image\":\"a\"}}",
			&err);
	cleanup_kobj const struct kobj *others =
		extract("{" META ",\"annotations\":{\"" MODEL_IMAGE_PCRS_MARK "\":\"v " HEX
			"\",\"" MODEL_IMAGE_JOB_MARK "\":\"x\"}},\"spec\":{\"image\":\"a\"}}",
			&err);

	cr_assert_str_eq(model_image(ours)->pcrs_sha256, HEX);
	cr_assert_str_eq(model_image(ours)->job_nonce, "x");
	cr_assert_null(model_image(others)->pcrs_sha256);
	cr_assert_null(model_image(others)->job_nonce);
}
