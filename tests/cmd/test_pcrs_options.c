/* SPDX-License-Identifier: MIT */
/* The table of tec-compute-pcrs' options: what is read from it, and what is refused. */
#include "config.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <string.h>

#include "../src/cmd/pcrs_options.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define IMAGE  "--image=quay.io/a/b@sha256:" DIGEST
#define NONCE  " --nonce=0123456789abcdef0123456789abcdef"

static struct pcrs_options o;

static void up(void)
{
	cr_redirect_stdout();
	cr_redirect_stderr();
}

static void down(void)
{
	pcrs_options_fini(&o);
}

TestSuite(cmd_pcrs_options, .init = up, .fini = down);

/* words: separated by blanks. */
static enum conf_result read_words(const char *words)
{
	static char text[1024];
	char name[] = "tec-compute-pcrs", *argv[24] = {name}, *rest = text, *word;
	int argc = 1;

	pcrs_options_fini(&o);
	cr_assert_lt(snprintf(text, sizeof(text), "%s", words), (int)sizeof(text));
	while ((word = strsep(&rest, " "))) {
		cr_assert_lt((size_t)argc, ARRAY_LEN(argv));
		if (*word)
			argv[argc++] = word;
	}
	return pcrs_options_read(&o, argc, argv);
}

Test(cmd_pcrs_options, commands_and_what_they_assume)
{
	static const struct {
		const char *words;
		enum pcrs_command command;
		const char *rootfs, *file;
	} cases[] = {
		{"all", PCRS_ALL, "/", NULL},
		{"pcr4 -r /mnt", PCRS_PCR4, "/mnt", NULL},
		{"pcr7 --efivars e", PCRS_PCR7, "/", NULL},
		{"pcr11 uki.efi", PCRS_PCR11, "/", "uki.efi"},
		{"pcr14", PCRS_PCR14, "/", NULL},
		{"verify log", PCRS_VERIFY, "/", "log"},
		{IMAGE NONCE, PCRS_JOB, "/image", NULL},
		{IMAGE NONCE " --rootfs=/x", PCRS_JOB, "/x", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cr_assert_eq(read_words(cases[i].words), CONF_RUN, "%s", cases[i].words);
		cr_expect_eq(o.command, cases[i].command, "%s", cases[i].words);
		cr_expect_str_eq(o.rootfs, cases[i].rootfs, "%s", cases[i].words);
		cr_expect(str_eq(o.file, cases[i].file), "%s", cases[i].words);
	}
}

Test(cmd_pcrs_options, secure_boot_is_what_the_variables_say_unless_told)
{
	cr_assert_eq(read_words("all"), CONF_RUN);
	cr_expect_eq(o.secure_boot, MEASURE_SB_FROM_EFIVARS);
	cr_assert_eq(read_words("all --secureboot-disabled"), CONF_RUN);
	cr_expect_eq(o.secure_boot, MEASURE_SB_OFF);
	cr_assert_eq(read_words("all --secureboot-disabled=false"), CONF_RUN);
	cr_expect_eq(o.secure_boot, MEASURE_SB_ON);
}

Test(cmd_pcrs_options, the_job_has_a_digest_a_nonce_and_its_platforms)
{
	cr_assert_eq(read_words(IMAGE NONCE " --platform a=/a --platform=b.c=/b=1"), CONF_RUN);
	cr_expect_str_eq(o.digest, DIGEST);
	cr_expect_str_eq(o.nonce, "0123456789abcdef0123456789abcdef");
	cr_expect_str_eq(o.result, "/dev/termination-log");
	cr_assert_eq(o.n_platforms, 2);
	cr_expect_str_eq(o.platform[0].name, "a");
	cr_expect_str_eq(o.platform[0].dir, "/a");
	cr_expect_str_eq(o.platform[1].name, "b.c");
	cr_expect_str_eq(o.platform[1].dir, "/b=1");
}

Test(cmd_pcrs_options, malformed_values_are_refused)
{
	static const char *const bad[] = {"", "pcr9", "pcr7", "pcr11", "verify",
		"all --rootfs=", "all --nonce=0", IMAGE, "--image=quay.io/a/b" NONCE,
		IMAGE " --nonce=0", IMAGE " --nonce=0123456789ABCDEF0123456789ABCDEF",
		IMAGE NONCE " --platform a", IMAGE NONCE " --platform =/a",
		IMAGE NONCE " --platform a=", IMAGE NONCE " --platform A=/a",
		IMAGE NONCE " --platform a=/1 --platform a=/2",
		IMAGE NONCE " --platform a=/ --platform b=/ --platform c=/ --platform d=/"
			    " --platform e=/ --platform f=/ --platform g=/ --platform h=/"
			    " --platform i=/"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_expect_eq(read_words(bad[i]), CONF_BAD, "%s", bad[i]);
}
