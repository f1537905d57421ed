/* SPDX-License-Identifier: MIT */
/* Plugins are shell scripts run for real; time is a fake clock, and a turn of the loop waits only
 * for the child. */
#include "config.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/k8s/auth.h"
#include "tec/loop/signal.h"

#include "net/net_testing.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */

static struct loop *l;
static struct op_scope ops;
static struct k8s_auth *a;
static char dir[64];
static unsigned n_warnings;

static char *cert_pem, *key_pem; /* self-signed: authority and client certificate in one */

static char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned n;
	char *p = path[n++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void write_file(const char *name, const char *text)
{
	cleanup_free char *tmp = xasprintf("%s/.tmp", dir);
	FILE *f = fopen(tmp, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
	chmod(tmp, 0700);
	cr_assert_eq(rename(tmp, path_of(name)), 0);
}

static void count_warning(enum log_level level, const char *line, void *arg)
{
	n_warnings += level == LOG_WARN;
}

static void setup(void)
{
	loop_ignore_sigpipe();
	snprintf(dir, sizeof(dir), "/tmp/tec-auth-XXXXXX");
	cr_assert(mkdtemp(dir));
	struct testing_pem pem = testing_make_pem(1, 86400);

	cert_pem = pem.cert;
	key_pem = pem.key;
	log_capture(count_warning, NULL);
	clock_fake_start(1000000, NOW);
	l = loop_new();
}

static void teardown(void)
{
	cleanup_free char *rm = xasprintf("rm -r '%s'", dir);

	op_scope_cancel(&ops);
	k8s_auth_free(a);
	loop_free(l);
	clock_fake_stop();
	log_capture(NULL, NULL);
	metric_reset_all();
	cr_assert_eq(secret_count(), 0);
	cr_assert_eq(system(rm), 0);
	free(cert_pem);
	free(key_pem);
}

TestSuite(k8s_auth, .init = setup, .fini = teardown, .timeout = 30);

static struct k8s_kubeconfig *conf_new(const char *server)
{
	struct k8s_kubeconfig *k = xcalloc(1, sizeof(*k));

	k->server = xstrdup(server);
	return k;
}

/* The token of the moment, or "none", or "wait", or the error. */
static const char *token(void)
{
	static char text[ERR_TEXT_SIZE + 2];
	struct k8s_cred cred = {0};
	struct err err = ERR_INIT;

	if (k8s_auth_ready(a, &cred, &err))
		snprintf(text, sizeof(text), "%s", cred.bearer ? cred.bearer : "none");
	else if (err_is_set(&err))
		snprintf(text, sizeof(text), "%s: %s", err_kind_name(err.kind), err.text);
	else
		return "wait";
	return text;
}

static unsigned generation(void)
{
	struct k8s_cred cred = {0};
	struct err err = ERR_INIT;

	cr_assert(k8s_auth_ready(a, &cred, &err), "%s", err.text);
	return cred.generation;
}

/* ---- files ---- */

static void token_file_auth(void)
{
	struct k8s_kubeconfig *k = conf_new("http://127.0.0.1");

	k->token_file = xstrdup(path_of("token"));
	a = k8s_auth_new(l, k);
}

Test(k8s_auth, a_token_file_is_read_again_when_it_changes)
{
	unsigned gen;

	write_file("token", " one\n");
	token_file_auth();
	cr_assert_str_eq(token(), "one");
	gen = generation();
	write_file("token", "two\n");
	cr_assert_str_eq(token(), "one", "looked at once a second at most");
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "two");
	cr_assert_neq(generation(), gen);
	gen = generation();
	write_file("token", "two");
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "two");
	cr_assert_eq(generation(), gen, "the same token is the same credential");
}

Test(k8s_auth, refused_looks_at_the_file_at_once)
{
	write_file("token", "one");
	token_file_auth();
	cr_assert_str_eq(token(), "one");
	write_file("token", "two");
	k8s_auth_refused(a);
	cr_assert_str_eq(token(), "two");
}

Test(k8s_auth, a_token_file_that_goes_bad_leaves_the_old_token_and_one_warning)
{
	static const char *const bad[] = {"", "\n\n", "a b", "a\nb", "\x01"};

	write_file("token", "one");
	token_file_auth();
	cr_assert_str_eq(token(), "one");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_file("token", bad[i]);
		clock_fake_advance(1000);
		cr_assert_str_eq(token(), "one");
	}
	unlink(path_of("token"));
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "one");
	cr_assert_eq(n_warnings, 1);
	write_file("token", "two");
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "two");
}

Test(k8s_auth, without_any_token_it_is_denied_and_says_which_file)
{
	token_file_auth();
	cr_assert(str_starts(token(), err_kind_name(ERR_DENIED)), "%s", token());
	cr_assert(strstr(token(), path_of("token")));
	write_file("token", "late");
	cr_assert_str_eq(token(), "late");
}

Test(k8s_auth, an_inline_token_serves_until_the_file_can_be_read)
{
	struct k8s_kubeconfig *k = conf_new("http://127.0.0.1");

	k->token = secret_new_copy("inline", 6);
	k->token_file = xstrdup(path_of("token"));
	a = k8s_auth_new(l, k);
	cr_assert_str_eq(token(), "inline");
	write_file("token", "file");
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "file");
	k8s_auth_refused(a);
	cr_assert_str_eq(token(), "file");
}

Test(k8s_auth, tls_files_are_read_again_when_they_change)
{
	struct k8s_kubeconfig *k = conf_new("https://127.0.0.1");
	unsigned gen;

	k->ca_file = xstrdup(path_of("ca.pem"));
	k->cert_file = xstrdup(path_of("cert.pem"));
	k->key_file = xstrdup(path_of("key.pem"));
	a = k8s_auth_new(l, k);
	write_file("ca.pem", cert_pem);
	write_file("cert.pem", cert_pem);
	cr_assert(strstr(token(), "key.pem"), "%s", token());
	write_file("key.pem", key_pem);
	cr_assert_str_eq(token(), "none");
	gen = generation();
	clock_fake_advance(1000);
	cr_assert_eq(generation(), gen);
	write_file("key.pem", "half writ");
	clock_fake_advance(1000);
	cr_assert_eq(generation(), gen);
	cr_assert_eq(n_warnings, 1);
	write_file("key.pem", key_pem);
	clock_fake_advance(1000);
	cr_assert_neq(generation(), gen);
}

Test(k8s_auth, data_insecure_and_none_at_all)
{
	struct k8s_kubeconfig *k = conf_new("https://127.0.0.1");
	struct k8s_cred cred = {0};
	struct err err = ERR_INIT;

	k->insecure = true;
	k->cert_data = secret_new_copy(cert_pem, strlen(cert_pem));
	k->key_data = secret_new_copy(key_pem, strlen(key_pem));
	a = k8s_auth_new(l, k);
	cr_assert(k8s_auth_ready(a, &cred, &err));
	cr_assert(cred.tls);
	k8s_auth_free(a);
	k = conf_new("https://127.0.0.1");
	k->ca_data = secret_new_copy("junk", 4);
	a = k8s_auth_new(l, k);
	cr_assert_not(k8s_auth_ready(a, &cred, &err));
	cr_assert_eq(err.kind, ERR_DENIED);
	k8s_auth_free(a);
	a = k8s_auth_new(l, conf_new("http://127.0.0.1"));
	err_clear(&err);
	cr_assert(k8s_auth_ready(a, &cred, &err));
	cr_assert_null(cred.tls);
	cr_assert_null(cred.bearer);
}

/* ---- plugins ---- */

struct waiting {
	bool done;
	char text[ERR_TEXT_SIZE + 2];
	struct op *op;
	bool free_all;
};

static void on_cred(void *arg, const struct err *err, const struct k8s_cred *cred)
{
	struct waiting *w = arg;

	w->done = true;
	if (err_is_set(err))
		snprintf(w->text, sizeof(w->text), "%s: %s", err_kind_name(err->kind), err->text);
	else
		snprintf(w->text, sizeof(w->text), "%s", cred->bearer ? cred->bearer : "none");
	if (w->free_all) {
		op_scope_cancel(&ops);
		k8s_auth_free(a);
		a = NULL;
	}
}

static void get(struct waiting *w)
{
	struct op *op = k8s_auth_get(a, &ops, on_cred, w);

	cr_assert_not(w->done, "done before the call returned");
	(void)op_hold(&w->op, op);
}

static const char *wait_text(struct waiting *w)
{
	for (int i = 0; i < 1000 && !w->done; i++)
		loop_turn(l, 100);
	cr_assert(w->done);
	return w->text;
}

static const char *fetch(void)
{
	static struct waiting w;

	memset(&w, 0, sizeof(w));
	get(&w);
	return wait_text(&w);
}

#define CREDENTIAL(status)                                                                                    \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{" status \
	"}}"

static void plugin(const char *script)
{
	struct k8s_kubeconfig *k = conf_new("https://127.0.0.1:6443");
	cleanup_free char *text =
		xasprintf("#!/bin/sh\ncd '%s'; echo run >>runs\n%s\n", dir, script);

	write_file("plugin", text);
	k->exec_argv = xcalloc(3, sizeof(char *));
	k->exec_argv[0] = xstrdup(path_of("plugin"));
	k->exec_argv[1] = xstrdup("an arg");
	k->exec_env = xcalloc(2, sizeof(char *));
	k->exec_env[0] = xstrdup("MY=env");
	k->exec_api_version = xstrdup("client.authentication.k8s.io/v1");
	k->ca_data = secret_new_copy(cert_pem, strlen(cert_pem));
	k->exec_cluster_info = true;
	a = k8s_auth_new(l, k);
}

static unsigned runs(void)
{
	FILE *f = fopen(path_of("runs"), "r");
	unsigned n = 0;
	int ch;

	while (f && (ch = fgetc(f)) != EOF)
		n += ch == '\n';
	if (f)
		fclose(f);
	return n;
}

Test(k8s_auth, a_plugin_gives_a_token_and_knows_what_it_needs)
{
	char info[4096] = "";
	FILE *f;

	plugin("echo \"$1 $MY $KUBERNETES_EXEC_INFO\" >info; cat answer");
	write_file("answer", CREDENTIAL("\"token\":\"tok\""));
	cr_assert_str_eq(token(), "wait");
	cr_assert_str_eq(fetch(), "tok");
	cr_assert_str_eq(token(), "tok");
	f = fopen(path_of("info"), "r");
	cr_assert(f && fgets(info, sizeof(info), f));
	fclose(f);
	cr_assert(
		str_starts(info,
			"an arg env {\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\""),
		"%s", info);
	cr_assert(strstr(info, "\"server\":\"https://127.0.0.1:6443\""));
	cr_assert(strstr(info, "\"certificate-authority-data\":\"LS0tLS1CRUdJTi"));
	cr_assert(strstr(info, "\"interactive\":false"));
	clock_fake_advance(86400000);
	cr_assert_str_eq(token(), "tok");
	cr_assert_eq(runs(), 1, "no expiry: once");
}

Test(k8s_auth, all_who_wait_share_one_child)
{
	struct waiting w[5] = {0};

	plugin("cat answer");
	write_file("answer", CREDENTIAL("\"token\":\"tok\""));
	for (size_t i = 0; i < ARRAY_LEN(w); i++)
		get(&w[i]);
	op_cancel(&w[2].op);
	for (size_t i = 0; i < ARRAY_LEN(w); i++)
		if (i != 2)
			cr_assert_str_eq(wait_text(&w[i]), "tok");
	cr_assert_not(w[2].done);
	cr_assert_eq(runs(), 1);
}

Test(k8s_auth, it_is_renewed_a_minute_before_it_ends_while_the_old_one_serves)
{
	plugin("cat answer");
	write_file("answer",
		CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"2027-01-15T08:10:00Z\""));
	cr_assert_str_eq(fetch(), "one");
	write_file("answer",
		CREDENTIAL(
			"\"token\":\"two\",\"expirationTimestamp\":\"2027-01-15T09:10:00+00:00\""));
	clock_fake_advance(539000);
	cr_assert_str_eq(token(), "one");
	cr_assert_eq(runs(), 1);
	clock_fake_advance(1000);
	cr_assert_str_eq(token(), "one", "59 s left: it serves while the plugin runs");
	for (int i = 0; i < 1000 && strcmp(token(), "two") != 0; i++)
		loop_turn(l, 100);
	cr_assert_str_eq(token(), "two");
	cr_assert_eq(runs(), 2);
	clock_fake_advance(4000000);
	cr_assert_str_eq(token(), "wait", "past its end nothing serves");
}

Test(k8s_auth, a_renewal_with_a_bad_key_pair_leaves_the_credential_in_use)
{
	plugin("cat answer");
	write_file("answer",
		CREDENTIAL("\"token\":\"one\",\"expirationTimestamp\":\"2027-01-15T08:10:00Z\""));
	cr_assert_str_eq(fetch(), "one");
	write_file("answer",
		CREDENTIAL(
			"\"token\":\"two\",\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\""));
	clock_fake_advance(540000);
	for (int i = 0; i < 1000 && n_warnings == 0; i++) {
		cr_assert_str_eq(token(), "one");
		loop_turn(l, 100);
	}
	cr_assert_eq(n_warnings, 1);
	cr_assert_str_eq(token(), "one");
	clock_fake_advance(60000);
	cr_assert_str_eq(token(), "wait", "past its end nothing serves");
}

Test(k8s_auth, a_short_lived_credential_does_not_spin)
{
	plugin("cat answer");
	write_file("answer",
		CREDENTIAL("\"token\":\"short\",\"expirationTimestamp\":\"2027-01-15T08:00:30Z\""));
	for (int i = 0; i < 5; i++)
		cr_assert_str_eq(fetch(), "short");
	loop_drain(l);
	cr_assert_eq(runs(), 1);
}

Test(k8s_auth, after_a_401_the_plugin_runs_again_but_not_at_once)
{
	plugin("cat answer");
	write_file("answer", CREDENTIAL("\"token\":\"one\""));
	cr_assert_str_eq(fetch(), "one");
	write_file("answer", CREDENTIAL("\"token\":\"two\""));
	k8s_auth_refused(a);
	cr_assert_str_eq(token(), "one", "it is fresh: others were refused with the one before");
	clock_fake_advance(1000);
	k8s_auth_refused(a);
	cr_assert_str_eq(token(), "wait");
	cr_assert_str_eq(fetch(), "two");
	cr_assert_eq(runs(), 2);
}

Test(k8s_auth, a_plugin_may_give_a_client_certificate)
{
	FILE *f;
	const char *parts[] = {cert_pem, key_pem};

	plugin("cat answer");
	f = fopen(path_of("answer"), "w");
	fputs("{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{",
		f);
	for (int i = 0; i < 2; i++) {
		fprintf(f, "%s\"%s\":\"", i ? "," : "",
			i ? "clientKeyData" : "clientCertificateData");
		for (const char *s = parts[i]; *s; s++)
			*s == '\n' ? fputs("\\n", f) : fputc(*s, f);
		fputs("\"", f);
	}
	fputs("}}", f);
	fclose(f);
	cr_assert_str_eq(fetch(), "none");
}

static const struct {
	const char *script, *says;
} bad[] = {
	{"echo sorry >&2; exit 3", "sorry"},
	{"exit 0", ""},
	{"echo junk", "its output"},
	{"echo '[]'", "did not print an ExecCredential"},
	{"echo '{\"kind\":\"ExecCredential\"}'", "did not print an ExecCredential with a status"},
	{"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"status\":{\"token\":\"x\"}}'",
		"does not have apiVersion"},
	{"echo '" CREDENTIAL("") "'", "neither a token"},
	{"echo '" CREDENTIAL("\"token\":5") "'", "neither a token"},
	{"printf %s '" CREDENTIAL("\"token\":\"x\\u000d\\u000aX-Remote-User: admin\"") "'",
		"its token contains a blank"},
	{"printf %s '" CREDENTIAL("\"token\":\"x y\"") "'", "its token contains a blank"},
	{"printf %s '" CREDENTIAL("\"token\":\"x\\u00e4\"") "'", "its token contains a blank"},
	{"echo '" CREDENTIAL("\"clientCertificateData\":\"x\"") "'", "must be set together"},
	{"echo '" CREDENTIAL("\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"") "'",
		"client certificate"},
	{"echo '" CREDENTIAL("\"token\":\"x\",\"expirationTimestamp\":\"soon\"") "'", "RFC 3339"},
	{"echo '" CREDENTIAL(
		 "\"token\":\"x\",\"expirationTimestamp\":\"2027-01-15T07:59:59Z\"") "'",
		"already expired"},
	{"yes | head -c 300000", ""},
};

Test(k8s_auth, what_a_plugin_does_wrong_is_told)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const char *text;
		unsigned before;

		plugin(bad[i].script);
		text = fetch();
		cr_assert(str_starts(text, err_kind_name(i == 0 ? ERR_TRANSIENT : ERR_DENIED)),
			"%s: %s", bad[i].script, text);
		cr_assert(strstr(text, bad[i].says), "%s: \"%s\" lacks \"%s\"", bad[i].script, text,
			bad[i].says);
		before = runs();
		cr_assert_str_eq(token(), text, "the same error for a second");
		clock_fake_advance(1000);
		cr_assert_str_eq(token(), "wait");
		cr_assert_eq(runs(), before);
		k8s_auth_free(a);
	}
	a = NULL;
}

Test(k8s_auth, a_plugin_that_is_not_there_is_told)
{
	plugin("");
	unlink(path_of("plugin"));
	cr_assert(str_starts(fetch(), err_kind_name(ERR_DENIED)), "%s", fetch());
	cr_assert(strstr(fetch(), "plugin"));
}

Test(k8s_auth, done_may_free_it_all)
{
	struct waiting w[3] = {0};

	plugin("cat answer");
	write_file("answer", CREDENTIAL("\"token\":\"tok\""));
	for (size_t i = 0; i < ARRAY_LEN(w); i++) {
		w[i].free_all = true;
		get(&w[i]);
	}
	while (a)
		loop_turn(l, 100);
	cr_assert_eq(w[0].done + w[1].done + w[2].done, 1);
}

Test(k8s_auth, free_ends_a_running_plugin)
{
	struct waiting w = {0};
	siginfo_t end = {0};

	plugin("exec sleep 1000");
	get(&w);
	loop_turn(l, 0);
	loop_turn(l, 0);
	cr_assert_eq(
		waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT), 0, "no plugin was started");
	cr_assert_eq(end.si_pid, 0, "the plugin ended by itself");
	op_cancel(&w.op);
	k8s_auth_free(a);
	a = NULL;
	/* The loop may have waited for it already. */
	if (waitid(P_ALL, 0, &end, WEXITED | WNOWAIT) == 0)
		cr_assert_eq(end.si_code, CLD_KILLED);
	else
		cr_assert_eq(errno, ECHILD);
}
