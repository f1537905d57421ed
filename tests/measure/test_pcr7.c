/* SPDX-License-Identifier: MIT */
/* Secure Boot's register: its variables, and who vouches for what is loaded, in shim's order. */
#include "config.h"

#include "measure/measure_fixture.h"

TestSuite(measure_pcr7, .init = setup, .fini = teardown);

#define FIRST_PART                                                                                 \
	PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB, PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT,    \
		PCR7_SBAT_LEVEL

Test(measure_pcr7, authorities_are_asked_in_order_and_logged_once)
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
		struct measure_conf c = conf();
		enum pcr_event_id ids[10];
		struct measure_variants v;

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
		measure_variants_fini(&v);
	}
}

Test(measure_pcr7, an_enrolled_mok_is_an_authority_with_its_owner)
{
	static const struct efi_guid me = {"machine-owner.."};
	struct strbuf mok = STRBUF_INIT, one = STRBUF_INIT, refused = STRBUF_INIT;
	struct measure_conf c = conf();
	struct binary mine = fedora;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	struct measure_variants v;

	mine.issuer = "My CA";
	put_image(&mine, &kernel);
	put_platform(&vars, firmware_db, 2);
	put_list(&mok, &efi_shim_lock, "Vendor CA");
	put_list(&mok, &me, "My CA");
	rootfs_put(&moks, "MokListRT", &mok);
	strbuf_adds(&one, "\1");
	put_list(&refused, &efi_shim_lock, "Nobody");
	rootfs_put(&moks, "MokListXRT", &refused);
	rootfs_put(&moks, "MokListTrustedRT", &one);
	c.efivars_fd = vars.fd;
	refuses(&c, GRUB_X64,
		"its signer is not in db, shim or the MOK list; next step: use --mok-variables");
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
	strbuf_fini(&refused);
	measure_variants_fini(&v);
}

Test(measure_pcr7, a_second_signature_counts_when_the_first_is_unknown)
{
	struct measure_conf c = conf();
	struct binary twice = fedora;
	struct measure_variants v;

	twice.issuer = "Nobody";
	twice.signer2 = "Vendor CA";
	put_image(&twice, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 7, "second", FIRST_PART, PCR7_GRUB_MOK_LIST_CERT);
	measure_variants_fini(&v);
}

Test(measure_pcr7, a_signer_that_the_firmware_does_not_know_is_said)
{
	static const char *const other[] = {"Other CA"};
	struct measure_conf c = conf();

	put_image(&fedora, &kernel);
	put_platform(&vars, other, 1);
	c.efivars_fd = vars.fd;
	refuses(&c, SHIM_X64, "its signer is not in db,");
}

/* The level of these shims: shim 2, grub 3, grub.debian 4; of the latest: shim 4. */
Test(measure_pcr7, what_sbat_revokes_would_not_start)
{
	static const struct {
		const char *sbat, *why; /* NULL: it starts */
	} t[] = {
		{"sbat,1,x\ngrub,3,FSF,grub,2.06,u\n", NULL},
		{"grub,2,FSF,grub,2.06,u\n", "\"grub\" has generation 2, the minimum is 3"},
		{"grub,5,FSF\ngrub.debian,3,D\n",
			"\"grub.debian\" has generation 3, the minimum is 4"},
		{"grub.debian,4\ngrub,10,FSF\nother,0\n", NULL},
		{"grub\ngrub,\n", "\"grub\" has generation 0"},
		{"grub2,1\ngru,1\ngrub,99999999999999999999", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct measure_conf c = conf();
		struct binary old = fedora;
		struct measure_variants v;

		old.text = t[i].sbat;
		put_image(&old, &kernel);
		put_platform(&vars, firmware_db, 2);
		for (int known = 0; known <= 1; known++) {
			c.efivars_fd = known ? vars.fd : -1;
			if (t[i].why) {
				refuses(&c, GRUB_X64, t[i].why);
			} else {
				v = predict(&c);
				measure_variants_fini(&v);
			}
		}
		/* Nobody asks for it then. */
		c.secure_boot = MEASURE_SB_OFF;
		v = predict(&c);
		measure_variants_fini(&v);
	}
}

Test(measure_pcr7, the_latest_level_is_no_variant_of_what_it_revokes)
{
	struct measure_conf c = conf();
	struct binary old = fedora;
	struct measure_variants v;

	old.text = "grub,5,FSF\nshim,3,x\n";
	put_image(&old, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	for (size_t i = 0; i < v.n; i++)
		cr_expect_not(strstr(v.v[i].when, "latest"), "%s", v.v[i].when);
	measure_variants_fini(&v);
}

Test(measure_pcr7, published_sbat_levels_and_the_latest_as_a_variant)
{
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_assert_eq(v.n, 2 * 2);
	/* Of the fixtures for Fedora CoreOS 42. */
	expect_hex(&v.v[0].events, PCR7_SBAT_LEVEL,
		"e8e9578f5951ef16b1c1aa18ef02944b8375ec45ed4b5d8cdb30428db4a31016");
	cr_expect(strstr(v.v[1].when, "latest"), "%s", v.v[1].when);
	cr_expect_not(strstr(v.v[0].when, "latest"), "%s", v.v[0].when);
	measure_variants_fini(&v);
}

/* In the place of the image's shim, one that brings this level along. */
static void put_level(const char *level)
{
	cleanup_strbuf struct strbuf vendor = STRBUF_INIT, der = STRBUF_INIT, sbat = STRBUF_INIT;
	struct binary shim = {.fill = "shim",
		.signer = "UEFI signer",
		.issuer = "Firmware CA",
		.vendor = &vendor,
		.sbat = &sbat};

	der_cert(&der, "Vendor CA", "Vendor CA");
	put_le32(&vendor, (uint32_t)der.len);
	put_le32(&vendor, 0);
	put_le32(&vendor, 16);
	put_le32(&vendor, 16 + (uint32_t)der.len);
	strbuf_add(&vendor, der.data, der.len);
	put_le32(&sbat, 0);
	put_le32(&sbat, 8);
	put_le32(&sbat, 8);
	strbuf_add(&sbat, level, strlen(level) + 1);
	rootfs_put_binary(&root, SHIM_X64, &shim, NULL);
}

/* Shim compares a component with every line that has its name (verify_single_entry). */
Test(measure_pcr7, of_several_lines_of_a_level_the_highest_counts)
{
	static const char *const levels[] = {
		"sbat,1\ngrub,3\ngrub,6\n", "sbat,1\ngrub,6\ngrub,3\n"};
	struct binary old = fedora;

	old.text = "grub,5,FSF,grub,2.12,u\n";
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		struct measure_conf c = conf();

		put_image(&old, &kernel);
		put_level(levels[i]);
		refuses(&c, GRUB_X64, "\"grub\" has generation 5, the minimum is 6");
	}
}

Test(measure_pcr7, what_shim_says_cannot_write_to_the_terminal)
{
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	put_level("sbat,1\033[31m\r\nshim,2\n");
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	v = predict(&c);
	cr_expect(strstr(strbuf_str(&v.explain), "SBAT level"));
	cr_expect_not(strpbrk(strbuf_str(&v.explain), "\033\r"), "%s", strbuf_str(&v.explain));
	measure_variants_fini(&v);
}

Test(measure_pcr7, setup_mode_gives_the_published_values)
{
	struct measure_conf c = conf();
	struct measure_variants v;
	uint8_t value[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	put_image(&fedora, &kernel);
	c.efivars_fd = vars.fd; /* empty: no keys are enrolled, by the caller's word */
	refuses(&c, "SecureBoot" VAR_GLOBAL, "the directory is empty");
	c.secure_boot = MEASURE_SB_OFF;
	v = predict(&c);
	cr_expect_eq(v.n, 2);
	cr_expect_not(v.v[0].secure_boot);
	cr_assert(pcr_events_value(&v.v[0].events, 7, value));
	bytes_to_hex(value, SHA256_LEN, hex);
	/* pcr7-sb-disabled.json of every fixture. */
	cr_expect_str_eq(hex, "b926225ac488e9c50ef2fa815aa7104b385a06907093bfb1dc62eeb7abecddf1");
	measure_variants_fini(&v);
}

Test(measure_pcr7, the_state_in_the_variables_decides_unless_the_caller_does)
{
	static const struct {
		int state; /* of the SecureBoot variable; -1: none; -2: empty */
		enum measure_secure_boot asked;
		bool on;
	} cases[] = {{-1, MEASURE_SB_FROM_EFIVARS, false}, {-2, MEASURE_SB_FROM_EFIVARS, false},
		{-1, MEASURE_SB_ON, true}, {-2, MEASURE_SB_ON, true},
		{1, MEASURE_SB_FROM_EFIVARS, true}, {0, MEASURE_SB_FROM_EFIVARS, false},
		{0, MEASURE_SB_ON, true}, {1, MEASURE_SB_OFF, false}};

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *file = rootfs_path(&vars, "SecureBoot" VAR_GLOBAL);
		struct measure_conf c = conf();
		uint8_t state = (uint8_t)cases[i].state;
		struct measure_variants v;

		unlink(file);
		if (cases[i].state >= 0)
			put_var(&vars, "SecureBoot" VAR_GLOBAL, &state, 1);
		else if (cases[i].state == -2)
			put_var(&vars, "SecureBoot" VAR_GLOBAL, "", 0);
		c.efivars_fd = vars.fd;
		c.secure_boot = cases[i].asked;
		v = predict(&c);
		for (size_t k = 0; k < v.n; k++)
			cr_expect_eq(v.v[k].secure_boot, cases[i].on, "case %zu", i);
		/* By hashlib: the variable as empty, off and on. */
		expect_hex(&v.v[0].events, PCR7_SECURE_BOOT,
			cases[i].on
				? "ccfc4bb32888a345bc8aeadaba552b627d99348c767681ab3141f5b01e40a40e"
			: cases[i].state == -2
				? "ce9ce386b52e099f3019e512a0d6062d6b560efe4ff3e5661c7525e2f9c263df"
				: "115aa827dbccfb44d216ad9ecfda56bdea620b860a94bed5b7a27bba1c4d02d8");
		cr_expect_eq(strstr(strbuf_str(&v.explain), "counts as off") != NULL,
			cases[i].state < 0 && cases[i].asked == MEASURE_SB_FROM_EFIVARS);
		measure_variants_fini(&v);
	}
}

/* ---- what firmware or shim would refuse */

Test(measure_pcr7, a_forged_signature_is_refused_although_its_names_are_right)
{
	struct measure_conf c = conf();
	struct binary forged = kernel;

	forged.forged = true;
	put_image(&fedora, &forged);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	refuses(&c, KERNEL_1, "names a trusted certificate but does not verify with it");
}

/* One list with one hash. */
static void put_hash_list(struct strbuf *out, const uint8_t digest[SHA256_LEN])
{
	strbuf_add(out, &efi_cert_sha256, 16);
	put_le32(out, 28 + 48);
	put_le32(out, 0);
	put_le32(out, 48);
	strbuf_add(out, &efi_shim_lock, 16);
	strbuf_add(out, digest, SHA256_LEN);
}

Test(measure_pcr7, a_hash_in_db_starts_an_unsigned_kernel_and_is_its_authority)
{
	struct strbuf db = STRBUF_INIT, out = STRBUF_INIT;
	struct measure_conf c = conf();
	struct binary bare = kernel;
	uint8_t digest[SHA256_LEN], event[SHA256_LEN];
	struct measure_variants v;

	bare.signer = NULL;
	build_binary(&bare, &out, digest);
	put_image(&fedora, &bare);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	refuses(&c, KERNEL_1,
		"its hash is not in db or the MOK list; next step: sign it, or use --mok-variables");
	put_list(&db, &efi_shim_lock, "Firmware CA");
	put_hash_list(&db, digest);
	put_var(&vars, "db" VAR_SECURITY, db.data, db.len);
	v = predict(&c);
	EXPECT_IDS(
		&v.v[0].events, 7, "hash", FIRST_PART, PCR7_GRUB_MOK_LIST_CERT, PCR7_GRUB_DB_CERT);
	efi_variable_digest(&efi_image_security_database, "db", db.data + db.len - 48, 48, event);
	cr_expect_arr_eq(v.v[0].events.v[5 + 9].digest, event, SHA256_LEN);
	measure_variants_fini(&v);
	strbuf_fini(&db);
	strbuf_fini(&out);
}

Test(measure_pcr7, what_is_revoked_by_hash_or_by_certificate_is_refused)
{
	struct strbuf dbx = STRBUF_INIT, out = STRBUF_INIT;
	struct measure_conf c = conf();
	uint8_t digest[SHA256_LEN];

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	build_binary(&kernel, &out, digest);
	put_hash_list(&dbx, digest);
	put_var(&vars, "dbx" VAR_SECURITY, dbx.data, dbx.len);
	refuses(&c, KERNEL_1, "is revoked by dbx");
	strbuf_reset(&dbx);
	put_list(&dbx, &efi_shim_lock, "Vendor CA");
	put_var(&vars, "dbx" VAR_SECURITY, dbx.data, dbx.len);
	refuses(&c, GRUB_X64, "is revoked by dbx");
	strbuf_fini(&dbx);
	strbuf_fini(&out);
}

/* ---- directories that are not firmware variables */

Test(measure_pcr7, an_odd_directory_is_not_firmware_without_keys)
{
	struct strbuf x = STRBUF_INIT;
	struct measure_conf c = conf();

	strbuf_adds(&x, "x");
	put_image(&fedora, &kernel);
	c.efivars_fd = vars.fd;
	refuses(&c, "SecureBoot" VAR_GLOBAL, "the directory is empty");
	rootfs_put(&vars, "notes", &x);
	refuses(&c, "SecureBoot" VAR_GLOBAL, "it contains other files");
	c.secure_boot = MEASURE_SB_OFF; /* does not make them firmware variables */
	refuses(&c, "SecureBoot" VAR_GLOBAL, "it contains other files");
	rootfs_put(&vars, "PK", &x);
	refuses(&c, "SecureBoot" VAR_GLOBAL, "names lack GUIDs");
	rootfs_put(&vars, "MokListRT", &x);
	refuses(&c, "SecureBoot" VAR_GLOBAL, "--mok-variables");
	c.secure_boot = MEASURE_SB_FROM_EFIVARS;
	put_var(&vars, "dbx" VAR_SECURITY, "", 0);
	put_var(&vars, "SecureBoot" VAR_GLOBAL, "\1\0", 2);
	refuses(&c, "SecureBoot" VAR_GLOBAL, "2 bytes after its attributes");
	strbuf_fini(&x);
}
