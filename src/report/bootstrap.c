/* SPDX-License-Identifier: MIT */
/*
 * tecctl bootstrap check: the conditions and fields that a node needs in its first boot. Most of
 * these fields reach a node only when its disk is installed, so mistakes are reported before that.
 */
#include "config.h"

#include "tec/report/bootstrap.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/report/advice.h"
#include "tec/report/text.h"

/* ---- addresses */

/* Report the three public addresses. publicAttestationKeyRegisterAddr cannot be added later: its
 * presence is fixed when the cluster object is created. */
static void judge_addresses(const struct model_cluster *c, struct report_findings *f)
{
	static const char edit[] = "set the field: kubectl edit tec", what[] = "address";

	if (c->public_trustee_addr)
		report_found(f, REPORT_IS_OK, what, NULL, "publicTrusteeAddr %s",
			c->public_trustee_addr);
	else
		report_found(f, REPORT_IS_NO, what, edit,
			"publicTrusteeAddr is not set: no node can be served");
	if (c->public_register_addr)
		report_found(f, REPORT_IS_OK, what, NULL, "publicRegisterAddr %s",
			c->public_register_addr);
	else if (c->public_ak_addr)
		report_found(f, REPORT_IS_NOTE, what, edit,
			"publicRegisterAddr is not set: using the host of publicAttestationKeyRegisterAddr with port %d",
			c->register_port);
	else
		report_found(f, REPORT_IS_NO, what, edit,
			"publicRegisterAddr is not set: new nodes do not know where to register");
	if (c->public_ak_addr)
		report_found(f, REPORT_IS_OK, what, NULL, "publicAttestationKeyRegisterAddr %s",
			c->public_ak_addr);
	else
		report_found(f, REPORT_IS_NO, what,
			"delete the TrustedExecutionCluster and create it again with this field; it cannot be added later",
			"publicAttestationKeyRegisterAddr is not set: nodes cannot register attestation keys");
}

/* Report the additional Trustee servers. A node keeps the list it had when its disk was made, and
 * a node that knows only servers inside the cluster that it forms cannot boot while that cluster
 * is down. */
static void judge_servers(const struct model_cluster *c, struct report_findings *f)
{
	bool outside = c->public_trustee_addr && !report_inside_only(c->public_trustee_addr);

	for (unsigned i = 0; i < c->n_servers; i++) {
		outside = outside || !report_inside_only(c->server_addr[i]);
		if (c->server_ca[i])
			report_found(f, REPORT_IS_OK, "trusteeServers", NULL, "%s, CA in Secret %s",
				c->server_addr[i], c->server_ca[i]);
		else
			report_found(f, REPORT_IS_NOTE, "trusteeServers",
				"set caSecret to a Secret with its ca.crt; tecctl bootstrap ca creates a CA",
				"%s: nodes use plain HTTP", c->server_addr[i]);
	}
	if (!c->n_servers)
		report_found(f, REPORT_IS_NOTE, "trusteeServers",
			"before installing nodes, list the new cluster's address with a CA from tecctl bootstrap ca",
			"none: nodes installed now know only this Trustee");
	if (!outside && c->public_trustee_addr)
		report_found(f, REPORT_IS_NOTE, "servers",
			"first list a server outside the cluster; otherwise nodes cannot boot while the cluster is down",
			"nodes know only cluster-internal server names, possibly of the cluster that they form");
}

/* ---- what nodes may do */

/* Report who may register and how many. Only Open registration needs no further step by a
 * person, who otherwise creates Machines or hands out tokens. */
static void judge_registration(const struct model_cluster *c, struct report_findings *f)
{
	const char *next = c->reg_mode == MODEL_REG_MANUAL ? "create a Machine for each node"
			   : c->reg_mode == MODEL_REG_TOKEN
				   ? "give new nodes a token, as spec.registration.tokenSecret says"
				   : NULL;

	report_found(f, next ? REPORT_IS_NOTE : REPORT_IS_OK, "limits", next,
		"mode %s, approval %s; limits: %d Machines, %d pending, %d waiting keys each",
		model_reg_mode_name(c->reg_mode),
		c->approval == MODEL_APPROVAL_MANUAL ? "Manual" : "Automatic", c->machine_limit,
		c->pending_limit, c->waiting_keys);
	if (c->approval == MODEL_APPROVAL_MANUAL)
		report_found(f, REPORT_IS_NOTE, "approval", "tecctl status, tecctl approve",
			"each node waits until its key is approved manually");
}

/* An image counts only once Trustee has its values: "in force" is the condition Committed. An
 * unreadable list is reported as such: it must not count as "no image". */
static void judge_images(const struct report_world *w, struct report_findings *f)
{
	const struct report_list *l = &w->list[REPORT_IMAGE];

	if (l->problem)
		report_found(f, REPORT_IS_NO, "image", NULL, "%s", l->problem);
	else if (!l->n)
		report_found(f, REPORT_IS_NO, "image", "tecctl image approve REF",
			"no image is approved: every boot is refused");
	for (size_t i = 0; i < l->n; i++) {
		struct json_object *c = report_condition(l->v[i], "Committed");
		const char *name = report_name(l->v[i]), *reason = json_get_str(c, "reason"),
			   *message = json_get_str(c, "message");
		cleanup_strbuf struct strbuf next = STRBUF_INIT;

		if (report_is_true(l->v[i], "Committed")) {
			report_found(f, REPORT_IS_OK, "image", NULL, "%s is in force", name);
			continue;
		}
		report_advice(REPORT_IMAGE, reason, name, &next);
		report_found(f, REPORT_IS_NO, "image",
			next.len ? strbuf_str(&next) : "tecctl image list",
			"%s is not in force: %s: %s", name, reason ? reason : "-",
			message ? message : "the operator has not observed it yet");
	}
}

/* The order of the findings is the order in which an administrator sets these things up. Every
 * condition that the operator maintains is reported; a missing one is a failure, because what was
 * never reported was never confirmed. */
void report_bootstrap(
	const struct report_world *w, const struct model_cluster *c, struct report_findings *f)
{
	struct json_object *cluster = report_cluster(w);

	for (size_t i = 0; i < CLUSTER_N_CONDS; i++) {
		const char *type = model_cluster_cond_types[i];

		if (report_condition(cluster, type))
			report_found_condition(f, cluster, type);
		else
			report_found(f, REPORT_IS_NO, type,
				"check that the operator runs, and its log", "not reported yet");
	}
	judge_addresses(c, f);
	judge_servers(c, f);
	judge_registration(c, f);
	judge_images(w, f);
}

/* ---- the three servers */

/* Nodes verify the host name themselves; a certificate for another name locks all of them out. */
void report_bootstrap_host(const struct report_endpoint *e, bool named, struct report_findings *f)
{
	if (named)
		report_found(
			f, REPORT_IS_OK, e->name, NULL, "the certificate is valid for %s", e->host);
	else
		report_found(f, REPORT_IS_NO, e->name, "nodes refuse it; reissue it for that name",
			"the certificate in Secret %s is not valid for %s", e->secret, e->host);
}

/* status 0: no HTTP answer; ERR_DENIED then is a TLS failure, anything else the network's. */
void report_bootstrap_answer(const struct report_endpoint *e, int status, const struct err *why,
	struct report_findings *f)
{
	if (!status)
		report_found(f, REPORT_IS_NO, e->name,
			why->kind == ERR_DENIED
				? "check that no proxy terminates TLS, and that ca.crt in the Secret is the server's CA"
				: "expose it there (k8s/samples/expose), check DNS and firewalls; if only nodes can reach it: --from-node",
			"%s: %s", e->url, why->text);
	else if (!report_endpoint_answers(e, status))
		report_found(f, REPORT_IS_NO, e->name,
			status == 503 ? "check the conditions and the operator's log"
				      : "check which server or proxy answers at this address",
			"%s: HTTP %d, expected %d", e->url, status, e->expected);
	else
		report_found(f, REPORT_IS_OK, e->name, NULL, "%s answers", e->url);
}
