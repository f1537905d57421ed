/* SPDX-License-Identifier: MIT */
/* tecctl bootstrap check: what report/bootstrap finds in the objects, and what only requests can
 * show: certificates, and the three servers at the addresses that nodes use, in the order in
 * which a node needs them. */
#include "config.h"

#include "tool.h"
#include "tool_check.h"

#include <stdio.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/render/ignition.h"
#include "tec/report/bootstrap.h"
#include "tec/report/endpoints.h"
#include "tec/report/text.h"

#define ASK_MS 10000

struct asked {
	struct tool *t;
	struct err err;
	int status;
};

/* Any HTTP status is an answer; err is set only if there was none. */
static void on_done(void *arg, const struct err *err, const struct httpc_answer *answer)
{
	struct asked *a = arg;

	if (err && err_is_set(err))
		a->err = *err;
	else
		a->status = answer->status;
	tool_done(a->t);
}

/* Send the endpoint's harmless request and report the answer. -1: interrupted. */
static int ask(
	struct tool *t, const struct report_endpoint *e, struct report_findings *f, struct err *err)
{
	struct asked a = {.t = t, .err = ERR_INIT};
	struct httpc_tls *tls = NULL;
	struct httpc_request req = {.method = e->method,
		.url = e->url,
		.deadline_ms = ASK_MS,
		.connect_ms = ASK_MS,
		.once = true};

	if (e->secret) {
		tls = httpc_tls_new(e->ca_pem.data, e->ca_pem.len, NULL, 0, NULL, 0, NULL, &a.err);
		if (!tls) {
			report_bootstrap_answer(e, 0, &a.err, f);
			return 0;
		}
	}
	req.tls = tls;
	(void)httpc_start(t->http, &t->ops, &req, NULL, on_done, &a);
	if (tls)
		httpc_tls_unref(tls);
	if (tool_run(t, err) < 0)
		return -1;
	report_bootstrap_answer(e, a.status, &a.err, f);
	return 0;
}

/* Report a CA that cannot be read. If these credentials may not read the Secret, that is only a
 * note: the Secret may be fine. So is a ca.crt that is absent where nodes need none. */
static void found_no_ca(
	struct report_findings *f, const char *what, const char *of, bool needed, struct err *err)
{
	bool unknown = err->kind == ERR_DENIED, fine = !needed && err->kind == ERR_NOT_FOUND;

	report_found(f, unknown || fine ? REPORT_IS_NOTE : REPORT_IS_NO, what,
		unknown ? NULL
		: fine  ? "nodes verify it with the CAs of their system; if they cannot, put its CA into the Secret as ca.crt"
			: "put the CA into the Secret as ca.crt",
		"%s: %s", of, err->text);
	err_clear(err);
}

/* The operator first: without it, no condition below can be trusted to be current. Then the CAs of
 * the additional servers: without its CA a server cannot be given to nodes. Last, certificate, CA
 * and answer of each endpoint; one without an address is reported with the addresses. */
static int check_all(struct tool *t, const struct report_world *w, const struct model_cluster *c,
	struct report_findings *f, struct err *err)
{
	static const unsigned fields[REPORT_N_ENDPOINTS] = {
		[REPORT_REGISTRATION] = MODEL_TLS_REGISTER,
		[REPORT_KEY_REGISTRATION] = MODEL_TLS_REGISTER_KEY,
		[REPORT_KBS] = MODEL_TLS_TRUSTEE,
	};
	struct report_endpoint e[REPORT_N_ENDPOINTS];
	struct model_tls_use use;
	int rc = 0;

	tool_check_operator(t, f, report_cluster(w), err);
	report_bootstrap(w, c, f);
	for (unsigned i = 0; i < c->n_servers && !t->interrupted; i++) {
		cleanup_strbuf struct strbuf pem = STRBUF_INIT;

		if (c->server_ca[i] && tool_secret_ca(t, c, c->server_ca[i], &pem, err) < 0)
			found_no_ca(f, "trusteeServers", c->server_addr[i], true, err);
	}
	report_endpoints(c, e);
	for (int i = 0; i < REPORT_N_ENDPOINTS && rc == 0 && !t->interrupted; i++) {
		const char *const names[] = {e[i].host, NULL};
		cleanup_strbuf struct strbuf cert = STRBUF_INIT;

		if (!e[i].url || !e[i].host)
			continue;
		(void)model_tls_use(c, fields[i], &use);
		if (tool_check_certificate(t, f, &use, e[i].name, &cert, err))
			report_bootstrap_host(
				&e[i], pki_issue_names(strbuf_str(&cert), cert.len, names), f);
		if (t->interrupted)
			break;
		if (e[i].secret && tool_secret_ca(t, c, e[i].secret, &e[i].ca_pem, err) < 0)
			found_no_ca(f, e[i].name, e[i].url, use.needs_ca, err);
		else
			rc = ask(t, &e[i], f, err);
	}
	report_endpoints_fini(e);
	return rc == 0 && t->interrupted ? err_set(err, ERR_TRANSIENT, "interrupted") : rc;
}

/* Print the script for --from-node. It needs every endpoint, so a missing one is an error. */
static int print_script(struct tool *t, const struct model_cluster *c, struct err *err)
{
	struct report_endpoint e[REPORT_N_ENDPOINTS];
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int rc = 0;

	report_endpoints(c, e);
	for (int i = 0; i < REPORT_N_ENDPOINTS && rc == 0; i++) {
		if (!e[i].url)
			rc = err_set(err, ERR_NOT_FOUND,
				"%s has no usable address; next step: tecctl bootstrap check",
				e[i].name);
		else
			rc = e[i].secret ? tool_secret_ca(t, c, e[i].secret, &e[i].ca_pem, err) : 0;
	}
	if (rc == 0)
		rc = report_endpoints_script(e, &out, err);
	if (rc == 0)
		fputs(strbuf_str(&out), stdout);
	report_endpoints_fini(e);
	return rc;
}

/* ---- the servers that release disk keys */

/* Read the CA of one server under the rules of the Ignition configuration: no https address
 * without its CA, and no plain text if the cluster refuses it. *out: the CA; NULL: plain HTTP. */
static int read_server(struct tool *t, const struct model_cluster *c, const char *addr,
	const char *secret, struct strbuf *pem, const char **out, struct err *err)
{
	if (!secret && c->plaintext == MODEL_PLAINTEXT_REFUSE)
		return err_set(err, ERR_INVALID,
			"%.200s has no Secret with a CA, and spec.trustee.plaintext is Refuse; next step: tecctl bootstrap check",
			addr);
	if (!secret)
		return 0;
	if (tool_secret_ca(t, c, secret, pem, err) < 0)
		return err_wrap(err, "%.80s", addr);
	*out = strbuf_str(pem);
	return 0;
}

/* Print the list of servers in the format of the pin's configuration, which tec-node rebind-servers
 * reads. publicTrusteeAddr comes first, as nodes try it first. */
int tool_bootstrap_servers(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = tool_load_cluster(t, 0, &w, err);
	const struct model_cluster *c = o ? model_cluster(o) : NULL;
	struct strbuf pem[1 + MODEL_CLUSTER_SERVERS_MAX] = {STRBUF_INIT}; /* what ca points to */
	struct render_ignition_ca ca = {NULL};
	cleanup_json struct json_object *list = NULL;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int rc;

	if (!c)
		return -1;
	if (!c->public_trustee_addr)
		return err_set(err, ERR_INVALID,
			"spec.publicTrusteeAddr is not set; next step: tecctl bootstrap check");
	rc = read_server(
		t, c, c->public_trustee_addr, c->trustee_secret, &pem[0], &ca.trustee, err);
	for (unsigned i = 0; i < c->n_servers && rc == 0; i++)
		rc = read_server(
			t, c, c->server_addr[i], c->server_ca[i], &pem[1 + i], &ca.server[i], err);
	if (rc == 0) {
		list = json_add(json_obj(), "servers", render_ignition_servers(c, &ca));
		report_json(&out, list);
		fputs(strbuf_str(&out), stdout);
	}
	for (unsigned i = 0; i < ARRAY_LEN(pem); i++)
		strbuf_fini(&pem[i]);
	return rc;
}

/* ---- the check */

/* Read the objects once; requests to the servers follow. */
int tool_bootstrap_check(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = NULL;
	struct report_findings f;

	if (conf_bool(t->conf, "from-node") && t->output != TOOL_TEXT)
		return err_set(err, ERR_INVALID,
			"option --output is not available with --from-node, which prints a script");
	o = tool_load_cluster(t, 1u << REPORT_IMAGE, &w, err);
	if (!o)
		return -1;
	if (conf_bool(t->conf, "from-node"))
		return print_script(t, model_cluster(o), err);
	if (tool_findings_start(t, &f, err) < 0)
		return -1;
	return tool_findings_end(t, &f, check_all(t, &w, model_cluster(o), &f, err));
}

/* ---- the first configuration of a node */

/* Render the URL and CA from the TrustedExecutionCluster. No request goes there: that would create
 * a Machine. Without a TLS Secret the URL is plain HTTP, and no CA is needed. Warnings go to
 * standard error, as standard output is the configuration. */
int tool_ignition(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_strbuf struct strbuf ca = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_json struct json_object *config = NULL;
	cleanup_free char *url = NULL;
	cleanup_kobj const struct kobj *o = tool_load_cluster(t, 0, &w, err);
	const struct model_cluster *c = o ? model_cluster(o) : NULL;

	if (!c || !(url = report_register_url(c, conf_str(t->conf, "address"), err)))
		return -1;
	if (c->reg_mode == MODEL_REG_MANUAL)
		fputs("tecctl: nodes will be refused: spec.registration.mode is Manual, so an administrator must create each Machine\n",
			stderr);
	else if (c->reg_mode == MODEL_REG_TOKEN)
		fputs("tecctl: nodes will be refused without a token: add ignition.config.merge[0].httpHeaders with Authorization: Bearer and a token made with spec.registration.tokenSecret\n",
			stderr);
	if (conf_bool(t->conf, "url")) {
		tool_say(stdout, "%s", url);
		return 0;
	}
	if (c->register_secret && tool_secret_ca(t, c, c->register_secret, &ca, err) < 0)
		return -1;
	config = render_ignition_first(url, c->register_secret ? strbuf_str(&ca) : NULL);
	tool_document(t, config, &out);
	fputs(strbuf_str(&out), stdout);
	return 0;
}
