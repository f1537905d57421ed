/* SPDX-License-Identifier: MIT */
/* What the doctor says about a machine that seals its boots; its files are made up here. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tec/attest/doctor.h"
#include "tec/base/file.h"
#include "tec/base/str.h"

struct world {
	struct attest_doctor_request r; /* first: `say` gets `done`'s argument */
	struct loop *loop;
	char *root;
	struct strbuf said;
	enum attest_fault fault;
};

static void say(void *arg, const char *line)
{
	struct world *w = arg;

	strbuf_addf(&w->said, "%s\n", line);
}

static void done(void *arg, enum attest_fault fault)
{
	struct world *w = arg;

	w->fault = fault;
	loop_stop(w->loop);
}

static void put(const struct world *w, const char *path, const char *text)
{
	struct err err = ERR_INIT;
	char full[256];

	snprintf(full, sizeof(full), "%s%s", w->root, path);
	cr_assert_eq(file_replace(full, text, strlen(text), 0644, &err), 0, "%s", err.text);
}

/* Run the doctor on a machine with these files; return its first failure. */
static enum attest_fault examine(
	struct world *w, bool seal, const char *disk, const char *cmdline, const char *crypttab)
{
	static const char *const dirs[] = {"/etc", "/proc", "/sys", "/sys/power"};
	struct attest_config config = {.n_servers = 0};
	struct attest_source source;
	struct op_scope ops = {0};
	char path[256];

	w->root = file_temp_dir(NULL, "doctor");
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(path, sizeof(path), "%s%s", w->root, dirs[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	put(w, "/sys/power/disk", disk);
	put(w, "/proc/cmdline", cmdline);
	put(w, "/etc/crypttab", crypttab);
	w->loop = loop_new();
	source = attest_source_sample(w->loop);
	w->r = (struct attest_doctor_request){
		.source = &source, .config = &config, .seal = seal, .root = w->root, .say = say};
	attest_doctor_start(&ops, &w->r, done, w);
	loop_run(w->loop);
	loop_free(w->loop);
	file_remove_tree(w->root);
	free(w->root);
	return w->fault;
}

static bool has(struct world *w, const char *text)
{
	bool found = strstr(strbuf_str(&w->said), text);

	if (!found)
		fprintf(stderr, "%s", strbuf_str(&w->said));
	strbuf_fini(&w->said);
	return found;
}

#define LINE "BOOT_IMAGE=/vmlinuz root=/dev/mapper/root quiet"

Test(attest_doctor, hibernation_is_named)
{
	static const char possible[] = "[platform] shutdown reboot suspend test_resume\n";
	struct world w = {.said = STRBUF_INIT};

	cr_expect_eq(examine(&w, true, "[disabled]\n", LINE "\n", ""), ATTEST_OK);
	cr_expect(has(&w, "hibernation is not possible"));
	cr_expect_eq(examine(&w, true, possible, LINE "\n", ""), ATTEST_OK);
	cr_expect(has(&w, "hibernation is possible"));
	cr_expect_eq(examine(&w, true, possible, LINE " noresume=1 xresume=2\n", ""), ATTEST_OK);
	cr_expect(has(&w, "hibernation is possible"));
	cr_expect_eq(examine(&w, true, possible, LINE " resume=/dev/vda2\n", ""), ATTEST_USAGE);
	cr_expect(has(&w, "FAIL  hibernation is possible"));
	cr_expect_eq(examine(&w, false, possible, LINE " resume=/dev/vda2\n", ""), ATTEST_OK);
	cr_expect_not(strstr(strbuf_str(&w.said), "hibernation"));
	strbuf_fini(&w.said);
}

Test(attest_doctor, a_disk_that_is_measured_into_pcr_15_closes_the_others)
{
	struct world w = {.said = STRBUF_INIT};
	const char *one = "# tpm2-measure-pcr=yes\n\nroot UUID=1 none luks,tpm2-measure-pcr=yes\n",
		   *two = "root UUID=1 none luks,tpm2-measure-pcr=yes\n\tdata\tUUID=2 none luks\n",
		   *off = "root UUID=1 none luks,tpm2-measure-pcr=no\ndata UUID=2 none luks\n";

	cr_expect_eq(examine(&w, true, "", "", one), ATTEST_OK);
	strbuf_fini(&w.said);
	cr_expect_eq(examine(&w, true, "", "", off), ATTEST_OK);
	strbuf_fini(&w.said);
	cr_expect_eq(examine(&w, true, "", "", two), ATTEST_USAGE);
	cr_expect(has(&w, "FAIL  \"root\" has tpm2-measure-pcr in /etc/crypttab"));
}
