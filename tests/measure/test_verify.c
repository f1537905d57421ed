/* SPDX-License-Identifier: MIT */
/*
 * What verify says of every real boot in tests/data/boot, held against the plain one of the same
 * image (grub212): one golden file, tests/data/boot/verify.txt, to be read as a person would.
 * TEC_GOLDEN_OUT=FILE writes what is said now.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/measure/compare.h"
#include "tec/measure/eventlog.h"

#define PLAIN "grub212"

static const char *const boots[] = {"grub212", "grub212-off", "grub206-off", "failed-one",
	"failed-two", "fwupd", "mok-untrusted", "validation-off", "mok-hash", "db-hash",
	"mok-signed", "uki257-sb", "debian12-shim-grub"};

/* The events of the plain boot, register by register. */
static const struct expected {
	enum pcr_event_id id;
	const char *label;
} expected[PCR_MAX][10] = {
	[4] = {{PCR4_EFI_CALL, "Calling EFI Application from Boot Option"},
		{PCR4_SEPARATOR, "end of the firmware phase"}, {PCR4_SHIM, "shimx64.efi"},
		{PCR4_GRUB, "grubx64.efi"}, {PCR4_VMLINUZ, "vmlinuz"}},
	[7] = {{PCR7_SECURE_BOOT, "Secure Boot on"}, {PCR7_PK, "firmware variable PK, 1005 bytes"},
		{PCR7_KEK, "firmware variable KEK, 2565 bytes"},
		{PCR7_DB, "firmware variable db, 3143 bytes"},
		{PCR7_DBX, "firmware variable dbx, 76 bytes"},
		{PCR7_SEPARATOR, "end of the firmware phase"},
		{PCR7_SHIM_CERT,
			"certificate \"Microsoft Corporation UEFI CA 2011\" in db, for shimx64.efi"},
		{PCR7_SBAT_LEVEL, "SBAT level sbat,1,2025021800"},
		{PCR7_GRUB_MOK_LIST_CERT,
			"certificate \"Debian Secure Boot CA\" in MokListRT, for grubx64.efi"}},
	[14] = {{PCR14_MOK_LIST, "MokListRT as created by shim"},
		{PCR14_MOK_LIST_X, "MokListXRT as created by shim"},
		{PCR14_MOK_LIST_TRUSTED, "MokListTrustedRT as created by shim"}},
};

static void read_data(const char *boot, const char *name, struct strbuf *out)
{
	const char *dir = getenv("TEST_DATA");
	cleanup_free char *path =
		xasprintf("%s/boot/%s%s%s", dir ? dir : "tests/data", boot, *boot ? "/" : "", name);
	FILE *f = fopen(path, "r");
	int c;

	while (f && (c = fgetc(f)) != EOF)
		strbuf_addc(out, (char)c);
	if (f)
		fclose(f);
}

static void push(struct measure_variant *v, enum pcr_event_id id, unsigned pcr,
	const uint8_t digest[SHA256_LEN], const char *label)
{
	ARRAY_GROW(v->label, v->events.n);
	v->label[v->events.n] = xstrdup(label);
	cr_assert(pcr_events_push(&v->events, id, PCR_EV_SEPARATOR, pcr, digest));
}

static void push_text(struct measure_variant *v, const char *text)
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(text, strlen(text), digest);
	push(v, PCR4_BOOT_ENTRY_FAILED, 4, digest, text);
}

/* As the log of the plain boot has it, with what may come first. */
static void take_log(
	const struct strbuf *log, unsigned failed, const uint8_t *update, struct measure_variant *v)
{
	size_t n[PCR_MAX] = {0};
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog l;

	cr_assert_eq(eventlog_open(log->data, log->len, &l, &err), 0, "%s", err.text);
	while (eventlog_next(&l, &e, &err) > 0) {
		const struct expected *x = expected[e.pcr % PCR_MAX];

		if (e.type == EVENTLOG_NO_ACTION || !x[0].label)
			continue;
		x += n[e.pcr]++;
		cr_assert(x->label, "PCR %u has more events than are expected", e.pcr);
		if (x->id == PCR4_GRUB && update)
			push(v, PCR4_FIRMWARE_UPDATE, 4, update, "fwupdx64.efi.signed");
		push(v, x->id, e.pcr, e.sha256, x->label);
		for (unsigned i = 0; x->id == PCR4_SEPARATOR && i < failed; i++) {
			push_text(v, "Returning from EFI Application from Boot Option");
			push_text(v, "Calling EFI Application from Boot Option");
		}
	}
	cr_assert_not(err_is_set(&err), "%s", err.text);
}

static void predict_plain(struct measure_variants *v)
{
	cleanup_strbuf struct strbuf log = STRBUF_INIT, files = STRBUF_INIT;
	static const char *const after[] = {"", "; after 1 failed boot entry",
		"; after 2 failed boot entries", "; after a firmware update (fwupdx64.efi.signed)"};
	uint8_t update[SHA256_LEN];
	const char *at;

	read_data(PLAIN, "eventlog", &log);
	read_data("fwupd", "files", &files);
	at = strstr(strbuf_str(&files), " EFI/BOOT/fwupdx64.efi");
	cr_assert(at && bytes_from_hex(at - SHA256_HEX_LEN, SHA256_HEX_LEN, update) == 0);
	v->v = xcalloc(4, sizeof(*v->v));
	for (v->n = 0; v->n < 4; v->n++) {
		struct measure_variant *to = &v->v[v->n];
		bool updates = v->n == 3;

		to->when =
			xasprintf("Secure Boot on; GRUB 2.12 of Debian measures the kernel once%s",
				after[v->n]);
		to->path = updates ? PCR_BOOT_FIRMWARE_UPDATES
			   : v->n  ? PCR_BOOT_FAILED_ENTRIES
				   : PCR_BOOT_STRICT;
		take_log(&log, updates ? 0 : (unsigned)v->n, updates ? update : NULL, to);
	}
}

static enum pcr_event_id section_id(const char *name, bool content)
{
	cleanup_free char *wanted = xasprintf("%s%s", name, content ? "_CONTENT" : "");

	int id = PCR11_LINUX;

	while (id < PCR_N_EVENT_IDS &&
		!str_eq(measure_uki_event_name((enum pcr_event_id)id), wanted))
		id++;
	cr_assert_lt(id, PCR_N_EVENT_IDS, "%s is not a section", name);
	return (enum pcr_event_id)id;
}

static void say(const struct measure_variants *v, const char *boot, enum pcr_boot_path accepted,
	struct strbuf *out)
{
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	cleanup_strbuf struct strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;

	read_data(boot, "eventlog", &log);
	cr_assert_eq(
		measure_compare_log(v, accepted, log.data, log.len, &c, &err), 0, "%s", err.text);
	strbuf_addf(out, "=== %s%s\n%s\n", boot, accepted ? ", everything accepted" : "",
		strbuf_str(&c.report));
}

/* Two boots of one UKI, whose second profile only the second one asked for. */
static void say_profile(struct strbuf *out)
{
	static const char *const sections[] = {
		".linux", ".osrel", ".cmdline", ".initrd", ".uname", ".sbat", ".profile"};
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog l;

	read_data("uki-profiles", "eventlog", &log);
	cr_assert_eq(eventlog_open(log.data, log.len, &l, &err), 0, "%s", err.text);
	v.v = xcalloc(1, sizeof(*v.v));
	v.n = 1;
	v.v[0].when = xstrdup("Secure Boot off; a UKI of systemd 254 to 257");
	while (eventlog_next(&l, &e, &err) > 0) {
		size_t n = v.v[0].events.n;
		cleanup_free char *label = NULL;

		if (e.pcr != 11 || e.type == EVENTLOG_NO_ACTION || n / 2 >= ARRAY_LEN(sections))
			continue;
		label = xasprintf("%s%s of grubx64.efi", sections[n / 2], n % 2 ? "_CONTENT" : "");
		push(&v.v[0], section_id(sections[n / 2], n % 2), 11, e.sha256, label);
	}
	say(&v, "uki-profile1", PCR_BOOT_STRICT, out);
	strbuf_fini(&log);
	measure_variants_fini(&v);
}

static void say_refused(struct strbuf *out)
{
	struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;

	read_data("mok-signed", "eventlog", &log);
	cr_assert_eq(
		measure_compare_refused(
			"usr/lib/modules/6.1.0-56-cloud-amd64/vmlinuz: its signer is not in db, shim or the MOK list; next step: use --mok-variables of a node if a machine owner key signed it, else --efivars of the nodes, or --secureboot-disabled",
			log.data, log.len, &c, &err),
		0, "%s", err.text);
	strbuf_addf(
		out, "=== mok-signed, of an image that is refused\n%s\n", strbuf_str(&c.report));
	measure_comparison_fini(&c);
	strbuf_fini(&log);
}

Test(measure_verify, says_of_each_real_boot_what_is_in_the_golden_file)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct strbuf said = STRBUF_INIT, golden = STRBUF_INIT;
	const char *write_to = getenv("TEC_GOLDEN_OUT");

	predict_plain(&v);
	for (size_t i = 0; i < ARRAY_LEN(boots); i++)
		say(&v, boots[i], PCR_BOOT_STRICT, &said);
	say(&v, "failed-two", PCR_BOOT_FAILED_ENTRIES, &said);
	say(&v, "fwupd", PCR_BOOT_LAST, &said);
	say_profile(&said);
	say_refused(&said);
	if (write_to) {
		FILE *f = fopen(write_to, "w");

		cr_assert(f);
		fputs(strbuf_str(&said), f);
		fclose(f);
	}
	read_data("", "verify.txt", &golden);
	cr_expect_str_eq(strbuf_str(&said), strbuf_str(&golden));
	strbuf_fini(&said);
	strbuf_fini(&golden);
	measure_variants_fini(&v);
}

/* The variables of each boot come out of its log with the digest of a platform that does not depend
 * on which boot it was. */
Test(measure_verify, variables_of_a_log_are_those_of_its_platform)
{
	uint8_t digest[2][SHA256_LEN];

	for (size_t i = 0; i < 2; i++) {
		cleanup_boot_vars struct measure_vars vars = {.found = {false}};
		cleanup_strbuf struct strbuf log = STRBUF_INIT;
		struct err err = ERR_INIT;

		read_data(i ? "fwupd" : PLAIN, "eventlog", &log);
		cr_assert_eq(
			measure_vars_from_log(log.data, log.len, &vars, &err), 0, "%s", err.text);
		for (int k = 0; k < PCR_PLATFORM_N_VARS; k++)
			cr_expect(vars.found[k], "%s", pcr_platform_files[k]);
		cr_expect_eq(vars.text[PCR_PLATFORM_SECURE_BOOT].len, 5);
		measure_vars_digest(&vars, digest[i]);
		/* Contents that were not measured are not believed. */
		for (size_t at = 0; at + 4 < log.len && !err_is_set(&err); at++)
			if (memcmp(log.data + at, "d\0b\0", 4) == 0)
				log.data[at + 60] ^= 1;
		measure_vars_fini(&vars);
		cr_expect_eq(measure_vars_from_log(log.data, log.len, &vars, &err), -1);
		cr_expect(strstr(err.text, "differ from what was measured"), "%s", err.text);
	}
	cr_expect_arr_eq(digest[0], digest[1], SHA256_LEN);
}

Test(measure_verify, of_an_image_that_is_refused_the_log_is_told)
{
	struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct err err = ERR_INIT;
	struct strbuf log = STRBUF_INIT;
	const char *said;

	read_data(PLAIN, "eventlog", &log);
	cr_assert_eq(measure_compare_refused("it is too old", log.data, log.len, &c, &err), 0, "%s",
		err.text);
	said = strbuf_str(&c.report);
	cr_expect_not(c.matches);
	cr_expect(strncmp(said, "nothing to compare the log with: it is too old\n", 47) == 0, "%s",
		said);
	cr_expect(strstr(said, "\nPCR  4  7fc19d7517fe06586559d4629916c178"), "%s", said);
	cr_expect(strstr(said, "Secure Boot on\n") && strstr(said, "/EFI/BOOT/grubx64.efi\n"), "%s",
		said);
	measure_comparison_fini(&c);
	cr_expect_eq(measure_compare_refused("x", log.data, log.len - 7, &c, &err), -1);
	measure_comparison_fini(&c);
	cr_assert_eq(measure_compare_refused("x", NULL, 0, &c, &err), 0);
	cr_expect(strstr(strbuf_str(&c.report), "the log is empty\n"));
	measure_comparison_fini(&c);
	strbuf_fini(&log);
}
