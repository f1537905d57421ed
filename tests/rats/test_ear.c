/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/rats/ear.h"

static void make(bool good, struct rats_ear *ear, char **text)
{
	cleanup_json struct json_object *o = fixture_attest(false);
	cleanup_free char *body = json_text(o);
	cleanup_rats_attest struct rats_attest a;
	cleanup_rats_verdict struct rats_verdict v = {97, 33, NULL, NULL};
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	cr_assert_eq(rats_attest_read(body, strlen(body), 65536, &a, &flaw, &err), 0);
	if (good) {
		v.identity = 2;
		v.executables = 3;
		v.validated = json_add_str(json_obj(), "machine", "m-1");
	}
	*text = rats_ear_make(&a, &v, 1000, 300);
	cr_assert_eq(rats_ear_read(*text, strlen(*text), ear, &err), 0, "%s", err.text);
}

Test(rats_ear, what_was_made_is_read_again)
{
	cleanup_rats_ear struct rats_ear ear = {.o = NULL};
	cleanup_free char *text = NULL;

	make(true, &ear, &text);
	cr_expect_eq(ear.exp_s, 1300);
	cr_expect_str_eq(ear.holder.status, "affirming");
	cr_expect_str_eq(ear.holder.machine, "m-1");
	cr_expect(ear.holder.sealed);
	cr_expect_str_eq(ear.key.x, FIXTURE_X);
	cr_expect_null(ear.key.n);
}

Test(rats_ear, says_whether_the_boot_is_sealed)
{
	cleanup_rats_ear struct rats_ear ear = {.o = NULL};
	cleanup_free char *text = NULL;

	fixture_unseal();
	make(true, &ear, &text);
	cr_expect_not(ear.holder.sealed);
}

/* The members that Trustee's tokens have, for whoever reads them. */
Test(rats_ear, has_the_members_of_trustees)
{
	static const char *const paths[] = {"eat_profile", "iat", "iss", "ear.verifier-id/build",
		"submods/cpu0/ear.trustworthiness-vector/instance-identity",
		"submods/cpu0/ear.appraisal-policy-id",
		"submods/cpu0/ear.veraison.annotated-evidence/tpm/ak_public",
		"submods/cpu0/ear.veraison.annotated-evidence/tpm/pcr00",
		"submods/cpu0/ear.veraison.annotated-evidence/tpm/pcr23",
		"submods/cpu0/ear.veraison.annotated-evidence/report_data",
		"submods/cpu0/ear.veraison.annotated-evidence/init_data",
		"submods/cpu0/ear.veraison.annotated-evidence/runtime_data_claims/nonce"};
	cleanup_rats_ear struct rats_ear ear = {.o = NULL};
	cleanup_free char *text = NULL;

	make(false, &ear, &text);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		cr_expect(json_get(ear.o, paths[i]), "%s", paths[i]);
	cr_expect_str_eq(ear.holder.status, "contraindicated");
	cr_expect_null(ear.holder.machine);
}

Test(rats_ear, refuses_other_claims)
{
	static const char *const t[] = {"", "[]", "{}", "{\"exp\":5}",
		"{\"exp\":5,\"submods\":{\"cpu0\":{\"ear.status\":\"affirming\"}}}",
		"{\"submods\":{\"cpu0\":{\"ear.status\":\"affirming\",\"ear.veraison.annotated-evidence\":{\"runtime_data_claims\":{\"tee-pubkey\":{}}}}}}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_rats_ear struct rats_ear ear = {.o = NULL};
		struct err err = ERR_INIT;

		cr_expect_eq(rats_ear_read(t[i], strlen(t[i]), &ear, &err), -1, "%s", t[i]);
	}
}
