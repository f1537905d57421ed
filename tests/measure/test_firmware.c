/* SPDX-License-Identifier: MIT */
/* What firmware measures before the boot loader: from a log into a file, from a file into a
 * prediction, and what neither can have. */
#include "config.h"

#include "measure/eventlog_builder.h"
#include "measure/measure_fixture.h"
#include "tec/measure/eventlog.h"
#include "tec/measure/firmware.h"
#include "tec/pcr/platform.h"

TestSuite(measure_firmware, .init = setup, .fini = teardown);

#define CALLING   "Calling EFI Application from Boot Option"
#define RETURNING "Returning from EFI Application from Boot Option"
#define OMITTED   "BOOT ATTEMPTS OMITTED"
#define DMA       "DMA Protection Disabled"
#define DIGEST    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SEVEN                                                                                      \
	"7 EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot\n7 EV_EFI_VARIABLE_DRIVER_CONFIG PK\n"         \
	"7 EV_EFI_VARIABLE_DRIVER_CONFIG KEK\n7 EV_EFI_VARIABLE_DRIVER_CONFIG db\n"                \
	"7 EV_EFI_VARIABLE_DRIVER_CONFIG dbx\n"

/* ---- logs */

static struct strbuf log = STRBUF_INIT;

/* One event with its digest; NULL: that of the data. */
static void event(uint32_t pcr, uint32_t type, const void *data, size_t len, const char *hex)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(data, len, digest);
	if (hex)
		cr_assert_eq(bytes_from_hex(hex, SHA256_HEX_LEN, digest), 0);
	log_event(&log, pcr, type, log_two_banks, 2, 7, data, len);
	memcpy(log.data + log.len - len - 4 - SHA256_LEN, digest, SHA256_LEN);
}

static void action(uint32_t pcr, const char *text)
{
	event(pcr, EVENTLOG_ACTION, text, strlen(text), NULL);
}

static void separator(uint32_t pcr)
{
	event(pcr, EVENTLOG_SEPARATOR, "\0\0\0", 4, NULL);
}

static void variable(const char *name, const char *value)
{
	struct strbuf data = STRBUF_INIT;
	bool global = !str_starts(name, "db");

	strbuf_add(&data, global ? &efi_global_variable : &efi_image_security_database, 16);
	put_le32(&data, (uint32_t)strlen(name));
	put_le32(&data, 0);
	put_le32(&data, (uint32_t)strlen(value));
	put_le32(&data, 0);
	for (const char *p = name; *p; p++) {
		strbuf_addc(&data, *p);
		strbuf_addc(&data, 0);
	}
	strbuf_adds(&data, value);
	event(7, EVENTLOG_VARIABLE, data.data, data.len, NULL);
	strbuf_fini(&data);
}

/* A program at a device path: of a file system, or of a firmware volume. */
static void program(bool built_in, const char *hex)
{
	struct strbuf data = STRBUF_INIT;

	pe_fill(&data, 32, 1);
	if (built_in) {
		strbuf_add(&data, "\4\7\24\0", 4);
		pe_fill(&data, 16, 0x11);
		strbuf_add(&data, "\4\6\24\0", 4);
		pe_fill(&data, 16, 0x22);
	} else {
		strbuf_add(&data, "\4\4\12\0a\0.\0\0\0", 10);
	}
	strbuf_add(&data, "\x7f\xff\4\0", 4);
	event(4, EVENTLOG_APPLICATION, data.data, data.len, hex);
	strbuf_fini(&data);
}

static void variables(void)
{
	variable("SecureBoot", "\1");
	variable("PK", "pk");
	variable("KEK", "kek");
	variable("db", "db");
	variable("dbx", "");
}

/* ---- each form, written and read */

enum form {
	USUAL,
	UNCALLED,
	BOOTING_TO,
	OMITS,
	OWN_PROGRAM,
	DMA_FIRST,
	DMA_WITH_NUL,
	DMA_AFTER,
	WITH_DBT,
	WITH_EMPTY_DBT,
	N_FORMS
};

static void play(enum form form)
{
	strbuf_reset(&log);
	log_begin(&log, log_two_banks, 2);
	if (form == DMA_FIRST)
		action(7, DMA);
	variables();
	if (form == WITH_DBT || form == WITH_EMPTY_DBT)
		variable("dbt", form == WITH_DBT ? "t" : "");
	if (form == DMA_WITH_NUL)
		event(7, EVENTLOG_ACTION, DMA, sizeof(DMA), NULL);
	separator(7);
	if (form == DMA_AFTER)
		action(7, DMA);
	if (form == OWN_PROGRAM)
		program(true, DIGEST);
	if (form == OMITS)
		event(4, EVENTLOG_OMITTED, OMITTED, strlen(OMITTED), NULL);
	else if (form != UNCALLED)
		action(4, CALLING);
	if (form == BOOTING_TO)
		action(4, "Booting to Boot0003 Option");
	separator(4);
	program(false, DIGEST);
	event(7, EVENTLOG_AUTHORITY, "x", 1, NULL);
}

#define FOUR_OF(...) "4 EV_EFI_ACTION \"" CALLING "\"\n" __VA_ARGS__ "4 EV_SEPARATOR\n"

/* The file of each form; "": it needs none. */
static const char *const files[N_FORMS] = {
	[USUAL] = "",
	[UNCALLED] = "",
	[BOOTING_TO] = FOUR_OF("4 EV_EFI_ACTION \"Booting to Boot0003 Option\"\n"),
	[OMITS] = "4 EV_OMIT_BOOT_DEVICE_EVENTS \"" OMITTED "\"\n4 EV_SEPARATOR\n",
	[OWN_PROGRAM] =
		"4 EV_EFI_BOOT_SERVICES_APPLICATION " DIGEST
		" a program of the firmware, 22222222-2222-2222-2222-222222222222\n" FOUR_OF(),
	[DMA_FIRST] = "7 EV_EFI_ACTION \"" DMA "\"\n" SEVEN "7 EV_SEPARATOR\n",
	[DMA_WITH_NUL] = SEVEN "7 EV_EFI_ACTION \"" DMA "\\0\"\n7 EV_SEPARATOR\n",
	[DMA_AFTER] = SEVEN "7 EV_SEPARATOR\n7 EV_EFI_ACTION \"" DMA "\"\n",
	[WITH_DBT] = "",
	[WITH_EMPTY_DBT] = SEVEN "7 EV_EFI_VARIABLE_DRIVER_CONFIG dbt\n7 EV_SEPARATOR\n",
};

/* The registers up to the boot loader, by the digests in the log. */
static void replay(uint8_t pcr[2][SHA256_LEN])
{
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog l;

	memset(pcr, 0, 2 * SHA256_LEN);
	cr_assert_eq(eventlog_open(log.data, log.len, &l, &err), 0);
	while (eventlog_next(&l, &e, &err) > 0) {
		bool loader = e.pcr == 4 ? e.type == EVENTLOG_APPLICATION && e.len < 60
					 : e.type == EVENTLOG_AUTHORITY;

		if (!loader)
			pcr_extend(pcr[e.pcr == 7], e.sha256);
	}
}

Test(measure_firmware, each_form_of_a_log_is_a_file_that_predicts_it)
{
	for (enum form form = 0; form < N_FORMS; form++) {
		cleanup_boot_vars struct measure_vars v = {.found = {false}};
		cleanup_strbuf struct strbuf notes = STRBUF_INIT;
		cleanup_firmware struct measure_firmware f = {.n = 0};
		uint8_t measured[2][SHA256_LEN], predicted[2][SHA256_LEN] = {{0}};
		struct err err = ERR_INIT;

		play(form);
		cr_assert_eq(measure_firmware_from_log(log.data, log.len, &v, &notes, &err), 0,
			"form %d: %s", form, err.text);
		cr_expect_str_eq(strbuf_str(&v.text[PCR_PLATFORM_EVENTS]), files[form]);
		cr_expect_eq(v.found[PCR_PLATFORM_EVENTS], *files[form] != '\0');
		cr_expect_eq(v.found[PCR_PLATFORM_DBT], form == WITH_DBT);
		cr_expect_not(strstr(strbuf_str(&notes), "not carried"), "%s", strbuf_str(&notes));
		cr_assert_eq(measure_firmware_read(&v, &f, &err), 0, "%s", err.text);
		replay(measured);
		for (size_t i = 0; i < f.n; i++) {
			const struct measure_firmware_event *e = &f.v[i];
			uint8_t digest[SHA256_LEN];

			memcpy(digest, e->digest, sizeof(digest));
			if (e->variable >= 0) {
				const struct strbuf *text = &v.text[e->variable];
				cleanup_free char *name = xstrdup(pcr_platform_files[e->variable]);

				*strchr(name, '-') = '\0';
				efi_variable_digest(str_starts(name, "db")
							    ? &efi_image_security_database
							    : &efi_global_variable,
					name, text->len ? text->data + 4 : "",
					text->len ? text->len - 4 : 0, digest);
			}
			pcr_extend(predicted[e->pcr == 7], digest);
		}
		cr_expect_eq(f.usual4, form != BOOTING_TO && form != OMITS && form != OWN_PROGRAM);
		cr_expect_arr_eq(measured[1], predicted[1], SHA256_LEN, "form %d", form);
		if (form != UNCALLED)
			cr_expect_arr_eq(measured[0], predicted[0], SHA256_LEN, "form %d", form);
		cr_expect_eq(f.application != NULL, form == OWN_PROGRAM);
		cr_expect_eq(strstr(strbuf_str(&notes), "AllowFirmwareApplications") != NULL,
			form == OWN_PROGRAM, "%s", strbuf_str(&notes));
	}
}

Test(measure_firmware, a_log_of_empty_variables_has_them_all)
{
	static const char *const names[] = {"SecureBoot", "PK", "KEK", "db", "dbx"};
	cleanup_boot_vars struct measure_vars v = {.found = {false}};
	cleanup_strbuf struct strbuf notes = STRBUF_INIT;
	struct err err = ERR_INIT;

	strbuf_reset(&log);
	log_begin(&log, log_two_banks, 2);
	separator(7);
	cr_expect_eq(measure_firmware_from_log(log.data, log.len, &v, &notes, &err), -1);
	cr_expect(strstr(err.text, "does not contain the firmware variables"), "%s", err.text);
	err_clear(&err);
	strbuf_reset(&log);
	log_begin(&log, log_two_banks, 2);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		variable(names[i], "");
	separator(7);
	separator(4);
	program(false, DIGEST);
	cr_assert_eq(
		measure_firmware_from_log(log.data, log.len, &v, &notes, &err), 0, "%s", err.text);
	cr_expect_str_eq(strbuf_str(&notes), "PCR 4: as usual\nPCR 7: as usual\n");
	cr_expect_eq(v.text[PCR_PLATFORM_SECURE_BOOT].len, 4, "attributes, and no state");
	cr_expect_not(v.found[PCR_PLATFORM_PK]);
}

/* ---- what a platform cannot have */

static void from_log(const char *note)
{
	cleanup_boot_vars struct measure_vars v = {.found = {false}};
	cleanup_strbuf struct strbuf notes = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(
		measure_firmware_from_log(log.data, log.len, &v, &notes, &err), 0, "%s", err.text);
	cr_expect(strstr(strbuf_str(&notes), note), "not \"%s\" in:\n%s", note, strbuf_str(&notes));
	cr_expect_not(v.found[PCR_PLATFORM_EVENTS], "%s", note);
	cr_expect(v.found[PCR_PLATFORM_PK], "the variables are taken all the same");
}

static void begin(void)
{
	strbuf_reset(&log);
	log_begin(&log, log_two_banks, 2);
	variables();
}

Test(measure_firmware, what_a_log_has_but_no_platform_is_said)
{
	begin();
	separator(7);
	action(4, CALLING);
	separator(4);
	action(4, RETURNING);
	action(4, CALLING);
	program(false, DIGEST);
	from_log("PCR 4: not carried, a boot entry failed first");

	begin();
	separator(7);
	event(4, EVENTLOG_ACTION, "Another text", 12, DIGEST);
	separator(4);
	program(false, DIGEST);
	from_log("PCR 4: not carried, a text differs from what was measured");

	begin();
	separator(7);
	action(4, "\033[31m");
	separator(4);
	program(false, DIGEST);
	from_log("PCR 4: not carried, a text is not printable");

	begin();
	separator(7);
	action(4, CALLING);
	event(4, EVENTLOG_SEPARATOR, "\xff\xff\xff\xff", 4, NULL);
	program(false, DIGEST);
	from_log("PCR 4: not carried, a separator reports an error");

	begin();
	separator(7);
	event(4, 6, "x", 1, NULL);
	program(false, DIGEST);
	from_log("PCR 4: not carried, an event of another type");

	begin();
	separator(7);
	action(4, "without a separator");
	program(false, DIGEST);
	from_log("FirmwareEvents has not one separator in PCR 4");

	begin();
	separator(7);
	action(4, CALLING);
	separator(4);
	from_log("PCR 4: not carried, there is no boot loader");

	begin();
	separator(7);
	program(false, DIGEST);
	from_log("PCR 4: not carried, it begins with the boot loader");

	begin();
	event(7, EVENTLOG_AUTHORITY, "x", 1, NULL);
	separator(7);
	from_log("PCR 7: not carried, the firmware loaded a signed driver");

	begin();
	variable("AuditMode", "\1");
	separator(7);
	from_log("PCR 7: not carried, the firmware measures a variable that is not known");

	begin();
	variable("PK", "pk");
	separator(7);
	from_log("FirmwareEvents: line 6 is wrong");

	begin();
	separator(7);
	event(7, EVENTLOG_AUTHORITY, "x", 1, NULL);
	action(7, "late");
	from_log("PCR 7: not carried, the firmware measures more after");
}

Test(measure_firmware, lines_that_are_no_events_are_refused)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"\n", "line 1"},
		{"4\n", "line 1"},
		{"5 EV_SEPARATOR\n", "line 1"},
		{"4 EV_SEPARATOR\n\n", "line 2"},
		{"4 EV_SEPARATOR 00000000\n", "line 1"},
		{"4 EV_SEPARATORS\n", "line 1"},
		{"4  EV_SEPARATOR\n", "line 1"},
		{"4 EV_SEPARATOR\r\n", "line 1"},
		{"4 EV_EFI_ACTION\n", "line 1"},
		{"4 EV_EFI_ACTION x\n", "line 1"},
		{"4 EV_EFI_ACTION \"\"\n", "line 1"},
		{"4 EV_EFI_ACTION \"\n", "line 1"},
		{"4 EV_EFI_ACTION \"a\"b\"\n", "line 1"},
		{"4 EV_EFI_ACTION \"a\\n\"\n", "line 1"},
		{"4 EV_EFI_ACTION \"a\tb\"\n", "line 1"},
		{"4 EV_EFI_VARIABLE_DRIVER_CONFIG PK\n", "line 1"},
		{"4 EV_EFI_BOOT_SERVICES_APPLICATION\n", "line 1"},
		{"4 EV_EFI_BOOT_SERVICES_APPLICATION 00\n", "line 1"},
		{"4 EV_EFI_BOOT_SERVICES_APPLICATION " DIGEST "x\n", "line 1"},
		{"7 EV_EFI_BOOT_SERVICES_APPLICATION " DIGEST "\n", "line 1"},
		{"7 EV_OMIT_BOOT_DEVICE_EVENTS \"x\"\n", "line 1"},
		{"7 EV_EFI_VARIABLE_DRIVER_CONFIG\n", "line 1"},
		{"7 EV_EFI_VARIABLE_DRIVER_CONFIG dby\n", "line 1"},
		{"7 EV_EFI_VARIABLE_DRIVER_CONFIG PK x\n", "line 1"},
		{"7 EV_EFI_VARIABLE_DRIVER_CONFIG PK\n7 EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot\n",
			"line 2"},
		{SEVEN "7 EV_SEPARATOR\n7 EV_EFI_VARIABLE_DRIVER_CONFIG dbt\n", "line 7"},
		{"4 EV_EFI_ACTION \"x\"\n", "not one separator in PCR 4"},
		{"4 EV_SEPARATOR\n4 EV_SEPARATOR\n", "not one separator in PCR 4"},
		{SEVEN, "not one separator in PCR 7"},
		{"7 EV_SEPARATOR\n", "lacks SecureBoot in PCR 7"},
		{"7 EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot\n7 EV_SEPARATOR\n",
			"lacks PK in PCR 7"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_boot_vars struct measure_vars v = {.found = {false}};
		struct measure_firmware f;
		struct err err = ERR_INIT;

		strbuf_adds(&v.text[PCR_PLATFORM_EVENTS], cases[i].text);
		cr_expect_eq(measure_firmware_read(&v, &f, &err), -1, "%s", cases[i].text);
		cr_expect(strstr(err.text, cases[i].why), "%s: %s", cases[i].text, err.text);
		cr_expect_eq(f.n, 0);
	}
}

Test(measure_firmware, there_is_an_end_to_the_lines)
{
	cleanup_boot_vars struct measure_vars v = {.found = {false}};
	cleanup_firmware struct measure_firmware f = {.n = 0};
	struct strbuf *text = &v.text[PCR_PLATFORM_EVENTS];
	struct err err = ERR_INIT;

	/* PCR 4 as long as fits beside the usual eight lines of PCR 7 with dbt and dbr. */
	for (int i = 1; i < MEASURE_FIRMWARE_MAX - 8; i++)
		strbuf_addf(text, "4 EV_EFI_ACTION \"%d\"\n", i);
	strbuf_adds(text, "4 EV_SEPARATOR\n");
	v.found[PCR_PLATFORM_DBT] = v.found[PCR_PLATFORM_DBR] = true;
	cr_assert_eq(measure_firmware_read(&v, &f, &err), 0, "%s", err.text);
	cr_expect_eq(f.n, MEASURE_FIRMWARE_MAX);
	measure_firmware_fini(&f);
	strbuf_adds(text, "4 EV_EFI_ACTION \"one more\"\n");
	cr_expect_eq(measure_firmware_read(&v, &f, &err), -1);
	cr_expect(strstr(err.text, "more than 32 lines"), "%s", err.text);
}

/* ---- predictions */

static void put_events(const struct rootfs *r, const char *text, const char *allow)
{
	struct strbuf b = STRBUF_INIT;

	strbuf_adds(&b, text);
	rootfs_put(r, "FirmwareEvents", &b);
	strbuf_reset(&b);
	strbuf_adds(&b, allow);
	rootfs_put(r, "AllowFirmwareApplications", &b);
	strbuf_fini(&b);
}

Test(measure_firmware, a_platform_has_its_own_beginning_alone)
{
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	put_var(&vars, "dbr" VAR_SECURITY, "r", 1);
	put_events(&vars, files[BOOTING_TO], "");
	c.efivars_fd = vars.fd;
	c.path = PCR_BOOT_FAILED_ENTRIES;
	v = predict(&c);
	for (size_t i = 0; i < v.n; i++)
		EXPECT_IDS(&v.v[i].events, 4, v.v[i].when, PCR4_PLATFORM, PCR4_PLATFORM,
			PCR4_PLATFORM, PCR4_SHIM, PCR4_GRUB, PCR4_VMLINUZ);
	EXPECT_IDS(&v.v[0].events, 7, "dbr", PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB, PCR7_DBX,
		PCR7_DBR, PCR7_SEPARATOR, PCR7_SHIM_CERT, PCR7_SBAT_LEVEL, PCR7_GRUB_MOK_LIST_CERT);
	measure_variants_fini(&v);
	put_events(&vars, files[DMA_FIRST], "");
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "usual", PCR4_EFI_CALL, PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB,
		PCR4_VMLINUZ);
	EXPECT_IDS(&v.v[0].events, 7, "dma", PCR7_SECURE_BOOT, PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK,
		PCR7_DB, PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT, PCR7_SBAT_LEVEL,
		PCR7_GRUB_MOK_LIST_CERT);
	cr_expect_eq(v.v[0].events.v[5].type, PCR_EV_EFI_ACTION);
	measure_variants_fini(&v);
}

Test(measure_firmware, programs_of_the_firmware_have_to_be_allowed)
{
	static const char *const not_allowed[] = {"", "yes", "True", "true true"};
	struct measure_conf c = conf();
	struct measure_variants v;

	put_image(&fedora, &kernel);
	put_platform(&vars, firmware_db, 2);
	c.efivars_fd = vars.fd;
	for (size_t i = 0; i < ARRAY_LEN(not_allowed); i++) {
		put_events(&vars, files[OWN_PROGRAM], not_allowed[i]);
		refuses(&c, "AllowFirmwareApplications=true", "a program of its own");
	}
	put_events(&vars, files[OWN_PROGRAM], "true\n");
	v = predict(&c);
	EXPECT_IDS(&v.v[0].events, 4, "allowed", PCR4_PLATFORM, PCR4_PLATFORM, PCR4_PLATFORM,
		PCR4_SHIM, PCR4_GRUB, PCR4_VMLINUZ);
	measure_variants_fini(&v);
}
