/* SPDX-License-Identifier: MIT */
/* What show/bootstrap judges, and what only asking shows: certificates, and the three servers at the
 * addresses that nodes use, in the order in which a node needs them. */
#include "config.h"

#include "tool.h"
#include "tool_secret.h"

#include <stdio.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/pki/issue.h"
#include "tec/show/bootstrap.h"

#define ASK_MS 10000

struct asked {
	struct tool *t;
	struct err err;
	int status;
	bool done;
};

static void on_done(void *arg, const struct err *err, const struct httpc_answer *answer)
{
	struct asked *a = arg;

	if (err && err_is_set(err))
		a->err = *err;
	else
		a->status = answer->status;
	a->done = true;
	loop_stop(a->t->loop);
}

/* -1: interrupted. */
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
	if (tool_run(t, &a.done, err) < 0)
		return -1;
	show_bootstrap_answer(e, a.status, &a.err, f);
	return 0;
}

/* What nodes trust for it, certificates alone. */
static int read_ca(
	struct tool *t, const struct model_cluster *c, struct show_endpoint *e, struct err *err)
{
	return e->secret ? tool_secret_ca(t, c, e->secret, &e->ca_pem, err) : 0;
}

/* A Secret that these credentials may not read is not known to be wrong. */
static void found_no_ca(struct show_findings *f, const char *what, const char *of, struct err *err)
{
	bool unknown = err->kind == ERR_DENIED;

	show_found(f, unknown ? SHOW_IS_NOTE : SHOW_IS_NO, what,
		unknown ? NULL : "put the CA into the Secret as ca.crt", "%s: %s", of, err->text);
	err_clear(err);
}

/* -1: interrupted. What has no address is judged with the addresses. */
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

/* The CAs of further servers: nodes cannot be told of one that is not there. */
static void check_servers(
	struct tool *t, const struct model_cluster *c, struct show_findings *f, struct err *err)
{
	for (unsigned i = 0; i < c->n_servers && !t->interrupted; i++) {
		cleanup_strbuf struct strbuf pem = STRBUF_INIT;

		if (c->server_ca[i] && tool_secret_ca(t, c, c->server_ca[i], &pem, err) < 0)
			found_no_ca(f, "trusteeServers", c->server_addr[i], err);
	}
}

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

int tool_bootstrap_check(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_kobj const struct kobj *o = NULL;
	struct show_findings f;

	if (conf_bool(t->conf, "from-node") && t->output != TOOL_TEXT)
		return err_set(err, ERR_INVALID, "option --output: --from-node prints a script");
	o = tool_load_cluster(t, 1u << SHOW_IMAGE, &w, err);
	if (!o)
		return -1;
	if (conf_bool(t->conf, "from-node"))
		return print_script(t, model_cluster(o), err);
	if (tool_findings_start(t, &f, err) < 0)
		return -1;
	return tool_findings_end(t, &f, check_all(t, &w, model_cluster(o), &f, err));
}
