/* SPDX-License-Identifier: MIT */
/*
 * tec-test-kbs: the embedded broker as a process of its own, for the end-to-end tests where no
 * Trustee can be had. What it stores is gone when it ends. It prints one line with its ports when
 * it is ready; SIGTERM ends it. Nodes attest when it has a signer. Not installed, and not a substitute
 * for a real broker.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/conf.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/loop/signal.h"
#include "tec/net/tls.h"

#include "kbs-quirks.h"
#include "kbs-tool.h"

#define MIB ((size_t)1 << 20)

static const struct conf_option options[] = {
	{"listen", CONF_STRING, "ADDR:PORT", "127.0.0.1:0", .help = "Where the API is served."},
	{"admin-key", CONF_STRING, "FILE", NULL,
		.help = "Public key of the admin's tokens, Ed25519, PEM."},
	{"tls-cert", CONF_STRING, "FILE", NULL,
		.help = "Certificate chain, PEM; plain HTTP without it."},
	{"tls-key", CONF_STRING, "FILE", NULL, .help = "Its private key, PEM."},
	{"issuer", CONF_STRING, "NAME", NULL, .help = "Required iss claim of a token."},
	{"audience", CONF_STRING, "NAME", NULL, .help = "Required aud claim of a token."},
	{"trustee-quirks", CONF_BOOL, NULL, "false", .help = "Refuse as Trustee does: mostly 401."},
	{"from-dir", CONF_STRING, "DIR", NULL,
		.help = "Serve what the files below DIR say, as delivered by volumes; read again for each dump."},
	{"signer", CONF_STRING, "FILE", NULL,
		.help = "Private key of attestation tokens, P-256, PEM; without it nodes cannot attest."},
	{"policies", CONF_STRING, "DIR", NULL,
		.help = "Where the operator's policies are: tpm.rego, resource.rego and the shared ones."},
	{"sample", CONF_BOOL, NULL, "false", .help = "Sample evidence may attest."},
	{"session-s", CONF_STRING, "SECONDS", "300", .help = "How long a handshake may take."},
	{"listen-debug", CONF_STRING, "ADDR:PORT", NULL,
		.help = "Loopback: /dump, /counts, /lose."},
	{"payload-mib", CONF_STRING, "N", "8", .help = "Largest body."},
	{"help", CONF_ACTION, .help = "Print this text."},
};
static const struct conf_program program = {.name = "tec-test-kbs",
	.usage = "[OPTION]...",
	.options = options,
	.n_options = ARRAY_LEN(options)};

static int load_tls(struct tool *t, const struct conf *conf, struct err *err)
{
	const char *cert_file = conf_str(conf, "tls-cert"), *key_file = conf_str(conf, "tls-key");
	cleanup_free char *cert = NULL, *key = NULL;
	cleanup_tls_ctx struct tls_ctx *tls = NULL;
	size_t cert_len = 0, key_len = 0;

	if (!cert_file && !key_file)
		return 0;
	if (!cert_file || !key_file)
		return err_set(err, ERR_INVALID, "--tls-cert and --tls-key must be given together");
	cert = file_read(cert_file, TOOL_FILE_MAX, &cert_len, NULL, err);
	if (!cert)
		return -1;
	key = file_read(key_file, TOOL_FILE_MAX, &key_len, NULL, err);
	if (!key)
		return -1;
	tls = tls_ctx_new(cert, cert_len, key, key_len, err);
	secret_wipe(key, key_len);
	if (!tls)
		return -1;
	httpd_set_tls(broker_kbsd_httpd(t->kbsd), tls);
	return 0;
}

static int load_policy(
	struct tool *t, const char *dir, const char *name, struct broker_policy p, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	size_t len;
	char *text = file_read(path, TOOL_FILE_MAX, &len, NULL, err);

	if (!text)
		return -1;
	p.text = text;
	t->policies[t->n_policies++] = p;
	return 0;
}

/* The same with the line that the operator changes where PCR 7 is required, or a disk key released once
 * per boot. */
static int add_strict(struct tool *t, struct err *err)
{
	struct broker_policy p = t->policies[t->n_policies - 1];
	const char *name = p.resource ? "once_per_boot" : "pcr7_required";
	cleanup_free char *without = xasprintf("\n%s := false\n", name);
	const char *at = strstr(p.text, without);

	if (!at)
		return err_set(err, ERR_INVALID, "a policy does not say %s := false", name);
	p.text = xasprintf(
		"%.*s\n%s := true\n%s", (int)(at - p.text), p.text, name, at + strlen(without));
	p.require_pcr7 = !p.resource;
	p.once_per_boot = p.resource;
	t->policies[t->n_policies++] = p;
	return 0;
}

static void on_judged(void *arg, const struct broker_judged *j)
{
	fprintf(stderr, "judged flaw=%s why=\"%s\" machine=%s\n", rats_flaw_name(j->flaw),
		j->why ? j->why : "", j->machine ? j->machine : "");
}

static int start_attest(struct tool *t, const struct conf *conf, struct err *err)
{
	struct broker_attest_conf a = {.store = t->store,
		.policies = t->policies,
		.token_s = 300,
		.sessions = 10000,
		.sessions_per_source = 1024,
		.sample = conf_bool(conf, "sample"),
		.on_judged = on_judged};
	const char *dir = conf_str(conf, "policies"), *signer = conf_str(conf, "signer");
	cleanup_secret struct secret *pem = NULL;
	uint64_t s;
	char *text;
	size_t len;

	if (!signer)
		return 0;
	if (!dir)
		return err_set(err, ERR_INVALID, "--signer needs --policies");
	text = file_read(signer, TOOL_FILE_MAX, &len, NULL, err);
	if (!text)
		return -1;
	pem = secret_new_copy(text, len);
	file_wipe(text, len);
	t->signer = pki_key_from_pem(pem, err);
	if (!t->signer || conf_number(conf, "session-s", 1, 86400, &s, err) < 0)
		return -1;
	a.session_ms = (uint32_t)s * 1000;
	if (load_policy(t, dir, "tpm.rego", (struct broker_policy){0}, err) < 0 ||
		add_strict(t, err) < 0 ||
		load_policy(t, dir, "tpm-shared.rego",
			(struct broker_policy){.policy = RATS_POLICY_SHARED}, err) < 0 ||
		add_strict(t, err) < 0 ||
		load_policy(t, dir, "resource.rego", (struct broker_policy){.resource = true},
			err) < 0 ||
		add_strict(t, err) < 0 ||
		load_policy(t, dir, "resource-shared.rego",
			(struct broker_policy){.resource = true, .policy = RATS_POLICY_SHARED},
			err) < 0 ||
		add_strict(t, err) < 0)
		return -1;
	a.n_policies = t->n_policies;
	a.signer = t->signer;
	t->attest = broker_attest_new(&a);
	return 0;
}

static int start(struct tool *t, const struct conf *conf, struct err *err)
{
	const char *debug = conf_str(conf, "listen-debug"), *key = conf_str(conf, "admin-key");
	struct broker_kbsd_conf k = {.name = "kbs", .on_answer = tool_answer, .arg = t};
	cleanup_free char *pem = NULL;
	size_t len;
	uint64_t mib;

	if (conf_number(conf, "payload-mib", 1, 32, &mib, err) < 0)
		return -1;
	if (!key)
		return err_set(err, ERR_INVALID, "--admin-key is missing");
	pem = file_read(key, TOOL_FILE_MAX, &len, NULL, err);
	t->admin_key = pem ? jws_public_from_pem(pem, len, err) : NULL;
	if (!t->admin_key || tool_new_store(t, err) < 0)
		return -1;
	t->auth = (struct broker_auth){.key = t->admin_key,
		.issuer = conf_str(conf, "issuer"),
		.audience = conf_str(conf, "audience")};
	t->auth.acls = broker_admin_acls(&t->auth.n_acls);
	t->quirks = conf_bool(conf, "trustee-quirks");
	k.error_body = t->quirks ? quirks_error_body : NULL;
	k.max_body = mib * MIB;
	if (start_attest(t, conf, err) < 0)
		return -1;
	k.attest = t->attest;
	t->admin = (struct broker_admin){.store = t->store,
		.policies = t->n_policies ? t->policies : NULL,
		.n_policies = t->n_policies,
		.check = broker_auth_check,
		.arg = &t->auth};
	k.admin = &t->admin;
	t->kbsd = broker_kbsd_new(t->loop, &k);
	if (load_tls(t, conf, err) < 0 ||
		httpd_listen(broker_kbsd_httpd(t->kbsd), conf_str(conf, "listen"), err) < 0)
		return -1;
	return debug ? tool_debug_listen(t, debug, err) : 0;
}

static void on_term(int signo, void *arg)
{
	loop_stop(arg);
}

static int run(const struct conf *conf)
{
	struct tool *t = xcalloc(1, sizeof(*t));
	struct loop_signal *term, *intr;
	struct err err = ERR_INIT;
	int status = 0;

	t->loop = loop_new();
	t->from_dir = conf_str(conf, "from-dir");
	t->start_ms = clock_boot_ms();
	term = loop_signal_new(t->loop, SIGTERM, on_term, t->loop);
	intr = loop_signal_new(t->loop, SIGINT, on_term, t->loop);
	if (start(t, conf, &err) < 0) {
		fprintf(stderr, "tec-test-kbs: %s\n", err.text);
		status = 2;
	} else {
		printf("listening on port %u, debug port %u\n",
			httpd_port(broker_kbsd_httpd(t->kbsd)),
			t->debug ? httpd_port(t->debug) : 0);
		fflush(stdout);
		loop_run(t->loop);
	}
	httpd_free(t->debug);
	broker_kbsd_free(t->kbsd);
	broker_attest_free(t->attest);
	for (size_t i = 0; i < t->n_policies; i++)
		free((char *)t->policies[i].text);
	pki_key_free(t->signer);
	jws_public_free(t->admin_key);
	broker_store_free(t->store);
	tool_log_free(t);
	loop_signal_free(term);
	loop_signal_free(intr);
	loop_free(t->loop);
	free(t);
	return status;
}

int main(int argc, char *argv[])
{
	struct conf *conf = conf_new(&program);
	enum conf_result start;
	int status = 0;

	secret_process_init();
	log_setup(LOG_WARN, LOG_TEXT);
	start = conf_start(conf, argc, argv);
	if (start == CONF_BAD)
		status = 2;
	else if (start == CONF_RUN)
		status = run(conf);
	conf_free(conf);
	metric_reset_all();
	return status;
}
