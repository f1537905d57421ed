/* SPDX-License-Identifier: MIT */
/* The Job's message: what is predicted arrives at its reader, platform by platform. */
#include "config.h"

#include "measure/measure_fixture.h"
#include "tec/measure/job.h"
#include "tec/model/pcrmsg.h"
#include "tec/pcr/platform.h"

#define NONCE  "0123456789abcdef0123456789abcdef"
#define DIGEST "00000000000000000000000000000000000000000000000000000000000000aa"

TestSuite(measure_job, .init = setup, .fini = teardown);

/* reason: why there is no value; NULL: there is one. */
static void add(struct model_platforms *p, int efivars_fd, const char *name, const char *reason)
{
	struct strbuf explain = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = measure_job_platform(root.fd, efivars_fd, name, p, &explain, &err);

	cr_expect_eq(rc, reason ? -1 : 0, "%s: %s", name, err.text);
	if (reason)
		cr_expect(strstr(err.text, reason), "%s: %s", name, err.text);
	else
		cr_expect(str_starts(strbuf_str(&explain), "platform ") &&
			  strstr(strbuf_str(&explain), "PCR "));
	strbuf_fini(&explain);
}

/* Where nothing is predicted, nothing is explained. */
static void add_quiet(struct model_platforms *p, int dir_fd, const char *name)
{
	struct err err = ERR_INIT;

	cr_assert_eq(measure_job_platform(root.fd, dir_fd, name, p, NULL, &err), 0, "%s", err.text);
}

Test(measure_job, a_platform_has_a_value_or_a_reason_or_is_not_known)
{
	struct model_platforms p = {.n = 0};

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	add(&p, vars.fd, "good", NULL);
	put_platform(&vars, firmware_db, 1);
	add(&p, vars.fd, "unsigned", "its signer is not in db");
	add(&p, moks.fd, "empty", "the directory is empty");
	cr_assert_eq(mkdirat(moks.fd, pcr_platform_files[PCR_PLATFORM_PK], 0755), 0);
	add(&p, moks.fd, "unreadable", "a directory, not a regular file");
	cr_assert_eq(p.n, 3);
	cr_expect(!p.v[0].why && p.v[0].events.n > 0 && p.v[0].events.v[0].pcr == 7);
	cr_expect(strstr(p.v[1].why, "its signer") && p.v[1].events.n == 0);
	cr_expect(strstr(p.v[2].why, "the directory is empty") && p.v[2].events.n == 0);
	cr_expect(memcmp(p.v[0].variables, p.v[1].variables, SHA256_LEN) != 0);
	model_platforms_fini(&p);
}

/* shim's variables as a node with an enrolled key has them. */
static void put_moks(const char *state, const char *allow)
{
	struct strbuf list = STRBUF_INIT, text = STRBUF_INIT;

	put_list(&list, &efi_shim_lock, "Vendor CA");
	put_list(&list, &efi_shim_lock, "My CA");
	rootfs_put(&moks, "MokListRT", &list);
	strbuf_reset(&list);
	put_list(&list, &efi_shim_lock, "Nobody");
	rootfs_put(&moks, "MokListXRT", &list);
	strbuf_adds(&text, state);
	if (*state)
		rootfs_put(&moks, "MokSBStateRT", &text);
	strbuf_reset(&text);
	strbuf_adds(&text, allow);
	if (*allow)
		rootfs_put(&moks, "AllowValidationDisabled", &text);
	strbuf_fini(&list);
	strbuf_fini(&text);
}

static const enum pcr_event_id with_kernel[] = {
	PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB, PCR4_VMLINUZ};

Test(measure_job, mok_variables_of_a_platform_make_its_pcr14)
{
	struct model_platforms p = {.n = 0};
	struct binary mine = fedora;

	mine.issuer = "My CA";
	put_image(&mine, &kernel);
	put_platform(&vars, firmware_db, 2);
	add(&p, vars.fd, "plain", "its signer is not in db, shim or the MOK list");
	put_moks("", "");
	add(&p, moks.fd, "mok", NULL);
	EXPECT_IDS(&p.v[1].events, 14, "MOK alone", PCR14_MOK_LIST, PCR14_MOK_LIST_X);
	expect_ids(&p.v[1].events, 7, NULL, 0, "MOK alone");
	expect_ids(&p.v[1].events, 4, NULL, 0, "MOK alone");
	put_platform(&moks, firmware_db, 2);
	add(&p, moks.fd, "both", NULL);
	cr_expect(model_platform_has(&p.v[2], 7) && model_platform_has(&p.v[2], 14));
	cr_expect_eq(
		count_id(&p.v[2].events, PCR7_GRUB_MOK_LIST_CERT), 2, "its own key, and shim's");
	cr_expect(memcmp(p.v[1].variables, p.v[2].variables, SHA256_LEN) != 0);
	model_platforms_fini(&p);
}

Test(measure_job, validation_that_is_off_is_asked_for_beside_the_variables)
{
	struct model_platforms p = {.n = 0};

	put_image(&fedora, &kernel);
	put_moks("\1", "");
	add(&p, moks.fd, "off", "add AllowValidationDisabled=true to the ConfigMap");
	cr_expect_leq(strlen(p.v[0].why), 120, "as long as a reason may be");
	put_moks("\1", "yes");
	add(&p, moks.fd, "yes", "shim's validation is off");
	put_moks("\1", "true\n");
	add(&p, moks.fd, "asked", NULL);
	EXPECT_IDS(&p.v[2].events, 14, "off", PCR14_MOK_LIST, PCR14_MOK_LIST_X, PCR14_MOK_SB_STATE);
	expect_ids(&p.v[2].events, 4, with_kernel, 4, "off");
	/* Where it is on, asking changes nothing. */
	put_moks("\2", "true");
	add(&p, moks.fd, "on", NULL);
	expect_ids(&p.v[3].events, 4, NULL, 0, "on");
	model_platforms_fini(&p);
}

Test(measure_job, a_platform_whose_state_is_not_known_is_off)
{
	struct model_platforms p = {.n = 0};
	cleanup_free char *file = NULL;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	put_var(&vars, "SecureBoot" VAR_GLOBAL, "", 0);
	add(&p, vars.fd, "empty", "SecureBoot is missing or empty");
	file = rootfs_path(&vars, "SecureBoot" VAR_GLOBAL);
	unlink(file);
	add(&p, vars.fd, "missing", "SecureBoot is missing or empty");
	put_var(&vars, "SecureBoot" VAR_GLOBAL, "\0", 1);
	add(&p, vars.fd, "off", "Secure Boot is off on this platform");
	for (size_t i = 0; i < p.n; i++)
		cr_expect_eq(p.v[i].events.n, 0);
	model_platforms_fini(&p);
}

static void put_text(const char *name, const char *content)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_adds(&b, content);
	rootfs_put(&moks, name, &b);
	strbuf_fini(&b);
}

#define OWN                                                                                        \
	"4 EV_EFI_ACTION \"Booting to Boot0001 Option\"\n"                                         \
	"4 EV_EFI_BOOT_SERVICES_APPLICATION " DIGEST "\n4 EV_SEPARATOR\n"

/* Alone, with firmware variables, and where shim's validation is off. */
Test(measure_job, what_unusual_firmware_measures_is_the_platforms)
{
	static const enum pcr_event_id own[] = {
		PCR4_PLATFORM, PCR4_PLATFORM, PCR4_PLATFORM, PCR4_SHIM, PCR4_GRUB};
	struct model_platforms p = {.n = 0};

	put_image(&fedora, &kernel);
	put_text("FirmwareEvents", OWN);
	add(&p, moks.fd, "asked", "AllowFirmwareApplications=true");
	cr_expect_leq(strlen(p.v[0].why), 120, "as long as a reason may be");
	cr_expect_eq(p.v[0].events.n, 0);
	put_text("AllowFirmwareApplications", "true");
	add_quiet(&p, moks.fd, "alone");
	expect_ids(&p.v[1].events, 4, own, 3, "alone");
	cr_expect_eq(p.v[1].events.n, 3);
	cr_expect(model_platform_application(&p.v[1]) && !model_platform_any_kernel(&p.v[1]));
	put_platform(&moks, firmware_db, 2);
	add(&p, moks.fd, "keys", NULL);
	expect_ids(&p.v[2].events, 4, own, 3, "with keys");
	cr_expect(model_platform_has(&p.v[2], 7));
	put_moks("\1", "true");
	add(&p, moks.fd, "off", NULL);
	expect_ids(&p.v[3].events, 4, own, 5, "off");
	cr_expect(model_platform_any_kernel(&p.v[3]));
	put_text("FirmwareEvents", "7 EV_SEPARATOR\n");
	add(&p, moks.fd, "wrong", "lacks SecureBoot in PCR 7");
	cr_expect_eq(p.v[4].events.n, 0);
	model_platforms_fini(&p);
}

Test(measure_job, mok_variables_have_to_be_whole)
{
	struct model_platforms p = {.n = 0};
	struct strbuf one = STRBUF_INIT;

	put_image(&fedora, &kernel);
	strbuf_adds(&one, "\1");
	rootfs_put(&moks, "MokListTrustedRT", &one);
	add(&p, moks.fd, "half", "do not include MokListRT");
	put_moks("", "");
	rootfs_put(&moks, "MokIgnoreDB", &one);
	add(&p, moks.fd, "ignore", "db is disabled");
	model_platforms_fini(&p);
	strbuf_fini(&one);
}

Test(measure_job, the_message_has_the_first_variant_the_others_and_the_platforms)
{
	struct measure_conf c = conf();
	struct model_platforms p = {.n = 0};
	struct strbuf text = STRBUF_INIT;
	struct measure_variants v;
	struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	struct err err = ERR_INIT;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	add(&p, vars.fd, "good", NULL);
	c.registers = MEASURE_PCR4 | MEASURE_PCR14;
	v = predict(&c);
	cr_assert_gt(v.n, 1);
	cr_assert_eq(measure_job_message(&v, &p, NONCE, DIGEST, &text, &err), 0, "%s", err.text);
	cr_assert_eq(model_pcrmsg_read(strbuf_str(&text), text.len, NONCE, DIGEST, &m, &err), 0,
		"%s", err.text);
	cr_assert_eq(m.events.n, v.v[0].events.n);
	for (size_t i = 0; i < m.events.n; i++)
		cr_expect_arr_eq(m.events.v[i].digest, v.v[0].events.v[i].digest, SHA256_LEN);
	/* Secure Boot off; the operator derives the other form of PCR 4. */
	cr_assert_eq(v.n, 4);
	cr_assert_eq(m.variants.n, 1);
	cr_expect_str_eq(m.variants.v[0].when, v.v[1].when);
	cr_assert_eq(m.platforms.n, 1);
	cr_expect_str_eq(m.platforms.v[0].name, "good");
	model_pcrmsg_fini(&m);
	model_platforms_fini(&p);
	measure_variants_fini(&v);
	strbuf_fini(&text);
}
