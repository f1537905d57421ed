/* SPDX-License-Identifier: MIT */
/* Questions through children: sh plays the program. Time is fake, children are real; each test
 * waits on the loop for an end. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/oci/lookup.h"
#include "tec/oci/wire.h"

#define REF "127.0.0.1:1/a@sha256:0000000000000000000000000000000000000000000000000000000000000000"

static struct loop *loop;
static struct op_scope ops;
static struct oci_lookup *lookup;
static const char *argv[] = {"lookup", "-c", NULL, NULL};
static struct strbuf logged;

struct got {
	unsigned n;
	struct err err;
	char value[64]; /* "none" */
	struct op *op;
};

static void on_log(enum log_level level, const char *line, void *arg)
{
	strbuf_adds(&logged, line);
}

static void setup(void)
{
	alarm(60);
	clock_fake_start(1000, 0);
	log_capture(on_log, NULL);
	loop = loop_new();
	lookup = oci_lookup_new(loop, "/bin/sh", argv);
}

static void teardown(void)
{
	op_scope_cancel(&ops);
	oci_lookup_free(lookup);
	loop_free(loop);
	log_capture(NULL, NULL);
	strbuf_fini(&logged);
	clock_fake_stop();
	metric_reset_all();
	cr_assert_eq(secret_count(), 0);
}

TestSuite(oci_lookup, .init = setup, .fini = teardown);

static void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct got *g = arg;

	g->n++;
	g->err = *err;
	cr_assert(!err_is_set(err) || !value);
	cr_assert_eq(value ? strlen(value) : 0, len);
	snprintf(g->value, sizeof(g->value), "%s", value ? value : "none");
}

static void start(struct got *g, const char *script)
{
	static const char auths[] =
		"{\"auths\":{\"127.0.0.1:1\":{\"auth\":\"dTpwdw==\"},"
		"\"quay.io\":{\"auth\":\"c2VjcmV0OnB3\"},\"127.0.0.1:1/b\":{\"identitytoken\":\"x\"}}}";
	cleanup_secret struct secret *s = secret_new_copy(auths, strlen(auths));
	const struct secret *const configs[] = {s};
	const struct oci_conf conf = {.platform_os = "linux", .platform_arch = "amd64"};

	argv[2] = script;
	memset(g, 0, sizeof(*g));
	op_hold(&g->op,
		oci_lookup_get(lookup, &ops, &conf, REF, "the.label", configs, 1, on_label, g));
	cr_assert_eq(g->n, 0);
}

static void finish(struct got *g)
{
	while (!g->n)
		loop_turn(loop, 10000);
	cr_assert_eq(g->n, 1);
	cr_assert_null(g->op);
}

static struct got ask(const char *script)
{
	struct got g;

	start(&g, script);
	finish(&g);
	return g;
}

Test(oci_lookup, the_question_goes_in_and_the_answer_comes_out)
{
	struct got g =
		ask("q=$(cat); case $q in *l9:the.label*:*dTpwdw==*z0:*) printf 'v2:ok\\n';; esac");

	cr_assert_eq(g.err.kind, ERR_NONE, "%s", g.err.text);
	cr_assert_str_eq(g.value, "ok");
	g = ask("printf 'n0:\\n'");
	cr_assert_eq(g.err.kind, ERR_NONE);
	cr_assert_str_eq(g.value, "none");
	g = ask("printf 'k6:denied\\nh3:403\\ns4:1000\\nt2:no\\n'");
	cr_assert_eq(g.err.kind, ERR_DENIED);
	cr_assert_eq(g.err.http, 403);
	cr_assert_eq(g.err.retry_after_ms, 1000);
	cr_assert_str_eq(g.err.text, "no");
	cr_assert_eq(logged.len, 0, "%s", logged.data);
}

Test(oci_lookup, the_child_gets_no_environment_and_no_arguments_but_its_own)
{
	struct got g;

	setenv("TEC_TEST_SECRET", "x", 1);
	g = ask("[ -z \"$TEC_TEST_SECRET$HOME$KUBECONFIG\" ] && [ $# = 0 ] && printf 'v5:clean\\n'");
	cr_assert_str_eq(g.value, "clean", "%s", g.err.text);
}

Test(oci_lookup, warnings_of_the_child_are_logged)
{
	struct got g = ask("printf 'w9:a mirror!\\nn0:\\n'");

	cr_assert_eq(g.err.kind, ERR_NONE);
	cr_assert(strstr(strbuf_str(&logged), "a mirror!"), "%s", strbuf_str(&logged));
}

Test(oci_lookup, a_child_that_fails_is_transient_and_its_words_are_not_told)
{
	static const char *const scripts[] = {
		"exit 0",
		"printf 'v5:cut'",
		"printf 'v2:ok\\n'; echo body-of-somebody >&2; exit 3",
		"printf 'v2:ok\\n'; echo body-of-somebody >&2; kill -SEGV $$",
		"echo body-of-somebody",
		"while :; do echo body-of-somebody; done", /* more than an answer may be */
		"exec /no/such/program",
	};

	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		struct got g = ask(scripts[i]);

		cr_assert_eq(g.err.kind, ERR_TRANSIENT, "%s: %s", scripts[i], g.err.text);
		cr_assert_str_eq(g.value, "none");
		cr_assert_str_eq(
			g.err.text, "the process that queries the registry did not answer");
		cr_assert(strstr(strbuf_str(&logged), "label lookup failed"));
		strbuf_reset(&logged);
	}
}

Test(oci_lookup, a_child_that_does_not_end_is_killed_at_its_deadline)
{
	struct got g;

	start(&g, "exec tail -f /dev/null");
	loop_turn(loop, 0);
	loop_advance(loop, OCI_LOOKUP_DEADLINE_MS - 1000);
	cr_assert_eq(g.n, 0);
	loop_advance(loop, 2000);
	cr_assert_eq(g.n, 1);
	cr_assert_eq(g.err.kind, ERR_TRANSIENT);
}

Test(oci_lookup, a_few_run_at_once_and_others_wait_in_line)
{
	char dir[] = "/tmp/tec-lookup-XXXXXX";
	struct got g[OCI_LOOKUP_MAX + 2];
	cleanup_free char *script = NULL, *go = NULL;
	FILE *f;

	cr_assert(mkdtemp(dir));
	/* Each waits at a fifo until the test opens it for writing. */
	go = xasprintf("%s/go", dir);
	cr_assert_eq(mkfifo(go, 0600), 0);
	script = xasprintf("echo >%s/$$; read x <%s; printf 'v2:ok\\n'", dir, go);
	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		start(&g[i], script);
	loop_drain(loop);
	op_cancel(&g[OCI_LOOKUP_MAX].op); /* one that waits */
	op_cancel(&g[0].op);              /* one that runs: its place is taken by the last */
	f = fopen(go, "w+");
	cr_assert(f);
	for (int i = 0; i < 8; i++)
		fputs("go\n", f);
	fflush(f);
	for (size_t i = 1; i < ARRAY_LEN(g); i++) {
		if (i == OCI_LOOKUP_MAX)
			continue;
		while (!g[i].n)
			loop_turn(loop, 10000);
		cr_assert_str_eq(g[i].value, "ok", "%zu: %s", i, g[i].err.text);
	}
	cr_assert_eq(g[0].n + g[OCI_LOOKUP_MAX].n, 0);
	fclose(f);
	cleanup_free char *rm = xasprintf("rm -r %s", dir);
	cr_assert_eq(system(rm), 0);
}

Test(oci_lookup, one_that_waits_for_long_is_told_so)
{
	static struct got g[OCI_LOOKUP_MAX + 1]; /* some are under way until the teardown */

	for (size_t i = 0; i < ARRAY_LEN(g); i++)
		start(&g[i], "exec tail -f /dev/null");
	loop_drain(loop);
	loop_advance(loop, OCI_LOOKUP_WAIT_MS + 10);
	for (size_t i = 0; i < OCI_LOOKUP_MAX; i++)
		cr_assert_eq(g[i].n, 0);
	cr_assert_eq(g[OCI_LOOKUP_MAX].n, 1);
	cr_assert_eq(g[OCI_LOOKUP_MAX].err.kind, ERR_TRANSIENT);
	cr_assert(strstr(g[OCI_LOOKUP_MAX].err.text, "other lookups"));
}

Test(oci_lookup, credentials_of_other_hosts_do_not_leave)
{
	struct got g = ask("q=$(cat); case $q in *c2VjcmV0*|*quay.io*|*identity*) exit 1;; esac; "
			   "printf 'n0:\\n'");

	cr_assert_eq(g.err.kind, ERR_NONE, "%s", g.err.text);
}

Test(oci_lookup, what_cannot_be_asked_is_told_later)
{
	cleanup_secret struct secret *bad = secret_new_copy("{", 1);
	const struct secret *const configs[] = {bad};
	static const char *const refs[] = {"latest", REF};
	const struct oci_conf conf = {.platform_os = "linux", .platform_arch = "amd64"};

	for (size_t i = 0; i < ARRAY_LEN(refs); i++) {
		struct got g = {0};

		op_hold(&g.op, oci_lookup_get(lookup, &ops, &conf, refs[i], "l", configs, 1,
				       on_label, &g));
		cr_assert_eq(g.n, 0);
		finish(&g);
		cr_assert_eq(g.err.kind, ERR_INVALID, "%s", g.err.text);
	}
}
