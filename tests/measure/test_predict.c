/* SPDX-License-Identifier: MIT */
/* What an image's boot will measure: which events, in which order, by which loader, under which
 * state; and what would not boot is refused with the file named. */
#include "config.h"

#include "measure/measure_fixture.h"
#include "tec/pcr/platform.h"

TestSuite(measure_predict, .init = setup, .fini = teardown);

/* ---- PCR 4 follows the loader */

Test(measure_predict, each_loader_measures_the_kernel_its_own_number_of_times)
{
	static const struct {
		const char *what, *section, *text;
		int on[3], off[3];
	} cases[] = {
		{"Debian 2.06", ".sbat", SBAT_DEBIAN_206, {2, -1}, {0, -1}},
		{"Ubuntu 2.06", ".sbat", "grub.ubuntu,1,U,grub2,2.06-2ubuntu7,u\n", {2, -1},
			{0, -1}},
		{"Debian 2.12", ".sbat", SBAT_DEBIAN_212, {1, -1}, {0, -1}},
		{"Ubuntu 2.12", ".sbat", "grub.ubuntu,1,U,grub2,2.12-1ubuntu7,u\n", {1, 2, -1},
			{0, 1, -1}},
		{"Debian 2.14", ".sbat", "grub.debian,5,D,grub2,2.14-1,u\n", {1, 2, -1},
			{0, 1, -1}},
		{"Fedora", ".sbat", SBAT_FEDORA, {1, -1}, {0, -1}},
		{"old Fedora", ".sbat", "grub.fedora,1,F,grub2,2.06,u", {1, -1}, {0, -1}},
		{"plain GRUB", ".sbat", "grub,3,FSF,grub,2.06,u\n", {1, 2, -1}, {0, 1, -1}},
		{"systemd-boot", ".sdmagic", "#### LoaderInfo: systemd-boot 252 ####", {1, -1},
			{1, -1}},
		{"UKI", ".linux", "kernel in here", {0, -1}, {0, -1}},
		{"no mark at all", ".data", "x", {1, 2, -1}, {0, 1, -1}},
		{"empty .sbat", ".sbat", "\n", {1, 2, -1}, {0, 1, -1}},
		{"fields missing", ".sbat", "grub.debian", {1, 2, -1}, {0, 1, -1}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct binary second = fedora;
		struct measure_conf c = conf();
		struct measure_variants v;
		size_t at = 0;

		second.section = cases[i].section;
		second.text = cases[i].text;
		put_image(&second, &kernel);
		v = predict(&c);
		/* Last come the same without the firmware's call. */
		for (int off = 0; off <= 3; off++)
			for (const int *t = off % 2 ? cases[i].off : cases[i].on; *t >= 0;
				t++, at++) {
				cr_assert_lt(at, v.n, "%s", cases[i].what);
				cr_expect_eq(
					v.v[at].secure_boot, off % 2 == 0, "%s", cases[i].what);
				cr_expect_eq(v.v[at].derived, off > 1, "%s", cases[i].what);
				cr_expect_eq(count_id(&v.v[at].events, PCR4_EFI_CALL), off <= 1);
				cr_expect_eq(count_id(&v.v[at].events, PCR4_VMLINUZ), (size_t)*t,
					"%s, variant %zu", cases[i].what, at);
				cr_expect(strstr(v.v[at].when,
						  off % 2 ? "Secure Boot off" : "Secure Boot on"),
					"%s", v.v[at].when);
			}
		cr_expect_eq(v.n, at, "%s: %zu variants, not %zu", cases[i].what, v.n, at);
		measure_variants_fini(&v);
	}
}

/* As shim's second stage with Secure Boot off; tests/data/boot has boots of these from the firmware. */
Test(measure_predict, a_stub_may_have_the_firmware_load_its_kernel)
{
	static const struct {
		const char *stub;
		size_t off;
	} cases[] = {
		{"252.39-1~deb12u2", 2}, {"253", 2}, {"254.26", 2}, {"257.13", 2}, {"262.1", 1}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct measure_conf c = conf();
		struct measure_variants v;

		put_image(&fedora, NULL);
		rootfs_put_uki(
			&root, GRUB_X64, &(struct uki){cases[i].stub, "s", "Vendor CA", NULL});
		c.secure_boot = MEASURE_SB_OFF;
		v = predict(&c);
		cr_expect_eq(
			count_id(&v.v[0].events, PCR4_GRUB), cases[i].off, "%s", cases[i].stub);
		measure_variants_fini(&v);
		c.secure_boot = MEASURE_SB_ON;
		c.vouched = true;
		v = predict(&c);
		cr_expect_eq(count_id(&v.v[0].events, PCR4_GRUB), 1, "%s", cases[i].stub);
		measure_variants_fini(&v);
	}
}

Test(measure_predict, registers_4_and_14_without_firmware_variables)
{
	struct measure_conf c = conf();
	struct strbuf list = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	struct measure_variants v;

	put_image(&fedora, &kernel);
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "first", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB,
		PCR4_VMLINUZ);
	EXPECT_IDS(&v.v[0].events, 14, "first", PCR14_MOK_LIST, PCR14_MOK_LIST_X,
		PCR14_MOK_LIST_TRUSTED);
	cr_expect_eq(v.v[0].events.n, 8);
	/* Published constants, and the list that shim makes of its certificate. */
	expect_hex(&v.v[0].events, PCR4_EFI_CALL,
		"3d6772b4f84ed47595d72a2c4c5ffd15f5bb72c7507fe26f2aaee2c69d5633ba");
	expect_hex(&v.v[0].events, PCR14_MOK_LIST_X,
		"8d8a3aae50d5d25838c95c034aadce7b548c9a952eb7925e366eda537c59c3b0");
	expect_hex(&v.v[0].events, PCR14_MOK_LIST_TRUSTED,
		"4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a");
	put_list(&list, &efi_shim_lock, "Vendor CA");
	bytes_sha256(list.data, list.len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	expect_hex(&v.v[0].events, PCR14_MOK_LIST, hex);
	build_binary(&kernel, &list, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	expect_hex(&v.v[0].events, PCR4_VMLINUZ, hex);
	cr_expect(strstr(strbuf_str(&v.explain), KERNEL_1));
	strbuf_fini(&list);
	measure_variants_fini(&v);
}

Test(measure_predict, a_uki_needs_no_kernel_and_a_word_of_the_caller_counts)
{
	struct measure_conf c = conf();
	struct binary uki = fedora;
	struct measure_variants v;

	uki.section = ".linux";
	put_image(&uki, NULL);
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "found out", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM,
		PCR4_GRUB);
	measure_variants_fini(&v);
	put_image(&fedora, &kernel);
	c.uki = true;
	v = predict(&c);
	EXPECT_IDS(
		&v.v[0].events, 4, "by word", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB);
	measure_variants_fini(&v);
}

Test(measure_predict, only_what_was_asked_for_is_computed)
{
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	c.registers = MEASURE_PCR14;
	v = predict(&c);
	cr_expect_eq(v.n, 1);
	cr_expect_eq(v.v[0].events.n, 3);
	measure_variants_fini(&v);
	c.registers = MEASURE_PCR4;
	v = predict(&c);
	cr_expect_eq(v.v[0].events.n, 5);
	measure_variants_fini(&v);
}

/* ---- what would not boot */

Test(measure_predict, unsigned_files_are_refused_with_secure_boot_on_only)
{
	struct measure_conf c = conf();
	struct binary bare = kernel;
	struct measure_variants v;

	bare.signer = NULL;
	put_image(&fedora, &bare);
	refuses(&c, KERNEL_1, "is not signed");
	c.secure_boot = MEASURE_SB_OFF;
	v = predict(&c);
	cr_expect_eq(v.n, 2);
	measure_variants_fini(&v);
	c.secure_boot = MEASURE_SB_ON;
	bare = fedora;
	bare.signer = NULL;
	put_image(&bare, &kernel);
	refuses(&c, GRUB_X64, "is not signed");
	put_image(&fedora, &kernel);
	put_shim(&root, SHIM_X64, "Vendor CA", false, NULL);
	refuses(&c, SHIM_X64, "is not signed");
}

Test(measure_predict, a_digest_that_is_not_the_signatures_is_refused_in_every_state)
{
	struct binary bad_kernel = kernel, bad_grub = fedora;
	struct measure_conf c = conf();

	bad_kernel.wrong_digest = bad_grub.wrong_digest = true;
	for (int state = MEASURE_SB_FROM_EFIVARS; state <= MEASURE_SB_OFF; state++) {
		c.secure_boot = (enum measure_secure_boot)state;
		put_image(&fedora, &bad_kernel);
		refuses(&c, KERNEL_1, "does not match the contents");
		put_image(&bad_grub, &kernel);
		refuses(&c, GRUB_X64, "does not match the contents");
	}
}

Test(measure_predict, parts_for_different_machines_are_refused)
{
	struct measure_conf c = conf();
	struct binary arm = kernel;

	arm.machine = 0xaa64;
	put_image(&fedora, &arm);
	refuses(&c, "shimaa64.efi", "for the kernel's architecture");
	arm = fedora;
	arm.machine = 0xaa64;
	put_image(&arm, &kernel);
	refuses(&c, GRUB_X64, "another architecture");
}

Test(measure_predict, what_is_no_shim_is_said)
{
	struct measure_conf c = conf();

	put_image(&fedora, &kernel);
	rootfs_put_binary(&root, SHIM_X64, &fedora, NULL);
	refuses(&c, SHIM_X64, "has no .vendor_cert");
	put_shim(&root, SHIM_X64, NULL, false, "UEFI signer");
	refuses(&c, SHIM_X64, "--mok-variables");
}

Test(measure_predict, a_mok_directory_must_be_whole)
{
	struct measure_conf c = conf();
	struct strbuf x = STRBUF_INIT;
	struct measure_variants v;

	strbuf_adds(&x, "x");
	put_image(&fedora, &kernel);
	c.mokvars_fd = moks.fd;
	refuses(&c, "MokListRT", "next step");
	rootfs_put(&moks, "MokListRT", &x);
	refuses(&c, "MokListXRT", "next step");
	rootfs_put(&moks, "MokListXRT", &x);
	/* mokutil --untrust-mok */
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 14, "untrusted", PCR14_MOK_LIST, PCR14_MOK_LIST_X);
	measure_variants_fini(&v);
	rootfs_put(&moks, "MokListTrustedRT", &x);
	v = predict(&c);
	measure_variants_fini(&v);
	/* Nothing but these files is needed for PCR 14. */
	c.rootfs_fd = -1;
	c.registers = MEASURE_PCR14;
	v = predict(&c);
	cr_expect_eq(v.v[0].events.n, 3);
	measure_variants_fini(&v);
	strbuf_fini(&x);
}

Test(measure_predict, damaged_variables_are_refused)
{
	struct measure_conf c = conf();
	struct strbuf three = STRBUF_INIT;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	strbuf_add(&three, "\x27\0\0", 3);
	rootfs_put(&vars, "KEK" VAR_GLOBAL, &three);
	refuses(&c, "KEK" VAR_GLOBAL, "attributes");
	put_var(&vars, "KEK" VAR_GLOBAL, "kek", 3);
	put_var(&vars, "db" VAR_SECURITY, "not a list", 10);
	refuses(&c, "db", "");
	strbuf_fini(&three);
}

Test(measure_predict, variables_are_regular_files_of_their_folder)
{
	static const char *const files[] = {"PK" VAR_GLOBAL, "KEK" VAR_GLOBAL, "db" VAR_SECURITY,
		"dbx" VAR_SECURITY, "SecureBoot" VAR_GLOBAL};
	struct measure_conf c = conf();
	struct strbuf x = STRBUF_INIT;

	alarm(20); /* a FIFO that is opened would hang */
	put_image(&fedora, &kernel);
	c.efivars_fd = vars.fd;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		cleanup_free char *full = rootfs_path(&vars, files[i]);

		put_platform(&vars, firmware_db, 2);
		unlink(full);
		cr_assert_eq(mkfifo(full, 0644), 0);
		refuses(&c, files[i], "a FIFO");
		unlink(full);
		/* Not the same as no variable. */
		cr_assert_eq(symlink("/etc/passwd", full), 0);
		refuses(&c, files[i], "link to a file that does not exist inside");
		unlink(full);
	}
	c.efivars_fd = -1;
	c.mokvars_fd = moks.fd;
	strbuf_adds(&x, "x");
	rootfs_put(&moks, "MokListRT", &x);
	rootfs_put(&moks, "MokListXRT", &x);
	cr_assert_eq(symlinkat("../../../../etc/passwd", moks.fd, "MokListTrustedRT"), 0);
	refuses(&c, "MokListTrustedRT", "link to a file that does not exist inside");
	strbuf_fini(&x);
}

Test(measure_predict, validation_that_is_off_is_refused_unless_asked_for)
{
	struct strbuf state = STRBUF_INIT, list = STRBUF_INIT;
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	put_list(&list, &efi_shim_lock, "Vendor CA");
	strbuf_adds(&state, "\1");
	rootfs_put(&moks, "MokListRT", &list);
	rootfs_put(&moks, "MokListXRT", &list);
	rootfs_put(&moks, "MokListTrustedRT", &state);
	rootfs_put(&moks, "MokSBStateRT", &state);
	c.efivars_fd = vars.fd;
	c.mokvars_fd = moks.fd;
	refuses(&c, "MokSBState", "--allow-validation-disabled");
	c.validation_off_ok = true;
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "off", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB);
	EXPECT_IDS(&v.v[0].events, 7, "off", PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB, PCR7_DBX,
		PCR7_SEPARATOR, PCR7_SHIM_CERT, PCR7_MOK_SB_STATE, PCR7_SBAT_LEVEL);
	EXPECT_IDS(&v.v[0].events, 14, "off", PCR14_MOK_LIST, PCR14_MOK_LIST_X, PCR14_MOK_SB_STATE,
		PCR14_MOK_LIST_TRUSTED);
	measure_variants_fini(&v);
	strbuf_adds(&state, "\1");
	rootfs_put(&moks, "MokSBStateRT", &state);
	refuses(&c, "MokSBStateRT", "2 bytes instead of one");
	strbuf_reset(&state);
	strbuf_addc(&state, 1);
	rootfs_put(&moks, "MokSBStateRT", &state);
	rootfs_put(&moks, "MokIgnoreDB", &state);
	refuses(&c, "MokDBState", "mokutil --use-db");
	strbuf_fini(&state);
	strbuf_fini(&list);
}

Test(measure_predict, what_may_come_first_is_a_variant_when_it_is_asked_for)
{
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	rootfs_put_binary(&root, "usr/libexec/fwupd/efi/fwupdx64.efi", &kernel, NULL);
	rootfs_put_binary(&root, "usr/libexec/fwupd/efi/fwupdx64.efi.signed", &fedora, NULL);
	rootfs_put_binary(&root, "usr/libexec/fwupd/efi/fwupdaa64.efi", &kernel, NULL);
	c.secure_boot = MEASURE_SB_ON;
	v = predict(&c);
	cr_expect_eq(v.n, 2); /* the second one without the firmware's call */
	measure_variants_fini(&v);
	c.path = PCR_BOOT_FAILED_ENTRIES;
	v = predict(&c);
	cr_assert_eq(v.n, 4);
	cr_expect_not(v.v[3].path, "no failed entries without the call");
	EXPECT_IDS(&v.v[2].events, 4, "two", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_BOOT_ENTRY_FAILED,
		PCR4_BOOT_ENTRY_FAILED, PCR4_BOOT_ENTRY_FAILED, PCR4_BOOT_ENTRY_FAILED, PCR4_SHIM,
		PCR4_GRUB, PCR4_VMLINUZ);
	expect_hex(&v.v[2].events, PCR4_BOOT_ENTRY_FAILED,
		"3d6772b4f84ed47595d72a2c4c5ffd15f5bb72c7507fe26f2aaee2c69d5633ba");
	cr_expect_eq(v.v[0].path, PCR_BOOT_STRICT);
	cr_expect_eq(v.v[2].path, PCR_BOOT_FAILED_ENTRIES);
	cr_expect(strstr(v.v[2].when, "after 2 failed boot entries"), "%s", v.v[2].when);
	measure_variants_fini(&v);
	c.path = PCR_BOOT_FIRMWARE_UPDATES;
	v = predict(&c);
	cr_assert_eq(v.n, 6);
	EXPECT_IDS(&v.v[5].events, 4, "uncalled", PCR4_SEPARATOR, PCR4_SHIM, PCR4_FIRMWARE_UPDATE,
		PCR4_GRUB, PCR4_VMLINUZ);
	cr_expect(strstr(v.v[5].when, "does not measure the call"), "%s", v.v[5].when);
	cr_expect_eq(v.v[5].path, PCR_BOOT_FIRMWARE_UPDATES);
	EXPECT_IDS(&v.v[3].events, 4, "fwupd", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM,
		PCR4_FIRMWARE_UPDATE, PCR4_GRUB, PCR4_VMLINUZ);
	cr_expect(strstr(v.v[3].when, "fwupdx64.efi.signed"), "%s", v.v[3].when);
	measure_variants_fini(&v);
}

/* ---- UKIs */

Test(measure_predict, register_11_of_a_uki)
{
	static const char *const names[] = {".linux", ".osrel", ".cmdline", ".initrd"};
	struct pe_build s = PE_BUILD_INIT;
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	uint8_t digest[SHA256_LEN];
	unsigned profiles;
	int fd;

	/* In another order than they are measured. */
	for (unsigned i = 0; i < 4; i++) {
		s.section[i].name = names[3 - i];
		s.section[i].data = names[3 - i] + 1;
		s.section[i].len = strlen(names[3 - i]) - 1;
	}
	s.n_sections = 4;
	pe_build(&s, &out);
	rootfs_put(&root, "uki.efi", &out);
	fd = openat(root.fd, "uki.efi", O_RDONLY);
	cr_assert_eq(measure_uki(fd, "uki.efi", 0, &profiles, &e, &err), 0, "%s", err.text);
	cr_assert_eq(e.n, 8);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_str_eq(measure_uki_event_name(e.v[2 * i].id), names[i]);
		bytes_sha256(names[i], strlen(names[i]) + 1, digest);
		cr_expect_arr_eq(e.v[2 * i].digest, digest, SHA256_LEN);
		bytes_sha256(names[i] + 1, strlen(names[i]) - 1, digest);
		cr_expect_arr_eq(e.v[2 * i + 1].digest, digest, SHA256_LEN);
	}
	cr_expect_str_eq(measure_uki_event_name(PCR11_SBAT_CONTENT), ".sbat_CONTENT");
	cr_expect_null(measure_uki_event_name(PCR4_SHIM));
	close(fd);
	s.section[3].virtual_size = 4096;
	pe_build(&s, &out);
	rootfs_put(&root, "uki.efi", &out);
	fd = openat(root.fd, "uki.efi", O_RDONLY);
	cr_expect_eq(measure_uki(fd, "uki.efi", 0, &profiles, &e, &err), -1);
	cr_expect(strstr(err.text, ".linux is longer"), "%s", err.text);
	close(fd);
	strbuf_fini(&out);
}
