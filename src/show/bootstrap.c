/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/show/bootstrap.h"

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/show/advice.h"
#include "tec/show/text.h"

/* ---- addresses */

static void judge_addresses(const struct model_cluster *c, struct show_findings *f)
{
	static const char edit[] = "set it: kubectl edit tec", what[] = "address";

	if (c->public_trustee_addr)
		show_found(
			f, SHOW_IS_OK, what, NULL, "publicTrusteeAddr %s", c->public_trustee_addr);
	else
		show_found(f, SHOW_IS_NO, what, edit,
			"publicTrusteeAddr is not set: no node is served without it");
	if (c->public_register_addr)
		show_found(f, SHOW_IS_OK, what, NULL, "publicRegisterAddr %s",
			c->public_register_addr);
	else if (c->public_ak_addr)
		show_found(f, SHOW_IS_NOTE, what, edit,
			"publicRegisterAddr is not set: the host of publicAttestationKeyRegisterAddr is used, and port %d",
			c->register_port);
	else
		show_found(f, SHOW_IS_NO, what, edit,
			"publicRegisterAddr is not set: new nodes cannot be told where to ask");
	if (c->public_ak_addr)
		show_found(f, SHOW_IS_OK, what, NULL, "publicAttestationKeyRegisterAddr %s",
			c->public_ak_addr);
	else
		show_found(f, SHOW_IS_NO, what,
			"delete the TrustedExecutionCluster and make it again with the field, which cannot be set later",
			"publicAttestationKeyRegisterAddr is not set: nodes register no attestation key");
}

/* Nodes keep the servers that are listed when their disk is made. */
static void judge_servers(const struct model_cluster *c, struct show_findings *f)
{
	bool outside = c->public_trustee_addr && !show_inside_only(c->public_trustee_addr);

	for (unsigned i = 0; i < c->n_servers; i++) {
		outside = outside || !show_inside_only(c->server_addr[i]);
		if (c->server_ca[i])
			show_found(f, SHOW_IS_OK, "trusteeServers", NULL, "%s, CA in Secret %s",
				c->server_addr[i], c->server_ca[i]);
		else
			show_found(f, SHOW_IS_NOTE, "trusteeServers",
				"name a Secret with its ca.crt in caSecret; tecctl bootstrap ca makes a CA",
				"%s: nodes ask it over plain HTTP", c->server_addr[i]);
	}
	if (!c->n_servers)
		show_found(f, SHOW_IS_NOTE, "trusteeServers",
			"list the new cluster's address with a CA of tecctl bootstrap ca before nodes are installed",
			"none: nodes installed now know this Trustee only");
	if (!outside && c->public_trustee_addr)
		show_found(f, SHOW_IS_NOTE, "servers",
			"list a server outside of it first, or the nodes cannot start while the cluster is off",
			"nodes know only servers with names inside a cluster, as of the one that they form");
}

/* ---- what nodes may do */

static void judge_registration(const struct model_cluster *c, struct show_findings *f)
{
	const char *next = c->reg_mode == MODEL_REG_MANUAL ? "make a Machine for each node"
			   : c->reg_mode == MODEL_REG_TOKEN
				   ? "give new nodes a token, as spec.registration.tokenSecret says"
				   : NULL;

	show_found(f, next ? SHOW_IS_NOTE : SHOW_IS_OK, "limits", next,
		"mode %s, approval %s; at most %d Machines, %d waiting, %d keys waiting for each",
		model_reg_mode_name(c->reg_mode),
		c->approval == MODEL_APPROVAL_MANUAL ? "Manual" : "Automatic", c->machine_limit,
		c->pending_limit, c->waiting_keys);
	if (c->approval == MODEL_APPROVAL_MANUAL)
		show_found(f, SHOW_IS_NOTE, "approval", "tecctl status, tecctl approve",
			"each node waits until its key is approved by hand");
}

static void judge_image(struct json_object *image, struct show_findings *f)
{
	struct json_object *c = show_condition(image, "Committed");
	const char *reason = json_get_str(c, "reason"), *message = json_get_str(c, "message");
	cleanup_strbuf struct strbuf next = STRBUF_INIT;

	if (show_is_true(image, "Committed")) {
		show_found(f, SHOW_IS_OK, "image", NULL, "%s is in force", show_name(image));
		return;
	}
	show_advice(SHOW_IMAGE, reason, show_name(image), &next);
	show_found(f, SHOW_IS_NO, "image", next.len ? strbuf_str(&next) : "tecctl image list",
		"%s is not in force: %s: %s", show_name(image), reason ? reason : "-",
		message ? message : "the operator has not looked at it");
}

static void judge_images(const struct show_world *w, struct show_findings *f)
{
	const struct show_list *l = &w->list[SHOW_IMAGE];

	if (l->problem)
		show_found(f, SHOW_IS_NO, "image", NULL, "%s", l->problem);
	else if (!l->n)
		show_found(f, SHOW_IS_NO, "image", "tecctl image approve REF",
			"none is approved: every boot is refused");
	for (size_t i = 0; i < l->n; i++)
		judge_image(l->v[i], f);
}

/* One that was never written was never confirmed. */
static void judge_conditions(struct json_object *cluster, struct show_findings *f)
{
	for (size_t i = 0; i < CLUSTER_N_CONDS; i++) {
		const char *type = model_cluster_cond_types[i];

		if (show_condition(cluster, type))
			show_found_condition(f, cluster, type);
		else
			show_found(f, SHOW_IS_NO, type, "see that the operator runs, and its log",
				"not known yet");
	}
}

void show_bootstrap(
	const struct show_world *w, const struct model_cluster *c, struct show_findings *f)
{
	judge_conditions(show_cluster(w), f);
	judge_addresses(c, f);
	judge_servers(c, f);
	judge_registration(c, f);
	judge_images(w, f);
}

/* ---- the three servers */

void show_bootstrap_host(const struct show_endpoint *e, bool named, struct show_findings *f)
{
	if (named)
		show_found(f, SHOW_IS_OK, e->name, NULL, "the certificate is for %s", e->host);
	else
		show_found(f, SHOW_IS_NO, e->name, "issue it for that name: nodes refuse it",
			"the certificate in Secret %s is not for %s", e->secret, e->host);
}

void show_bootstrap_answer(
	const struct show_endpoint *e, int status, const struct err *why, struct show_findings *f)
{
	if (!status)
		show_found(f, SHOW_IS_NO, e->name,
			why->kind == ERR_DENIED
				? "see that TLS reaches the server unchanged, and that ca.crt of the Secret is its CA"
				: "expose it there (k8s/samples/expose), see DNS and firewalls; if only nodes can reach it: --from-node",
			"%s: %s", e->url, why->text);
	else if (!show_endpoint_answers(e, status))
		show_found(f, SHOW_IS_NO, e->name,
			status == 503 ? "see the conditions, and the operator's log"
				      : "see which server, or which proxy, is at this address",
			"%s: HTTP %d, expected %d", e->url, status, e->expected);
	else
		show_found(f, SHOW_IS_OK, e->name, NULL, "%s answers", e->url);
}
