/* SPDX-License-Identifier: MIT */
/* A node's log against the prediction: it matches, or the first event that differs is named with
 * both sides and a reason. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/eventlog_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/compare.h"
#include "tec/measure/eventlog.h"

#define APP 0x80000003u /* EV_EFI_BOOT_SERVICES_APPLICATION */

static void push_digest(struct measure_variant *v, enum pcr_event_id id, unsigned pcr,
	const uint8_t digest[SHA256_LEN], const char *label)
{
	ARRAY_GROW(v->label, v->events.n);
	v->label[v->events.n] = xstrdup(label);
	cr_assert(pcr_events_push(&v->events, id, PCR_EV_SEPARATOR, pcr, digest));
}

static void push(struct measure_variant *v, enum pcr_event_id id, unsigned pcr, int fill)
{
	uint8_t digest[SHA256_LEN];

	memset(digest, fill, sizeof(digest));
	push_digest(v, id, pcr, digest, pcr_event_id_name(id));
}

/* Two variants: the kernel once, the kernel twice. */
static void setup_variants(struct measure_variants *v)
{
	v->v = xcalloc(2, sizeof(*v->v));
	v->n = 2;
	for (size_t i = 0; i < 2; i++) {
		struct measure_variant *e = &v->v[i];

		v->v[i].when = xstrdup(i ? "the kernel twice" : "the kernel once");
		push(e, PCR4_EFI_CALL, 4, 0x41);
		push(e, PCR4_SHIM, 4, 0x42);
		push(e, PCR4_VMLINUZ, 4, 0x43);
		if (i)
			push(e, PCR4_VMLINUZ, 4, 0x43);
		push(e, PCR7_DBX, 7, 0x71);
		push(e, PCR14_MOK_LIST, 14, 0xe1);
	}
}

static void log_put(struct strbuf *log, uint32_t pcr, uint32_t type, int fill, const char *text)
{
	/* log_event() gives bank i the bytes fill + i. */
	log_event(log, pcr, type, log_two_banks, 2, fill - 1, text, strlen(text));
}

static void says(const struct strbuf *log, bool matches, size_t variant, const char *const *texts)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct err err = ERR_INIT;

	setup_variants(&v);
	cr_assert_eq(measure_compare_log(&v, PCR_BOOT_STRICT, log->data, log->len, &c, &err), 0,
		"%s", err.text);
	cr_expect_eq(c.matches, matches, "%s", strbuf_str(&c.report));
	cr_expect_eq(c.variant, variant, "%s", strbuf_str(&c.report));
	for (; *texts; texts++)
		cr_expect(strstr(strbuf_str(&c.report), *texts), "not \"%s\" in:\n%s", *texts,
			strbuf_str(&c.report));
	measure_variants_fini(&v);
}
#define SAYS(log, matches, variant, ...)                                                           \
	says((log), (matches), (variant), (const char *const[]){__VA_ARGS__, NULL})

struct step {
	uint32_t pcr, type;
	int fill;
	const char *text;
};

static void play(struct strbuf *log, const struct step *steps, size_t n)
{
	log_begin(log, log_two_banks, 2);
	log_put(log, 0, 8, 0x01, "firmware");
	for (size_t i = 0; i < n; i++)
		log_put(log, steps[i].pcr, steps[i].type, steps[i].fill, steps[i].text);
	log_put(log, 1, 8, 0x02, "other registers");
}
#define PLAY(log, ...)                                                                             \
	play((log), (const struct step[]){__VA_ARGS__},                                            \
		sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

Test(measure_compare, a_log_as_predicted_matches_whatever_the_registers_order)
{
	struct strbuf log = STRBUF_INIT;

	PLAY(&log, {7, 1, 0x71, "d"}, {4, 7, 0x41, "c"}, {4, 3, 0x99, "EV_NO_ACTION"},
		{4, APP, 0x42, "shim"}, {14, 13, 0xe1, "m"}, {4, APP, 0x43, "k"});
	SAYS(&log, true, 0, "matches: the kernel once\n", "PCR  4", "PCR 14", "as predicted");
	strbuf_fini(&log);
}

Test(measure_compare, a_less_likely_variant_matches_as_well)
{
	struct strbuf log = STRBUF_INIT;

	PLAY(&log, {4, 7, 0x41, "c"}, {4, APP, 0x42, "s"}, {4, APP, 0x43, "k"}, {4, APP, 0x43, "k"},
		{7, 1, 0x71, "d"}, {14, 13, 0xe1, "m"});
	SAYS(&log, true, 1, "matches: the kernel twice");
	strbuf_fini(&log);
}

Test(measure_compare, the_first_difference_in_the_log_is_named_with_both_sides)
{
	struct strbuf log = STRBUF_INIT;

	PLAY(&log, {7, 0x80000001, 0x70, "d\0b\0x"}, {4, 7, 0x41, "c"}, {4, APP, 0x49, "s"},
		{4, APP, 0x43, "k"}, {14, 13, 0xe1, "m"});
	SAYS(&log, false, 0, "does not match; closest: the kernel once\n", "PCR 7, event 1\n",
		"7171717171", "7070707070", "Pcr7Dbx", "EV_EFI_VARIABLE_DRIVER_CONFIG",
		"revocation update", "in the log\n", "predicted\n");
	strbuf_fini(&log);
}

Test(measure_compare, more_or_fewer_events_have_reasons_of_their_own)
{
	struct strbuf log = STRBUF_INIT;

	PLAY(&log, {4, 7, 0x41, "c"}, {4, APP, 0x42, "s"}, {4, APP, 0x43, "k"}, {4, APP, 0x43, "k"},
		{4, APP, 0x44, "addon\033[31m"}, {7, 1, 0x71, "d"}, {14, 13, 0xe1, "m"});
	SAYS(&log, false, 1, "PCR 4, event 5\n", "no further event",
		"an additional program was started");
	strbuf_reset(&log);
	PLAY(&log, {4, 7, 0x41, "c"}, {4, APP, 0x42, "s"}, {7, 1, 0x71, "d"}, {14, 13, 0xe1, "m"});
	SAYS(&log, false, 0, "PCR 4, event 3\n", "the log ends here");
	strbuf_reset(&log);
	PLAY(&log, {4, 7, 0x41, "c"}, {4, APP, 0x43, "k"}, {4, APP, 0x42, "s"}, {7, 1, 0x71, "d"},
		{14, 13, 0xe1, "m"});
	SAYS(&log, false, 0, "was started before Pcr4Shim");
	strbuf_reset(&log);
	PLAY(&log, {7, 1, 0x71, "d"}, {7, 1, 0x72, "x"});
	SAYS(&log, false, 0, "an additional signer");
	strbuf_fini(&log);
}

#define RETURNING "Returning from EFI Application from Boot Option"

Test(measure_compare, what_returns_to_the_firmware_failed_or_was_refused)
{
	struct strbuf log = STRBUF_INIT;

	/* Three times before the image's shim: more than can be accepted. */
	PLAY(&log, {4, 7, 0x41, "c"}, {4, 7, 0x51, RETURNING}, {4, 7, 0x41, "c"},
		{4, 7, 0x51, RETURNING}, {4, 7, 0x41, "c"}, {4, 7, 0x51, RETURNING},
		{4, 7, 0x41, "c"}, {4, APP, 0x42, "s"}, {4, APP, 0x43, "k"}, {7, 1, 0x71, "d"},
		{14, 13, 0xe1, "m"});
	SAYS(&log, false, 0, "3 boot entries that come first in BootOrder failed",
		"; more than 2 are never accepted\n");
	strbuf_reset(&log);
	/* Shim started and refused what comes next. */
	PLAY(&log, {4, 7, 0x41, "c"}, {4, APP, 0x42, "s"}, {4, 7, 0x51, RETURNING},
		{4, 7, 0x41, "c"}, {7, 1, 0x71, "d"}, {14, 13, 0xe1, "m"});
	SAYS(&log, false, 0, "PCR 4, event 3\n",
		"a program loaded from memory was started but returned");
	strbuf_fini(&log);
}

Test(measure_compare, what_the_log_says_cannot_write_to_the_terminal)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;

	setup_variants(&v);
	PLAY(&log, {4, 7, 0x11, "\033]0;evil\007\nmatches: forged\n"});
	cr_assert_eq(measure_compare_log(&v, PCR_BOOT_STRICT, log.data, log.len, &c, &err), 0);
	cr_expect_not(strchr(strbuf_str(&c.report), '\033'));
	cr_expect_not(strstr(strbuf_str(&c.report), "\nmatches"));
	strbuf_fini(&log);
	measure_variants_fini(&v);
}

Test(measure_compare, a_damaged_log_is_an_error_at_every_length)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct strbuf log = STRBUF_INIT;

	setup_variants(&v);
	PLAY(&log, {4, 7, 0x41, "c"});
	for (size_t len = 0; len < log.len; len++) {
		cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
		struct err err = ERR_INIT;
		int rc = measure_compare_log(&v, PCR_BOOT_STRICT, log.data, len, &c, &err);

		/* Cut between events it is a shorter log, which does not match. */
		cr_expect(rc == -1 ? err_is_set(&err) : !c.matches, "%zu", len);
	}
	strbuf_fini(&log);
	measure_variants_fini(&v);
}

/* ---- reasons, each with a next step */

/* What one event instead of a predicted one is told to mean; id PCR_LAST_NODE_EVENT: after all. */
static void means(enum pcr_event_id id, unsigned pcr, const char *label, uint32_t type,
	const char *data, size_t len, const char *why)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct strbuf log = STRBUF_INIT;
	struct err err = ERR_INIT;
	const char *reason;
	uint8_t digest[SHA256_LEN];

	v.v = xcalloc(1, sizeof(*v.v));
	v.n = 1;
	v.v[0].when = xstrdup("always");
	memset(digest, 0x11, sizeof(digest));
	push_digest(&v.v[0], PCR7_SHIM_CERT, pcr, digest, "before");
	memset(digest, 0x22, sizeof(digest));
	if (id != PCR_LAST_NODE_EVENT)
		push_digest(&v.v[0], id, pcr, digest, label);
	log_begin(&log, log_two_banks, 2);
	log_put(&log, pcr, 1, 0x11, "x");
	log_event(&log, pcr, type, log_two_banks, 2, 0x30, data, len);
	cr_assert_eq(measure_compare_log(&v, PCR_BOOT_STRICT, log.data, log.len, &c, &err), 0);
	reason = strstr(strbuf_str(&c.report), "likely reason: ");
	cr_assert(reason && strstr(reason, why), "not \"%s\" in:\n%s", why, strbuf_str(&c.report));
	cr_expect(strstr(reason, "ext step: "), "%s", reason);
	strbuf_fini(&log);
	measure_variants_fini(&v);
}

/* UEFI_VARIABLE_DATA of SbatLevel, or of another variable of as many characters. */
static const char *variable(const char *name, const char *value, size_t *len)
{
	static char data[200];
	size_t chars = strlen(name), n = strlen(value);

	memset(data, 0, sizeof(data));
	data[16] = (char)chars;
	data[24] = (char)n;
	for (size_t i = 0; i < chars; i++)
		data[32 + 2 * i] = name[i];
	memcpy(data + 32 + 2 * chars, value, n);
	*len = 32 + 2 * chars + n;
	return data;
}

Test(measure_compare, what_belongs_to_the_platform_is_no_option_rom)
{
	static const char built_in[] = "................................"
				       "\4\6\24\0ABCDEFGHIJKLMNOP\x7f\xff\4";
#define TEXT(s) s, strlen(s)

	means(PCR4_SEPARATOR, 4, "", EVENTLOG_ACTION, TEXT("Booting to Boot0001 Option"),
		"this firmware also measures \"Booting to Boot0001 Option\"; it belongs to the platform");
	means(PCR4_EFI_CALL, 4, "", EVENTLOG_OMITTED, TEXT("BOOT ATTEMPTS OMITTED"),
		"this firmware also measures \"BOOT ATTEMPTS OMITTED\"");
	means(PCR4_SHIM, 4, "", EVENTLOG_APPLICATION, built_in, sizeof(built_in),
		"the firmware started a program of the firmware");
	means(PCR7_SEPARATOR, 7, "", EVENTLOG_ACTION, TEXT("DMA Protection Disabled"),
		"this firmware also measures \"DMA Protection Disabled\"");
	means(PCR_LAST_NODE_EVENT, 7, "", EVENTLOG_ACTION, TEXT("DMA Protection Disabled"),
		"extract-platform");
}

Test(measure_compare, an_sbat_level_says_which_shim_was_older)
{
	static const char label[] = "SBAT level sbat,1,2023012900";
	static const struct {
		const char *name, *value, *why;
	} cases[] = {
		{"SbatLevel", "sbat,1,2025021800\nshim,4\n", "it once ran a newer shim"},
		{"SbatLevel", "sbat,1,2021030218\n", "the node's shim sets an older SBAT level"},
		{"SbatLevel", "sbat,1,2023012900\nshim,9\n", "another SBAT level of the same date"},
		{"db", "certificate", "it is older than SBAT"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len;
		const char *data = variable(cases[i].name, cases[i].value, &len);

		means(PCR7_SBAT_LEVEL, 7, label, EVENTLOG_AUTHORITY, data, len, cases[i].why);
	}
}

Test(measure_compare, every_event_that_differs_has_a_reason_and_a_next_step)
{
	for (int id = 0; id < PCR11_LINUX; id++) {
		unsigned pcr = pcr_event_register((enum pcr_event_id)id);

		if (pcr == 4 || pcr == 7)
			means((enum pcr_event_id)id, pcr, "a file", 6, "x", 1, "");
	}
	for (int id = PCR14_MOK_LIST; id <= PCR14_MOK_LIST_TRUSTED; id++)
		means((enum pcr_event_id)id, 14, "a list", 13, "x", 1, "");
}

/* ---- a real boot: tests/data/boot/README */

/* By pesign of Debian's files; MokListRT, MokListXRT and MokListTrustedRT of its shim. */
static const struct {
	enum pcr_event_id id;
	unsigned pcr;
	const char *digest;
} boot[] = {
	{PCR4_EFI_CALL, 4, "3d6772b4f84ed47595d72a2c4c5ffd15f5bb72c7507fe26f2aaee2c69d5633ba"},
	{PCR4_SEPARATOR, 4, "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119"},
	{PCR4_SHIM, 4, "80a66d53a945d2286fcadd780fae1c225aa732079cd67b5225dc78aaab4e2ff8"},
	{PCR4_GRUB, 4, "a68f6d71ebddaa19751ff8d729f67d11b0df8e4c49400c3e7e90de16119e1265"},
	{PCR4_VMLINUZ, 4, "5f21ff2c0d5d899842b28a8b19901ba72cf7a7ab93c02a77fadc6ff72be85b31"},
	{PCR4_VMLINUZ, 4, "5f21ff2c0d5d899842b28a8b19901ba72cf7a7ab93c02a77fadc6ff72be85b31"},
	{PCR14_MOK_LIST, 14, "342c88bb9fde2c45eeaa17321262b089181e7e841ef5a4a5e8ed240920026f97"},
	{PCR14_MOK_LIST_X, 14, "45e89b4a5f8283cd8ae7c66bda8346697120c84880537aadb49a665c7d7eec0f"},
	{PCR14_MOK_LIST_TRUSTED, 14,
		"4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"},
};

static void setup_boot(struct measure_variants *v, struct strbuf *log)
{
	const char *dir = getenv("TEST_DATA");
	cleanup_free char *path =
		xasprintf("%s/boot/debian12-shim-grub/eventlog", dir ? dir : "tests/data");
	FILE *f = fopen(path, "r");
	int c;

	cr_assert(f, "%s cannot be read", path);
	while ((c = fgetc(f)) != EOF)
		strbuf_addc(log, (char)c);
	fclose(f);
	v->v = xcalloc(1, sizeof(*v->v));
	v->n = 1;
	v->v[0].when = xstrdup("as it was");
	for (size_t i = 0; i < ARRAY_LEN(boot); i++) {
		uint8_t digest[SHA256_LEN];

		cr_assert_eq(bytes_from_hex(boot[i].digest, SHA256_HEX_LEN, digest), 0);
		push_digest(&v->v[0], boot[i].id, boot[i].pcr, digest, "a file");
	}
}

Test(measure_compare, a_real_boot_matches_and_each_changed_event_is_named)
{
	struct measure_variants v = MEASURE_VARIANTS_INIT;
	struct strbuf log = STRBUF_INIT;
	unsigned number[PCR_MAX] = {0}, named = 0;
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog l;
	size_t from;

	setup_boot(&v, &log);
	cr_assert_eq(eventlog_open(log.data, log.len, &l, &err), 0);
	for (from = l.pos; eventlog_next(&l, &e, &err) > 0; from = l.pos) {
		cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
		bool compared = e.pcr == 4 || e.pcr == 14;
		cleanup_free char *where = NULL;
		char *digest = memmem(log.data + from, l.pos - from, e.sha256, SHA256_LEN);

		if (e.type == EVENTLOG_NO_ACTION)
			continue;
		where = xasprintf("first difference: PCR %u, event %u\n", e.pcr, ++number[e.pcr]);
		cr_assert(digest);
		digest[SHA256_LEN - 1] ^= 1;
		cr_assert_eq(measure_compare_log(&v, PCR_BOOT_STRICT, log.data, log.len, &c, &err),
			0, "%s", err.text);
		digest[SHA256_LEN - 1] ^= 1;
		cr_expect_eq(c.matches, !compared, "%s", where);
		cr_expect_eq(strstr(strbuf_str(&c.report), where) != NULL, compared, "not %s:\n%s",
			where, strbuf_str(&c.report));
		named += compared;
	}
	cr_expect_not(err_is_set(&err), "%s", err.text);
	cr_expect_eq(named, ARRAY_LEN(boot));
	strbuf_fini(&log);
	measure_variants_fini(&v);
}
