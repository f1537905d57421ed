/* SPDX-License-Identifier: MIT */
/* Images without shim: where their UKI is found, what starts it, who vouches for it. */
#include "config.h"

#include "measure/measure_fixture.h"
#include "tec/measure/eventlog.h"
#include "tec/model/variants.h"

TestSuite(measure_without_shim, .init = setup, .fini = teardown);

#define UKI_1   "usr/lib/modules/6.1.0-9/6.1.0-9.efi"
#define UKI_2   "usr/lib/modules/6.1.0-10/6.1.0-10.efi"
#define SEALED  "boot/EFI/Linux/os-1.efi"
#define SD_BOOT "usr/lib/systemd/boot/efi/systemd-bootx64.efi"

#define put_uki(path, ...) rootfs_put_uki(&root, (path), __VA_ARGS__)

static void put_sd_boot(const char *path, const char *issuer)
{
	const struct binary b = {.fill = path,
		.section = ".sdmagic",
		.text = "#### LoaderInfo: systemd-boot 257 ####",
		.signer = issuer ? "boot signer" : NULL,
		.issuer = issuer};

	rootfs_put_binary(&root, path, &b, NULL);
}

/* Which files events are of, most likely variant first. */
static bool names(const struct measure_variant *v, const char *path)
{
	for (size_t i = 0; i < v->events.n; i++)
		if (strstr(v->label[i], path))
			return true;
	return false;
}

/* ---- what is measured */

/* How often programs are in the log of a real boot of a UKI that the firmware started. */
static size_t programs_of(const char *boot)
{
	const char *dir = getenv("TEST_DATA");
	cleanup_free char *path = xasprintf("%s/boot/%s/eventlog", dir ? dir : "tests/data", boot);
	struct strbuf log = STRBUF_INIT;
	FILE *f = fopen(path, "r");
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog l;
	size_t n = 0;
	int c;

	cr_assert(f, "%s", path);
	while ((c = fgetc(f)) != EOF)
		strbuf_addc(&log, (char)c);
	fclose(f);
	cr_assert_eq(eventlog_open(log.data, log.len, &l, &err), 0, "%s", err.text);
	while (eventlog_next(&l, &e, &err) > 0) {
		n += e.type == EVENTLOG_APPLICATION;
		cr_assert(e.type == EVENTLOG_NO_ACTION || e.pcr != 14, "there was no shim");
	}
	strbuf_fini(&log);
	return n;
}

Test(measure_without_shim, a_stub_measures_what_it_did_in_real_boots)
{
	static const struct {
		const char *boot, *stub;
	} boots[] = {{"uki252", "252.39-1~deb12u2"}, {"uki254", "254.26-1~bpo12+1"},
		{"uki257", "257.13-1~deb13u1"}, {"uki262", "262.1-1"}};

	for (size_t i = 0; i < ARRAY_LEN(boots); i++) {
		struct measure_conf c = conf();
		struct measure_variants v;

		put_uki(UKI_1, &(struct uki){.stub = boots[i].stub});
		c.secure_boot = MEASURE_SB_OFF;
		v = predict(&c);
		cr_expect_eq(v.n, 2, "in both forms of PCR 4");
		cr_expect_eq(count_id(&v.v[0].events, PCR4_UKI), programs_of(boots[i].boot), "%s",
			boots[i].boot);
		cr_expect_eq(count_id(&v.v[0].events, PCR4_SHIM), 0);
		measure_variants_fini(&v);
	}
}

Test(measure_without_shim, pcr14_says_that_it_stays_zero)
{
	static const uint8_t zero[SHA256_LEN];
	uint8_t value[SHA256_LEN] = {1};
	struct measure_conf c = conf();
	struct measure_variants v;
	struct err err = ERR_INIT;

	put_uki(UKI_1, &(struct uki){"262", "signer", "My CA", NULL});
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "on", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_UKI);
	EXPECT_IDS(&v.v[0].events, 14, "on", PCR14_NO_SHIM);
	cr_expect(pcr_events_value(&v.v[0].events, 14, value));
	cr_expect_arr_eq(value, zero, SHA256_LEN);
	cr_expect_eq(model_variant_check(&v.v[0].events, &err), 0, "%s", err.text);
	cr_expect(strstr(v.v[0].when, "without shim, started by the firmware"), "%s", v.v[0].when);
	measure_variants_fini(&v);
}

/* ---- who vouches: the firmware alone, for each program */

Test(measure_without_shim, own_keys_in_db_vouch_for_each_program_once)
{
	static const char *const one[] = {"My CA"}, *const two[] = {"Boot CA", "My CA"};
	struct measure_conf c = conf();
	struct measure_variants v;

	put_sd_boot(SD_BOOT, "My CA");
	put_uki(SEALED, &(struct uki){"257", "signer", "My CA", NULL});
	put_platform(&vars, one, 1);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_assert_eq(v.n, 4, "two chains in two forms");
	EXPECT_IDS(&v.v[0].events, 4, "sd", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_GRUB, PCR4_UKI);
	EXPECT_IDS(&v.v[1].events, 4, "direct", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_UKI);
	for (size_t i = 0; i < v.n; i++)
		EXPECT_IDS(&v.v[i].events, 7, v.v[i].when, PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK,
			PCR7_DB, PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT);
	measure_variants_fini(&v);
	put_sd_boot(SD_BOOT, "Boot CA");
	put_platform(&vars, two, 2);
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 7, "two keys", PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB,
		PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT, PCR7_GRUB_DB_CERT);
	EXPECT_IDS(&v.v[1].events, 7, "direct", PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB,
		PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT);
	measure_variants_fini(&v);
	put_platform(&vars, one, 1);
	refuses(&c, SD_BOOT, "its signer is not in db");
}

Test(measure_without_shim, of_two_signatures_the_one_that_db_knows_counts)
{
	static const char *const db[] = {"Old CA", "New CA"};
	struct measure_conf c = conf();
	struct measure_variants v;

	put_uki(UKI_1, &(struct uki){"262", "signer", "Unknown CA", "New CA"});
	put_platform(&vars, db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_expect(strstr(strbuf_str(&v.explain), "\"New CA\" in db"), "%s", strbuf_str(&v.explain));
	measure_variants_fini(&v);
	put_uki(UKI_1, &(struct uki){"262", "signer", "Unknown CA", "Other CA"});
	refuses(&c, UKI_1, "its signer is not in db");
	put_uki(UKI_1, &(struct uki){.stub = "262"});
	refuses(&c, UKI_1, "is not signed");
}

/* ---- where it is found */

Test(measure_without_shim, the_newest_uki_beside_the_modules_or_a_sealed_one)
{
	const struct uki u = {"262", "signer", "My CA", NULL};
	struct measure_conf c = conf();
	struct measure_variants v;

	put_uki(SEALED, &u);
	put_uki("boot/EFI/Linux/os-10.efi", &u);
	put_uki("boot/EFI/Linux/notes.txt", &u);
	v = predict(&c);
	cr_expect(names(&v.v[0], "os-10.efi"), "%s", strbuf_str(&v.explain));
	cr_expect(strstr(strbuf_str(&v.explain), "also found, not used: \"" SEALED "\""));
	measure_variants_fini(&v);
	put_uki(UKI_1, &u);
	put_uki(UKI_2, &u);
	put_sd_boot(SD_BOOT, NULL);
	put_sd_boot(SD_BOOT ".signed", "My CA");
	v = predict(&c);
	cr_expect(names(&v.v[0], UKI_2) && names(&v.v[0], SD_BOOT ".signed"), "%s",
		strbuf_str(&v.explain));
	measure_variants_fini(&v);
	/* With a shim, the chain begins there. */
	put_image(&fedora, &kernel);
	v = predict(&c);
	cr_expect(names(&v.v[0], SHIM_X64) && !names(&v.v[0], ".efi.signed"));
	EXPECT_IDS(&v.v[0].events, 14, "shim", PCR14_MOK_LIST, PCR14_MOK_LIST_X,
		PCR14_MOK_LIST_TRUSTED);
	measure_variants_fini(&v);
}

Test(measure_without_shim, what_is_no_uki_is_no_bootable_image)
{
	struct measure_conf c = conf();

	refuses(&c, "usr/lib/bootupd/updates", "no EFI/*/shimx64.efi");
	rootfs_put_binary(&root, KERNEL_1, &kernel, NULL);
	refuses(&c, "usr/lib/bootupd/updates", "no EFI/*/shimx64.efi");
	put_sd_boot(SD_BOOT, "My CA");
	refuses(&c, "usr/lib/bootupd/updates", "no EFI/*/shimx64.efi");
	put_sd_boot(UKI_1, "My CA");
	refuses(&c, UKI_1, "is not a UKI");
	/* Half a chain with shim is not one without. */
	put_uki(UKI_1, &(struct uki){"262", "signer", "My CA", NULL});
	put_shim(&root, SHIM_X64, "Vendor CA", false, "UEFI signer");
	refuses(&c, "usr/lib/bootupd/updates", "has both shim and second stage");
}
