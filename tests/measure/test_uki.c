/* SPDX-License-Identifier: MIT */
/*
 * PCR 11 of unified kernel images against what the systemd-stub of each version measured in a real
 * boot (tests/data/boot, made by tests/vm/boots.py with these sections): which ones, in which order,
 * and of the small ones their contents. Kernel, initrd and the stub's .sbat are others here, as
 * Debian ships them.
 */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure/pe_builder.h"
#include "tec/base/mem.h"
#include "tec/measure/eventlog.h"
#include "tec/measure/predict.h"
#include "tec/pcr/tpmevent.h"

#define OTHER "others here"
#define PLAIN                                                                                      \
	{".linux", OTHER}, {".initrd", OTHER}, {".osrel", "ID=debian\nVERSION_ID=12\n"},           \
	{                                                                                          \
		".cmdline", "console=ttyS0 quiet"                                                  \
	}
#define UNAME                                                                                      \
	{".sbat", OTHER},                                                                          \
	{                                                                                          \
		".uname", "6.1.0-56-cloud-amd64"                                                   \
	}
#define MORE                                                                                       \
	{".ucode", OTHER}, {".splash", "BM not a picture"}, {".dtb", "not a device tree"},         \
		{".pcrsig", "{}"},                                                                 \
	{                                                                                          \
		".pcrpkey", "not a key"                                                            \
	}
#define STUB(version) "#### LoaderInfo: systemd-stub " version " ####"

struct section {
	const char *name, *text;
};
static const struct booted {
	const char *boot, *stub;
	unsigned profile, n_profiles;
	struct section section[14];
} boots[] = {
	{"uki252", STUB("252.39-1~deb12u2"), 0, 1, {PLAIN}},
	{"uki254", STUB("254.26-1~bpo12+1"), 0, 1, {PLAIN, UNAME, MORE}},
	{"uki257", STUB("257.13-1~deb13u1"), 0, 1, {PLAIN, UNAME, MORE, {".hwids", NULL}}},
	{"uki262", STUB("262.1-1"), 0, 1, {PLAIN, UNAME, MORE, {".hwids", NULL}}},
	{"uki-profiles", STUB("257.13-1~deb13u1"), 0, 2,
		{PLAIN, UNAME, {".profile", "ID=main\nTITLE=Main"},
			{".profile", "ID=debug\nTITLE=Debug"},
			{".cmdline", "console=ttyS0 quiet debug=1"}}},
	{"uki-profile1", STUB("257.13-1~deb13u1"), 1, 2,
		{PLAIN, UNAME, {".profile", "ID=main\nTITLE=Main"},
			{".profile", "ID=debug\nTITLE=Debug"},
			{".cmdline", "console=ttyS0 quiet debug=1"}}},
};

static void make_uki(const struct booted *b, struct strbuf *out)
{
	static const uint8_t zeros[64];
	struct pe_build s = PE_BUILD_INIT;

	s.section[s.n_sections].name = ".sdmagic";
	s.section[s.n_sections].data = b->stub;
	s.section[s.n_sections++].len = strlen(b->stub) + 1;
	for (const struct section *t = b->section; t->name; t++) {
		s.section[s.n_sections].name = t->name;
		s.section[s.n_sections].data = t->text ? (const void *)t->text : zeros;
		s.section[s.n_sections++].len = t->text ? strlen(t->text) : sizeof(zeros);
	}
	pe_build(&s, out);
}

static void predict(const struct booted *b, struct pcr_events *out)
{
	cleanup_strbuf struct strbuf uki = STRBUF_INIT;
	int fd = memfd_create("uki", MFD_CLOEXEC);
	struct err err = ERR_INIT;
	unsigned profiles;

	make_uki(b, &uki);
	cr_assert_eq(write(fd, uki.data, uki.len), (ssize_t)uki.len);
	cr_assert_eq(measure_uki(fd, b->boot, b->profile, &profiles, out, &err), 0, "%s", err.text);
	cr_expect_eq(profiles, b->n_profiles, "%s", b->boot);
	close(fd);
}

static void read_log(const char *boot, struct strbuf *out)
{
	const char *dir = getenv("TEST_DATA");
	cleanup_free char *path = xasprintf("%s/boot/%s/eventlog", dir ? dir : "tests/data", boot);
	FILE *f = fopen(path, "r");
	int c;

	cr_assert(f, "%s cannot be read", path);
	while ((c = fgetc(f)) != EOF)
		strbuf_addc(out, (char)c);
	fclose(f);
}

static bool is_other(enum pcr_event_id id)
{
	return id == PCR11_LINUX_CONTENT || id == PCR11_INITRD_CONTENT ||
	       id == PCR11_SBAT_CONTENT || id == PCR11_UCODE_CONTENT;
}

Test(measure_uki, each_stub_measured_what_is_predicted)
{
	for (size_t i = 0; i < ARRAY_LEN(boots); i++) {
		cleanup_pcr_events struct pcr_events predicted = PCR_EVENTS_INIT;
		cleanup_strbuf struct strbuf log = STRBUF_INIT;
		struct err err = ERR_INIT;
		struct eventlog_event e;
		struct eventlog l;
		size_t n = 0;

		predict(&boots[i], &predicted);
		read_log(boots[i].boot, &log);
		cr_assert_eq(eventlog_open(log.data, log.len, &l, &err), 0, "%s", err.text);
		while (eventlog_next(&l, &e, &err) > 0) {
			if (e.pcr != 11)
				continue;
			cr_assert_lt(n, predicted.n, "%s measured more", boots[i].boot);
			if (!is_other(predicted.v[n].id))
				cr_expect_arr_eq(e.sha256, predicted.v[n].digest, SHA256_LEN,
					"%s, event %zu is not %s", boots[i].boot, n,
					measure_uki_event_name(predicted.v[n].id));
			n++;
		}
		cr_expect_eq(n, predicted.n, "%s measured %zu events, not %zu", boots[i].boot, n,
			predicted.n);
	}
}

/* What is open for a stub that nobody measured is refused with the section's name. */
Test(measure_uki, a_section_of_which_it_is_not_known_is_named)
{
	static const struct booted b = {
		"x", STUB("999"), 0, 1, {PLAIN, UNAME, {".dtbauto", "not a device tree"}}};
	cleanup_pcr_events struct pcr_events events = PCR_EVENTS_INIT;
	cleanup_strbuf struct strbuf uki = STRBUF_INIT;
	int fd = memfd_create("uki", MFD_CLOEXEC);
	struct err err = ERR_INIT;
	unsigned profiles;

	make_uki(&b, &uki);
	cr_assert_eq(write(fd, uki.data, uki.len), (ssize_t)uki.len);
	cr_expect_eq(measure_uki(fd, "x", 0, &profiles, &events, &err), -1);
	cr_expect(strstr(err.text, ".dtbauto"), "%s", err.text);
	close(fd);
}
