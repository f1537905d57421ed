/* SPDX-License-Identifier: MIT */
/* What an image's boot will measure: which events, in which order, by which loader, under which
 * state; and what would not boot is refused with the file named. */
#include "config.h"

#include "pcr/rootfs_builder.h"

static struct rootfs root, vars, moks;

static void setup(void)
{
	rootfs_init(&root);
	rootfs_init(&vars);
	rootfs_init(&moks);
}

static void teardown(void)
{
	rootfs_fini(&root);
	rootfs_fini(&vars);
	rootfs_fini(&moks);
}

TestSuite(pcr_image, .init = setup, .fini = teardown);

static const struct binary kernel = {
	.fill = "kernel", .signer = "Vendor signer", .issuer = "Vendor CA"};
static const struct binary fedora = {.fill = "grub",
	.section = ".sbat",
	.text = SBAT_FEDORA,
	.signer = "Vendor signer",
	.issuer = "Vendor CA"};

static void put_image(const struct binary *second, const struct binary *linux_)
{
	put_shim(&root, SHIM_X64, "Vendor CA", false, "UEFI signer");
	rootfs_put_binary(&root, GRUB_X64, second, NULL);
	if (linux_)
		rootfs_put_binary(&root, KERNEL_1, linux_, NULL);
}

static struct pcr_image_conf conf(void)
{
	return (struct pcr_image_conf){.registers = PCR_IMAGE_ALL,
		.rootfs_fd = root.fd,
		.efivars_fd = -1,
		.mokvars_fd = -1};
}

static struct pcr_variants predict(const struct pcr_image_conf *c)
{
	struct pcr_variants v = PCR_VARIANTS_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pcr_image_predict(c, &v, &err), 0, "%s", err.text);
	cr_assert_gt(v.n, 0);
	return v;
}

static void refuses(const struct pcr_image_conf *c, const char *named, const char *why)
{
	struct pcr_variants v = PCR_VARIANTS_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(pcr_image_predict(c, &v, &err), -1, "not refused: %s", why);
	cr_expect(strstr(err.text, named), "\"%s\" does not name %s", err.text, named);
	cr_expect(strstr(err.text, why), "\"%s\" does not say %s", err.text, why);
	cr_expect_eq(v.n, 0);
	pcr_variants_fini(&v);
}

static size_t count_id(const struct pcr_events *e, enum pcr_event_id id)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		n += e->v[i].id == id;
	return n;
}

/* ids of one register, as "4:5:" and so on. */
static void expect_ids(const struct pcr_events *e, unsigned pcr, const enum pcr_event_id *ids,
	size_t n, const char *what)
{
	size_t at = 0;

	for (size_t i = 0; i < e->n; i++) {
		if (e->v[i].pcr != pcr)
			continue;
		cr_expect(at < n && e->v[i].id == ids[at], "%s: PCR %u event %zu is %s", what, pcr,
			at, pcr_event_id_name(e->v[i].id));
		at++;
	}
	cr_expect_eq(at, n, "%s: PCR %u has %zu events, not %zu", what, pcr, at, n);
}
#define EXPECT_IDS(e, pcr, what, ...)                                                              \
	expect_ids((e), (pcr), (const enum pcr_event_id[]){__VA_ARGS__},                           \
		sizeof((const enum pcr_event_id[]){__VA_ARGS__}) / sizeof(enum pcr_event_id),      \
		(what))

static void expect_hex(const struct pcr_events *e, enum pcr_event_id id, const char *hex)
{
	char text[SHA256_HEX_LEN + 1] = "none";

	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].id == id)
			bytes_to_hex(e->v[i].digest, SHA256_LEN, text);
	cr_expect_str_eq(text, hex, "%s", pcr_event_id_name(id));
}

/* ---- PCR 4 follows the loader */

Test(pcr_image, each_loader_measures_the_kernel_its_own_number_of_times)
{
	static const struct {
		const char *what, *section, *text;
		int on[3], off[3];
	} cases[] = {
		{"Debian 2.06", ".sbat", SBAT_DEBIAN_206, {2, -1}, {0, -1}},
		{"Ubuntu 2.06", ".sbat", "grub.ubuntu,1,U,grub2,2.06-2ubuntu7,u\n", {2, -1},
			{0, -1}},
		{"Debian 2.12", ".sbat", SBAT_DEBIAN_212, {2, 1, -1}, {0, 1, -1}},
		{"Fedora", ".sbat", SBAT_FEDORA, {1, -1}, {0, -1}},
		{"old Fedora", ".sbat", "grub.fedora,1,F,grub2,2.06,u", {1, -1}, {0, -1}},
		{"plain GRUB", ".sbat", "grub,3,FSF,grub,2.06,u\n", {1, 2, -1}, {0, 1, -1}},
		{"systemd-boot", ".sdmagic", "#### LoaderInfo: systemd-boot 252 ####", {1, -1},
			{1, -1}},
		{"UKI", ".linux", "kernel in here", {0, -1}, {0, -1}},
		{"no mark at all", ".data", "x", {1, 2, -1}, {0, 1, -1}},
		{"empty .sbat", ".sbat", "\n", {1, 2, -1}, {0, 1, -1}},
		{"fields missing", ".sbat", "grub.debian", {2, 1, -1}, {0, 1, -1}},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct binary second = fedora;
		struct pcr_image_conf c = conf();
		struct pcr_variants v;
		size_t at = 0;

		second.section = cases[i].section;
		second.text = cases[i].text;
		put_image(&second, &kernel);
		v = predict(&c);
		for (int off = 0; off <= 1; off++)
			for (const int *t = off ? cases[i].off : cases[i].on; *t >= 0; t++, at++) {
				cr_assert_lt(at, v.n, "%s", cases[i].what);
				cr_expect_eq(v.v[at].secure_boot, !off, "%s", cases[i].what);
				cr_expect_eq(count_id(&v.v[at].events, PCR4_VMLINUZ), (size_t)*t,
					"%s, variant %zu", cases[i].what, at);
				cr_expect(strstr(v.v[at].when,
						  off ? "Secure Boot off" : "Secure Boot on"),
					"%s", v.v[at].when);
			}
		cr_expect_eq(v.n, at, "%s: %zu variants, not %zu", cases[i].what, v.n, at);
		pcr_variants_fini(&v);
	}
}

Test(pcr_image, registers_4_and_14_without_firmware_variables)
{
	struct pcr_image_conf c = conf();
	struct strbuf list = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	struct pcr_variants v;

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
	pcr_variants_fini(&v);
}

Test(pcr_image, a_uki_needs_no_kernel_and_a_word_of_the_caller_counts)
{
	struct pcr_image_conf c = conf();
	struct binary uki = fedora;
	struct pcr_variants v;

	uki.section = ".linux";
	put_image(&uki, NULL);
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "found out", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM,
		PCR4_GRUB);
	pcr_variants_fini(&v);
	put_image(&fedora, &kernel);
	c.uki = true;
	v = predict(&c);
	EXPECT_IDS(
		&v.v[0].events, 4, "by word", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB);
	pcr_variants_fini(&v);
}

Test(pcr_image, only_what_was_asked_for_is_computed)
{
	struct pcr_image_conf c = conf();
	struct pcr_variants v;

	put_image(&fedora, &kernel);
	c.registers = PCR_IMAGE_PCR14;
	v = predict(&c);
	cr_expect_eq(v.n, 1);
	cr_expect_eq(v.v[0].events.n, 3);
	pcr_variants_fini(&v);
	c.registers = PCR_IMAGE_PCR4;
	v = predict(&c);
	cr_expect_eq(v.v[0].events.n, 5);
	pcr_variants_fini(&v);
}

/* ---- PCR 7 */

static const char *const firmware_db[] = {"Other CA", "Firmware CA"};

#define FIRST_PART                                                                                 \
	PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB, PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT,    \
		PCR7_SBAT_LEVEL

Test(pcr_image, authorities_are_asked_in_order_and_logged_once)
{
	static const char *const with_vendor[] = {"Firmware CA", "Vendor CA"};
	static const char *const with_both[] = {"Firmware CA", "Kernel CA"};
	static const struct {
		const char *what;
		const char *const *db;
		bool lists;
		const char *second, *linux_;
		enum pcr_event_id then[2];
		size_t n;
	} cases[] = {
		{"vendor certificate for both", firmware_db, false, "Vendor CA", "Vendor CA",
			{PCR7_GRUB_MOK_LIST_CERT}, 1},
		{"vendor_db for both", firmware_db, true, "Vendor CA", "Vendor CA",
			{PCR7_GRUB_VENDOR_DB_CERT}, 1},
		{"db wins over the vendor's", with_vendor, false, "Vendor CA", "Vendor CA",
			{PCR7_GRUB_DB_CERT}, 1},
		{"the kernel by another key", with_both, false, "Vendor CA", "Kernel CA",
			{PCR7_GRUB_MOK_LIST_CERT, PCR7_GRUB_DB_CERT}, 2},
		{"the loader by the firmware's, which the firmware logged for shim", firmware_db,
			false, "Firmware CA", "Vendor CA",
			{PCR7_GRUB_DB_CERT, PCR7_GRUB_MOK_LIST_CERT}, 2},
	};
	const enum pcr_event_id first[] = {FIRST_PART};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct binary second = fedora, linux_ = kernel;
		struct pcr_image_conf c = conf();
		enum pcr_event_id ids[10];
		struct pcr_variants v;

		second.issuer = cases[i].second;
		linux_.issuer = cases[i].linux_;
		put_shim(&root, SHIM_X64, "Vendor CA", cases[i].lists, "UEFI signer");
		rootfs_put_binary(&root, GRUB_X64, &second, NULL);
		rootfs_put_binary(&root, KERNEL_1, &linux_, NULL);
		put_platform(&vars, cases[i].db, 2);
		c.efivars_fd = vars.fd;
		v = predict(&c);
		memcpy(ids, first, sizeof(first));
		memcpy(ids + 8, cases[i].then, sizeof(cases[i].then));
		expect_ids(&v.v[0].events, 7, ids, 8 + cases[i].n, cases[i].what);
		pcr_variants_fini(&v);
	}
}

Test(pcr_image, an_enrolled_mok_is_an_authority_with_its_owner)
{
	static const struct efi_guid me = {"machine-owner.."};
	struct strbuf mok = STRBUF_INIT, one = STRBUF_INIT;
	struct pcr_image_conf c = conf();
	struct binary mine = fedora;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	struct pcr_variants v;

	mine.issuer = "My CA";
	put_image(&mine, &kernel);
	put_platform(&vars, firmware_db, 2);
	put_list(&mok, &efi_shim_lock, "Vendor CA");
	put_list(&mok, &me, "My CA");
	rootfs_put(&moks, "MokListRT", &mok);
	strbuf_adds(&one, "x");
	rootfs_put(&moks, "MokListXRT", &one);
	rootfs_put(&moks, "MokListTrustedRT", &one);
	c.efivars_fd = vars.fd;
	refuses(&c, GRUB_X64,
		"its signer is not in db, shim's vendor certificates or the MOK list");
	c.mokvars_fd = moks.fd;
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 7, "MOK", FIRST_PART, PCR7_GRUB_MOK_LIST_CERT,
		PCR7_GRUB_MOK_LIST_CERT);
	/* The loader's first: owner and certificate as in the MOK entry. */
	strbuf_reset(&one);
	put_list(&one, &me, "My CA");
	efi_variable_digest(&efi_shim_lock, "MokListRT", one.data + 28, one.len - 28, digest);
	cr_expect_arr_eq(v.v[0].events.v[5 + 8].digest, digest, SHA256_LEN);
	bytes_sha256(mok.data, mok.len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	expect_hex(&v.v[0].events, PCR14_MOK_LIST, hex);
	strbuf_fini(&mok);
	strbuf_fini(&one);
	pcr_variants_fini(&v);
}

Test(pcr_image, a_second_signature_counts_when_the_first_is_unknown)
{
	struct pcr_image_conf c = conf();
	struct binary twice = fedora;
	struct pcr_variants v;

	twice.issuer = "Nobody";
	twice.signer2 = "Vendor CA";
	put_image(&twice, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 7, "second", FIRST_PART, PCR7_GRUB_MOK_LIST_CERT);
	pcr_variants_fini(&v);
}

Test(pcr_image, a_signer_that_the_firmware_does_not_know_is_said)
{
	static const char *const other[] = {"Other CA"};
	struct pcr_image_conf c = conf();

	put_image(&fedora, &kernel);
	put_platform(&vars, other, 1);
	c.efivars_fd = vars.fd;
	refuses(&c, SHIM_X64, "its signer is not in db,");
}

Test(pcr_image, published_sbat_levels_and_the_latest_as_a_variant)
{
	struct pcr_image_conf c = conf();
	struct pcr_variants v;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_assert_eq(v.n, 2);
	/* Of the fixtures for Fedora CoreOS 42. */
	expect_hex(&v.v[0].events, PCR7_SBAT_LEVEL,
		"e8e9578f5951ef16b1c1aa18ef02944b8375ec45ed4b5d8cdb30428db4a31016");
	cr_expect(strstr(v.v[1].when, "latest"), "%s", v.v[1].when);
	cr_expect_not(strstr(v.v[0].when, "latest"), "%s", v.v[0].when);
	pcr_variants_fini(&v);
}

Test(pcr_image, what_shim_says_cannot_write_to_the_terminal)
{
	static const char level[] = "sbat,1\033[31m\r\nshim,2\n";
	struct strbuf vendor = STRBUF_INIT, der = STRBUF_INIT, sbat = STRBUF_INIT;
	struct binary shim = {.fill = "shim",
		.signer = "UEFI signer",
		.issuer = "Firmware CA",
		.vendor = &vendor,
		.sbat = &sbat};
	struct pcr_image_conf c = conf();
	struct pcr_variants v;

	der_cert(&der, "Vendor CA", "Vendor CA");
	put_le32(&vendor, (uint32_t)der.len);
	put_le32(&vendor, 0);
	put_le32(&vendor, 16);
	put_le32(&vendor, 16 + (uint32_t)der.len);
	strbuf_add(&vendor, der.data, der.len);
	put_le32(&sbat, 0);
	put_le32(&sbat, 8);
	put_le32(&sbat, 8);
	strbuf_add(&sbat, level, sizeof(level));
	put_image(&fedora, &kernel);
	rootfs_put_binary(&root, SHIM_X64, &shim, NULL);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_expect(strstr(strbuf_str(&v.explain), "SBAT level"));
	cr_expect_not(strpbrk(strbuf_str(&v.explain), "\033\r"), "%s", strbuf_str(&v.explain));
	strbuf_fini(&vendor);
	strbuf_fini(&der);
	strbuf_fini(&sbat);
	pcr_variants_fini(&v);
}

Test(pcr_image, setup_mode_gives_the_published_values)
{
	struct pcr_image_conf c = conf();
	struct pcr_variants v;
	uint8_t value[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	put_image(&fedora, &kernel);
	c.efivars_fd = vars.fd; /* empty: no keys enrolled, so Secure Boot is off */
	v = predict(&c);
	cr_expect_eq(v.n, 1);
	cr_expect_not(v.v[0].secure_boot);
	cr_assert(pcr_events_value(&v.v[0].events, 7, value));
	bytes_to_hex(value, SHA256_LEN, hex);
	/* pcr7-sb-disabled.json of every fixture. */
	cr_expect_str_eq(hex, "b926225ac488e9c50ef2fa815aa7104b385a06907093bfb1dc62eeb7abecddf1");
	pcr_variants_fini(&v);
}

Test(pcr_image, the_state_in_the_variables_decides_unless_the_caller_does)
{
	static const struct {
		int state; /* of the SecureBoot variable; -1: none */
		enum pcr_secure_boot asked;
		bool on;
	} cases[] = {{-1, PCR_SB_FROM_EFIVARS, true}, {1, PCR_SB_FROM_EFIVARS, true},
		{0, PCR_SB_FROM_EFIVARS, false}, {0, PCR_SB_ON, true}, {1, PCR_SB_OFF, false}};

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *file = rootfs_path(&vars, "SecureBoot" VAR_GLOBAL);
		struct pcr_image_conf c = conf();
		uint8_t state = (uint8_t)cases[i].state;
		struct pcr_variants v;

		unlink(file);
		if (cases[i].state >= 0)
			put_var(&vars, "SecureBoot" VAR_GLOBAL, &state, 1);
		c.efivars_fd = vars.fd;
		c.secure_boot = cases[i].asked;
		v = predict(&c);
		for (size_t k = 0; k < v.n; k++)
			cr_expect_eq(v.v[k].secure_boot, cases[i].on, "case %zu", i);
		pcr_variants_fini(&v);
	}
}

/* ---- what would not boot */

Test(pcr_image, unsigned_files_are_refused_with_secure_boot_on_only)
{
	struct pcr_image_conf c = conf();
	struct binary bare = kernel;
	struct pcr_variants v;

	bare.signer = NULL;
	put_image(&fedora, &bare);
	refuses(&c, KERNEL_1, "is not signed");
	c.secure_boot = PCR_SB_OFF;
	v = predict(&c);
	cr_expect_eq(v.n, 1);
	pcr_variants_fini(&v);
	c.secure_boot = PCR_SB_ON;
	bare = fedora;
	bare.signer = NULL;
	put_image(&bare, &kernel);
	refuses(&c, GRUB_X64, "is not signed");
	put_image(&fedora, &kernel);
	put_shim(&root, SHIM_X64, "Vendor CA", false, NULL);
	refuses(&c, SHIM_X64, "is not signed");
}

Test(pcr_image, a_digest_that_is_not_the_signatures_is_refused_in_every_state)
{
	struct binary bad_kernel = kernel, bad_grub = fedora;
	struct pcr_image_conf c = conf();

	bad_kernel.wrong_digest = bad_grub.wrong_digest = true;
	for (int state = PCR_SB_FROM_EFIVARS; state <= PCR_SB_OFF; state++) {
		c.secure_boot = (enum pcr_secure_boot)state;
		put_image(&fedora, &bad_kernel);
		refuses(&c, KERNEL_1, "other bytes");
		put_image(&bad_grub, &kernel);
		refuses(&c, GRUB_X64, "other bytes");
	}
}

Test(pcr_image, parts_for_different_machines_are_refused)
{
	struct pcr_image_conf c = conf();
	struct binary arm = kernel;

	arm.machine = 0xaa64;
	put_image(&fedora, &arm);
	refuses(&c, "shimaa64.efi", "for the kernel's machine");
	arm = fedora;
	arm.machine = 0xaa64;
	put_image(&arm, &kernel);
	refuses(&c, GRUB_X64, "another machine");
}

Test(pcr_image, what_is_no_shim_is_said)
{
	struct pcr_image_conf c = conf();

	put_image(&fedora, &kernel);
	rootfs_put_binary(&root, SHIM_X64, &fedora, NULL);
	refuses(&c, SHIM_X64, "no .vendor_cert");
	put_shim(&root, SHIM_X64, NULL, false, "UEFI signer");
	refuses(&c, SHIM_X64, "--mok-variables");
}

Test(pcr_image, a_mok_directory_must_be_whole)
{
	struct pcr_image_conf c = conf();
	struct strbuf x = STRBUF_INIT;
	struct pcr_variants v;

	strbuf_adds(&x, "x");
	put_image(&fedora, &kernel);
	c.mokvars_fd = moks.fd;
	refuses(&c, "MokListRT", "next step");
	rootfs_put(&moks, "MokListRT", &x);
	rootfs_put(&moks, "MokListXRT", &x);
	refuses(&c, "MokListTrustedRT", "next step");
	rootfs_put(&moks, "MokListTrustedRT", &x);
	v = predict(&c);
	pcr_variants_fini(&v);
	/* Nothing but these files is needed for PCR 14. */
	c.rootfs_fd = -1;
	c.registers = PCR_IMAGE_PCR14;
	v = predict(&c);
	cr_expect_eq(v.v[0].events.n, 3);
	pcr_variants_fini(&v);
	strbuf_fini(&x);
}

Test(pcr_image, damaged_variables_are_refused)
{
	struct pcr_image_conf c = conf();
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

Test(pcr_image, variables_are_regular_files_of_their_folder)
{
	static const char *const files[] = {"PK" VAR_GLOBAL, "KEK" VAR_GLOBAL, "db" VAR_SECURITY,
		"dbx" VAR_SECURITY, "SecureBoot" VAR_GLOBAL};
	struct pcr_image_conf c = conf();
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
		refuses(&c, files[i], "leads nowhere inside");
		unlink(full);
	}
	c.efivars_fd = -1;
	c.mokvars_fd = moks.fd;
	strbuf_adds(&x, "x");
	rootfs_put(&moks, "MokListRT", &x);
	rootfs_put(&moks, "MokListXRT", &x);
	cr_assert_eq(symlinkat("../../../../etc/passwd", moks.fd, "MokListTrustedRT"), 0);
	refuses(&c, "MokListTrustedRT", "leads nowhere inside");
	strbuf_fini(&x);
}

/* ---- UKIs */

Test(pcr_image, register_11_of_a_uki)
{
	static const char *const names[] = {".linux", ".osrel", ".cmdline", ".initrd"};
	struct pe_build s = PE_BUILD_INIT;
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	uint8_t digest[SHA256_LEN];
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
	cr_assert_eq(pcr_image_uki(fd, "uki.efi", &e, &err), 0, "%s", err.text);
	cr_assert_eq(e.n, 8);
	for (unsigned i = 0; i < 4; i++) {
		cr_expect_str_eq(pcr_uki_event_name(e.v[2 * i].id), names[i]);
		bytes_sha256(names[i], strlen(names[i]) + 1, digest);
		cr_expect_arr_eq(e.v[2 * i].digest, digest, SHA256_LEN);
		bytes_sha256(names[i] + 1, strlen(names[i]) - 1, digest);
		cr_expect_arr_eq(e.v[2 * i + 1].digest, digest, SHA256_LEN);
	}
	cr_expect_str_eq(pcr_uki_event_name(PCR11_SBAT_CONTENT), ".sbat_CONTENT");
	cr_expect_null(pcr_uki_event_name(PCR4_SHIM));
	close(fd);
	s.section[3].virtual_size = 4096;
	pe_build(&s, &out);
	rootfs_put(&root, "uki.efi", &out);
	fd = openat(root.fd, "uki.efi", O_RDONLY);
	cr_expect_eq(pcr_image_uki(fd, "uki.efi", &e, &err), -1);
	cr_expect(strstr(err.text, ".linux is longer"), "%s", err.text);
	close(fd);
	strbuf_fini(&out);
}
