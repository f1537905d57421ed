/* SPDX-License-Identifier: MIT */
/* tecctl bootstrap check: what show/bootstrap finds in the objects, and what only requests can
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
#include "tec/show/bootstrap.h"
#include "tec/show/text.h"

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
	struct tool *t, const struct show_endpoint *e, struct show_findings *f, struct err *err)
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
			show_bootstrap_answer(e, 0, &a.err, f);
			return 0;
		}
	}
	req.tls = tls;
	(void)httpc_start(t->http, &t->ops, &req, NULL, on_done, &a);
	if (tls)
		httpc_tls_unref(tls);
	if (tool_run(t, err) < 0)
		return -1;
	show_bootstrap_answer(e, a.status, &a.err, f);
	return 0;
}

/* Read the CA that nodes trust for this endpoint, certificates only. */
static int read_ca(
	struct tool *t, const struct model_cluster *c, struct show_endpoint *e, struct err *err)
{
	return e->secret ? tool_secret_ca(t, c, e->secret, &e->ca_pem, err) : 0;
}

/* Report a CA that cannot be read. If these credentials may not read the Secret, that is only a
 * note: the Secret may be fine. */
static void found_no_ca(struct show_findings *f, const char *what, const char *of, struct err *err)
{
	bool unknown = err->kind == ERR_DENIED;

	show_found(f, unknown ? SHOW_IS_NOTE : SHOW_IS_NO, what,
		unknown ? NULL : "put the CA into the Secret as ca.crt", "%s: %s", of, err->text);
	err_clear(err);
}

/* Check certificate, CA and answer of one endpoint. One without an address is reported with the
 * addresses. -1: interrupted. */
static int check_endpoint(struct tool *t, const struct model_cluster *c, struct show_endpoint *e,
	struct show_findings *f, struct err *err)
{
	const char *const names[] = {e->host, NULL};
	cleanup_strbuf struct strbuf cert = STRBUF_INIT;

	if (!e->url || !e->host)
		return 0;
	if (tool_check_certificate(t, f, e->secret, e->name, &cert, err))
		show_bootstrap_host(e, pki_issue_names(strbuf_str(&cert), cert.len, names), f);
	if (t->interrupted)
		return err_set(err, ERR_TRANSIENT, "interrupted");
	if (read_ca(t, c, e, err) < 0) {
		found_no_ca(f, e->name, e->url, err);
		return 0;
	}
	return ask(t, e, f, err);
}

/* Check the CAs of the additional servers: without its CA a server cannot be given to nodes. */
static void check_servers(
	struct tool *t, const struct model_cluster *c, struct show_findings *f, struct err *err)
{
	for (unsigned i = 0; i < c->n_servers && !t->interrupted; i++) {
		cleanup_strbuf struct strbuf pem = STRBUF_INIT;

		if (c->server_ca[i] && tool_secret_ca(t, c, c->server_ca[i], &pem, err) < 0)
			found_no_ca(f, "trusteeServers", c->server_addr[i], err);
	}
}

/* The operator first: without it, no condition below can be trusted to be current. */
static int check_all(struct tool *t, const struct show_world *w, const struct model_cluster *c,
	struct show_findings *f, struct err *err)
{
	struct show_endpoint e[SHOW_N_ENDPOINTS];
	int rc = 0;

	tool_check_operator(t, f, show_cluster(w), err);
	show_bootstrap(w, c, f);
	check_servers(t, c, f, err);
	if (t->interrupted)
		return err_set(err, ERR_TRANSIENT, "interrupted");
	show_endpoints(c, e);
	for (int i = 0; i < SHOW_N_ENDPOINTS && rc == 0; i++)
		rc = check_endpoint(t, c, &e[i], f, err);
	show_endpoints_fini(e);
	return rc;
}

/* Print the script for --from-node. It needs every endpoint, so a missing one is an error. */
static int print_script(struct tool *t, const struct model_cluster *c, struct err *err)
{
	struct show_endpoint e[SHOW_N_ENDPOINTS];
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	int rc = 0;

	show_endpoints(c, e);
	for (int i = 0; i < SHOW_N_ENDPOINTS && rc == 0; i++) {
		if (!e[i].url)
			rc = err_set(err, ERR_NOT_FOUND,
				"%s has no usable address; next step: tecctl bootstrap check",
				e[i].name);
		else
			rc = read_ca(t, c, &e[i], err);
	}
	if (rc == 0)
		rc = show_endpoints_script(e, &out, err);
	if (rc == 0)
		fputs(strbuf_str(&out), stdout);
	show_endpoints_fini(e);
	return rc;
}

/* ---- the servers that release disk keys */

struct servers {
	struct strbuf pem[1 + MODEL_CLUSTER_SERVERS_MAX]; /* owned: the CAs that ca points to */
	struct render_ignition_ca ca;
};

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

/* The first server is publicTrusteeAddr, as nodes try it first. */
static int read_servers(
	struct tool *t, const struct model_cluster *c, struct servers *s, struct err *err)
{
	if (!c->public_trustee_addr)
		return err_set(err, ERR_INVALID,
			"spec.publicTrusteeAddr is not set; next step: tecctl bootstrap check");
	if (read_server(t, c, c->public_trustee_addr, c->trustee_secret, &s->pem[0], &s->ca.trustee,
		    err) < 0)
		return -1;
	for (unsigned i = 0; i < c->n_servers; i++)
		if (read_server(t, c, c->server_addr[i], c->server_ca[i], &s->pem[1 + i],
			    &s->ca.server[i], err) < 0)
			return -1;
	return 0;
}

/* In the format of the pin's configuration, which rebind-servers reads. */
static void print_servers(const struct model_cluster *c, const struct servers *s)
{
	cleanup_json struct json_object *o =
		json_add(json_obj(), "servers", render_ignition_servers(c, &s->ca));
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	show_json(&out, o);
	fputs(strbuf_str(&out), stdout);
}

/* Print the list of servers as tec-node rebind-servers reads it. */
int tool_bootstrap_servers(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = tool_load_cluster(t, 0, &w, err);
	struct servers s = {.ca = {NULL}};
	int rc;

	if (!o)
		return -1;
	rc = read_servers(t, model_cluster(o), &s, err);
	if (rc == 0)
		print_servers(model_cluster(o), &s);
	for (unsigned i = 0; i < ARRAY_LEN(s.pem); i++)
		strbuf_fini(&s.pem[i]);
	return rc;
}

/* ---- the check */

/* Read the objects once; requests to the servers follow. */
int tool_bootstrap_check(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = NULL;
	struct show_findings f;

	if (conf_bool(t->conf, "from-node") && t->output != TOOL_TEXT)
		return err_set(err, ERR_INVALID,
			"option --output is not available with --from-node, which prints a script");
	o = tool_load_cluster(t, 1u << SHOW_IMAGE, &w, err);
	if (!o)
		return -1;
	if (conf_bool(t->conf, "from-node"))
		return print_script(t, model_cluster(o), err);
	if (tool_findings_start(t, &f, err) < 0)
		return -1;
	return tool_findings_end(t, &f, check_all(t, &w, model_cluster(o), &f, err));
}
