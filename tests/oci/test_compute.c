/* SPDX-License-Identifier: MIT */
/* Computations through children: sh plays the program that the asking side starts. Children and files are
 * real, time is fake; each test waits on the loop for an end. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/oci/compute.h"

static struct loop *loop;
static struct op_scope ops;
static struct oci_computes *computes;
static const char *argv[] = {"compute", "-c", NULL, NULL};
static char dir[64], *scratch;

struct got {
	unsigned n;
	struct err err;
	char message[64];
	struct strbuf said;
	struct op *op;
};

static void make(void)
{
	const struct oci_computes_conf conf = {
		.file = "/bin/sh", .argv = argv, .tool = "/no/tool", .scratch = scratch};

	computes = oci_computes_new(loop, &conf);
}

static void setup(void)
{
	alarm(60);
	clock_fake_start(1000, 0);
	strcpy(dir, "/tmp/test_compute.XXXXXX");
	cr_assert(mkdtemp(dir));
	scratch = xasprintf("%s/scratch", dir);
	loop = loop_new();
	make();
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	oci_computes_free(computes);
	loop_free(loop);
	rmdir(scratch);
	rmdir(dir);
	free(scratch);
	clock_fake_stop();
	metric_reset_all();
	cr_assert_eq(secret_count(), 0);
}

TestSuite(oci_compute, .init = setup, .fini = teardown);

static void on_said(void *arg, const char *line)
{
	strbuf_addf(&((struct got *)arg)->said, "%s\n", line);
}

static void on_computed(void *arg, const struct err *err, const char *message, size_t len)
{
	struct got *g = arg;

	g->n++;
	g->err = *err;
	snprintf(g->message, sizeof(g->message), "%.*s", (int)len, message);
}

static void start(struct got *g, const char *script)
{
	static const char *const options[] = {"--arch", "arm64", NULL};
	cleanup_secret struct secret *auth = secret_new_copy("{\"auths\":{}}", 12);
	const struct oci_compute_question q = {
		.reference = "a@sha256:0", .nonce = "n", .options = options, .auth = auth};

	argv[2] = script;
	*g = (struct got){.said = STRBUF_INIT};
	op_hold(&g->op, oci_compute(computes, &ops, &q, on_said, on_computed, g));
	cr_assert_eq(g->n, 0);
}

static void finish(struct got *g)
{
	while (!g->n)
		loop_turn(loop, 10000);
	cr_assert_eq(g->n, 1);
	cr_assert_null(g->op);
	strbuf_fini(&g->said);
}

Test(oci_compute, the_question_goes_in_and_the_message_comes_out)
{
	struct got g;

	start(&g,
		"q=$(cat); case $q in *'\"reference\":\"a@sha256:0\"'*--arch*arm64*auths*) printf ok;; *) echo \"$q\" >&2; exit 1;; esac");
	finish(&g);
	cr_assert_eq(g.err.kind, ERR_NONE, "%s", g.err.text);
	cr_assert_str_eq(g.message, "ok");
}

Test(oci_compute, lines_are_told_without_what_a_terminal_acts_on)
{
	struct got g;

	start(&g,
		"cat >/dev/null; printf 'tec-compute-pcrs: layer 1\\n\\033[2Jx\\302\\233\\n\\nno end' >&2; printf m");
	while (!g.n)
		loop_turn(loop, 10000);
	cr_assert_str_eq(strbuf_str(&g.said), "layer 1\n?[2Jx??\n");
	finish(&g);
}

Test(oci_compute, the_last_line_is_why_it_failed)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
		{"cat >/dev/null; echo one >&2; echo 'tec-operator: the image has no kernel' >&2; exit 1",
			"the image has no kernel"},
		{"cat >/dev/null; exit 3", "compute failed with status 3"},
		{"cat >/dev/null; kill -9 $$", "compute was killed by signal 9"},
		{"cat >/dev/null; head -c 70000 /dev/zero", "compute wrote more than 65536 bytes"},
		{"cat >/dev/null; head -c 5000 /dev/zero | tr '\\0' x >&2; echo >&2; exit 1",
			"xxxx"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct got g;

		start(&g, rows[i].script);
		finish(&g);
		cr_assert_eq(g.err.kind, ERR_TRANSIENT, "row %zu", i);
		cr_assert(str_starts(g.err.text, rows[i].why), "row %zu: %s", i, g.err.text);
	}
}

Test(oci_compute, one_runs_at_a_time_in_the_order_of_the_questions)
{
	struct got g[3];

	/* mkdir fails where another one runs. */
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		start(&g[i],
			"cat >/dev/null; cd /tmp && mkdir test_compute.lock && rmdir test_compute.lock && printf ok");
	finish(&g[0]);
	cr_assert_eq(g[1].n + g[2].n, 0);
	finish(&g[1]);
	cr_assert_eq(g[2].n, 0);
	finish(&g[2]);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		cr_assert_str_eq(g[i].message, "ok", "%zu: %s", i, g[i].err.text);
}

Test(oci_compute, one_that_is_cancelled_is_killed_and_its_files_go)
{
	struct got g[2];
	cleanup_free char *mark = xasprintf("%s/x", scratch), *made = NULL;

	cr_assert_eq(mkdir(scratch, 0700), 0);
	made = xasprintf(
		"cat >/dev/null; [ -e %s ] || { : >%s; exec sleep 1000; }; rm %s; printf ok", mark,
		mark, mark);
	start(&g[0], made);
	while (access(mark, F_OK) < 0)
		loop_turn(loop, 100);
	op_cancel(&g[0].op);
	/* The same program empties the directory: it finds the mark. */
	while (access(mark, F_OK) == 0)
		loop_turn(loop, 100);
	start(&g[1], "cat >/dev/null; printf ok");
	finish(&g[1]);
	cr_assert_str_eq(g[1].message, "ok");
	cr_assert_eq(g[0].n, 0);
}

Test(oci_compute, one_that_waits_can_be_cancelled)
{
	struct got g[2];

	start(&g[0], "cat >/dev/null; printf ok");
	start(&g[1], "cat >/dev/null; printf ok");
	op_cancel(&g[1].op);
	finish(&g[0]);
	cr_assert_eq(g[1].n, 0);
}

Test(oci_compute, one_that_does_not_end_is_killed)
{
	struct got g;

	start(&g, "cat >/dev/null; exec sleep 100000");
	loop_turn(loop, 100);
	while (!g.n) {
		clock_fake_advance(OCI_COMPUTE_DEADLINE_MS);
		loop_turn(loop, 100);
	}
	finish(&g);
	cr_assert(strstr(g.err.text, "did not finish in time"), "%s", g.err.text);
}

/* ---- a platform's variables */

Test(oci_compute, a_platform_is_files_of_one_directory)
{
	cleanup_free char *into = xasprintf("%s/board", dir), *up = xasprintf("%s/up", dir);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *map = json_obj();
	cleanup_json struct json_object *data = json_obj(), *binary = json_obj();
	const char *const names[] = {"../up", "/tmp/up", "..", ".", "", "a/b"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_add_str(data, names[i], "x");
		json_add_str(binary, names[i], "eA==");
	}
	json_add_str(data, "plain", "1");
	json_add_int(data, "number", 1);
	json_add_str(binary, "bytes", "AAE=");
	json_add_str(binary, "bad", "not base64!");
	json_add(map, "data", json_object_get(data));
	json_add(map, "binaryData", json_object_get(binary));
	cr_assert_eq(oci_compute_platform(into, map, &err), 0, "%s", err.text);
	cr_assert_eq(access(up, F_OK), -1);
	for (size_t i = 0; i < 2; i++) {
		cleanup_free char *path = xasprintf("%s/%s", into, i ? "bytes" : "plain");
		struct stat st;

		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(st.st_size, i ? 2 : 1);
		unlink(path);
	}
	cr_assert_eq(rmdir(into), 0, "nothing else is in it");
}
