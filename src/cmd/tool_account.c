/* SPDX-License-Identifier: MIT */
/*
 * Applies k8s/follow-role.yaml to the namespace in use. tec-operator --standalone has the role
 * built in and issues tokens on request; a cluster puts a token that does not expire into a
 * Secret. Text that contains the token is wiped, and no JSON object keeps it.
 */
#include "config.h"

#include "tool_account.h"
#include "tool_check.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/yaml.h"
#include "tec/render/trustee.h"
#include "tec/report/handover.h"

#define ROLE_FILE    "follow-role.yaml"
#define TOKEN_SECRET "tec-follow-token"
#define TOKEN_LIFE_S INT64_C(315360000) /* 10 years; a server may grant less */
#define SOON_S       INT64_C(31536000)  /* a token that expires sooner is reported */
#define FILL_MS      10000              /* for the controller to fill the token Secret */
#define POLL_MS      250
#define CA_MAX       262144
#define RBAC         "rbac.authorization.k8s.io"

static const struct kobj_gvk account_kind = {"", "v1", "ServiceAccount", "serviceaccounts", NULL},
			     role_kind = {RBAC, "v1", "Role", "roles", NULL},
			     binding_kind = {RBAC, "v1", "RoleBinding", "rolebindings", NULL};

/* ---- the server */

/* From the API of --standalone, or else from the image of the Deployment in this namespace. */
int tool_operator_version(struct tool *t, char **version, struct err *err)
{
	cleanup_json struct json_object *server = NULL, *deployment = NULL;
	struct json_object *containers;

	*version = NULL;
	if (tool_ask(t, "GET", "/version", NULL, NULL, &server, err) < 0)
		return -1;
	*version = report_operator_version(json_get_str(server, "gitVersion"), NULL);
	if (*version)
		return 0;
	deployment = tool_get(t, &kobj_deployment, "tec-operator", err);
	if (t->interrupted)
		return -1;
	err_clear(err); /* it may run elsewhere, or these credentials may not read it */
	containers = json_get_arr(deployment, "spec/template/spec/containers");
	*version = report_operator_version(NULL, json_get_str(json_at(containers, 0), "image"));
	return 0;
}

/* Compare clocks: the answer to a dry-run creation carries the server's time, and nothing is
 * created. A server that refuses it leaves the skew at 0, unknown. */
int tool_clock_skew(struct tool *t, int64_t *skew_s, struct err *err)
{
	cleanup_json struct json_object *o = json_obj(), *answer = NULL;
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	const char *at;
	int64_t us;

	*skew_s = 0;
	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", "ConfigMap");
	json_add(o, "metadata", json_add_str(json_obj(), "generateName", "tec-clock-"));
	kobj_path(&kobj_configmap, t->ns, NULL, NULL, &path);
	strbuf_adds(&path, "?dryRun=All");
	if (tool_ask(t, "POST", strbuf_str(&path), "application/json", o, &answer, err) < 0) {
		if (err->kind == ERR_TRANSIENT)
			return -1;
		err_clear(err);
		return 0;
	}
	at = json_get_str(answer, "metadata/creationTimestamp");
	if (at && clock_parse(at, &us) == 0)
		*skew_s = us / 1000000 - clock_wall_s();
	return 0;
}

/* ---- the account */

/* Server-side apply. Takes the text, which may contain a token, and wipes it. */
static int apply(struct tool *t, const struct kobj_gvk *gvk, const char *name, char *take_text,
	struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	kobj_path(gvk, t->ns, name, NULL, &path);
	strbuf_adds(&path, "?fieldManager=tecctl&force=true");
	return tool_ask_text(t, "PATCH", strbuf_str(&path), "application/apply-patch+yaml",
		take_text, NULL, err);
}

/* Put the items of the manifest, which is compiled in from k8s/, into the namespace in use. A
 * standalone server has the role built in, as a ClusterRole, and issues tokens on request, so it
 * needs neither Role nor Secret. */
static int apply_all(struct tool *t, bool standalone, struct err *err)
{
	const struct kobj_gvk *const kinds[] = {&account_kind, &binding_kind,
		standalone ? NULL : &role_kind, standalone ? NULL : &kobj_secret};
	const char *text = render_etc(ROLE_FILE);
	cleanup_json struct json_object *list = yaml_parse(text, strlen(text), err);
	struct json_object *items = json_get_arr(list, "items");

	if (!list)
		return err_wrap(err, ROLE_FILE);
	for (size_t i = 0; i < json_len(items); i++) {
		struct json_object *item = json_at(items, i),
				   *subject = json_at(json_get_arr(item, "subjects"), 0);
		const char *kind = json_get_str(item, "kind");
		const struct kobj_gvk *gvk = NULL;

		for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
			if (kinds[k] && str_eq(kind, kinds[k]->kind))
				gvk = kinds[k];
		if (!gvk)
			continue;
		/* The manifest is the same for every namespace. */
		json_add_str(json_get_obj(item, "metadata"), "namespace", t->ns);
		if (subject)
			json_add_str(subject, "namespace", t->ns);
		if (subject && standalone)
			json_add_str(json_get_obj(item, "roleRef"), "kind", "ClusterRole");
		if (apply(t, gvk, report_name(item), json_text(item), err) < 0)
			return err_wrap(err, "%s %s", gvk->kind, report_name(item));
	}
	return 0;
}

/* ---- the token */

/* Request a token for the account (TokenRequest, authentication.k8s.io/v1). The answer is wiped.
 * Warn if the token expires within a year: the operator that follows would then lose the source. */
static int request_token(struct tool *t, struct strbuf *token, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_json struct json_object *ask = json_obj();
	struct json_object *answer = NULL;
	const char *text, *end;
	int64_t us;
	int rc;

	json_add_str(json_add_str(ask, "apiVersion", "authentication.k8s.io/v1"), "kind",
		"TokenRequest");
	json_add(ask, "spec", json_add_int(json_obj(), "expirationSeconds", TOKEN_LIFE_S));
	kobj_path(&account_kind, t->ns, TOOL_ACCOUNT, "token", &path);
	rc = tool_ask(t, "POST", strbuf_str(&path), "application/json", ask, &answer, err);
	text = json_get_str(answer, "status/token");
	end = json_get_str(answer, "status/expirationTimestamp");
	if (rc == 0 && !text)
		rc = err_set(err, ERR_INVALID, "%.100s returned no token", t->server);
	if (rc == 0)
		strbuf_adds(token, text);
	if (rc == 0 && end && clock_parse(end, &us) == 0 && us / 1000000 - clock_wall_s() < SOON_S)
		tool_say(stderr,
			"tecctl: the token for %s expires at %s; run tecctl follow again before that",
			t->server, end);
	json_wipe(answer);
	json_object_put(answer);
	return rc;
}

/* Wait for the token that a cluster's controller writes into the Secret; "" if there is no such
 * controller, after FILL_MS. */
static int read_token(struct tool *t, struct strbuf *token, struct err *err)
{
	for (uint64_t end = clock_boot_ms() + FILL_MS; clock_boot_ms() < end;) {
		if (tool_secret_member(t, TOKEN_SECRET, "token", token, err) == 0)
			return 0;
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the kubeconfig */

/* Write the kubeconfig as JSON, which is valid YAML. The CA is inline: the other operator does not
 * have our files. */
static int write_kubeconfig(struct tool *t, const struct k8s_kubeconfig *k,
	const struct strbuf *token, struct strbuf *out, struct err *err)
{
	cleanup_free char *pem = NULL;
	size_t len;

	strbuf_adds(out,
		"{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \"source\",\n"
		"\"clusters\": [{\"name\": \"source\", \"cluster\": {\"server\": ");
	json_quote(out, k->server, strlen(k->server));
	if (k->tls_server_name) {
		strbuf_adds(out, ", \"tls-server-name\": ");
		json_quote(out, k->tls_server_name, strlen(k->tls_server_name));
	}
	if (k->proxy) {
		strbuf_adds(out, ", \"proxy-url\": ");
		json_quote(out, k->proxy, strlen(k->proxy));
	}
	if (k->ca_data || k->ca_file) {
		if (!k->ca_data && !(pem = file_read(k->ca_file, CA_MAX, &len, NULL, err)))
			return -1;
		strbuf_adds(out, ", \"certificate-authority-data\": \"");
		if (pem)
			bytes_to_b64(out, pem, len);
		else
			bytes_to_b64(out, secret_peek(k->ca_data), secret_len(k->ca_data));
		strbuf_addc(out, '"');
	}
	strbuf_addf(out,
		"}}],\n\"contexts\": [{\"name\": \"source\", \"context\": {\"cluster\": \"source\", \"user\": \"" TOOL_ACCOUNT
		"\", \"namespace\": \"%s\"}}],\n\"users\": [{\"name\": \"" TOOL_ACCOUNT
		"\", \"user\": {\"token\": ",
		t->ns);
	json_quote(out, strbuf_str(token), token->len);
	strbuf_adds(out, "}}]}\n");
	return 0;
}

/* Repeated runs are safe: everything is applied, and a new token does not end an older one. What an
 * operator would refuse to follow is refused here: it sends a token that reads every Secret of the
 * namespace. */
int tool_account_make(struct tool *t, struct strbuf *kubeconfig, struct err *err)
{
	static const char *const here[] = {"https://127.", "https://localhost", "https://[::1]"};
	struct k8s_kubeconfig *k = k8s_kubeconfig_load(t->from, NULL, err);
	cleanup_wiped_strbuf struct strbuf token = STRBUF_INIT;
	cleanup_json struct json_object *version = NULL;
	bool standalone;
	int rc;

	if (!k)
		return -1;
	if (!str_starts(k->server, "https://"))
		rc = err_set(err, ERR_INVALID,
			"the kubeconfig has a server without TLS, which operators do not follow; next step: use the https address");
	else if (k->insecure)
		rc = err_set(err, ERR_INVALID,
			"the kubeconfig has insecure-skip-tls-verify, so no token is sent; next step: set certificate-authority in it");
	else
		rc = tool_ask(t, "GET", "/version", NULL, NULL, &version, err);
	standalone = report_is_standalone(json_get_str(version, "gitVersion"));
	if (rc == 0)
		rc = apply_all(t, standalone, err);
	if (rc == 0 && !standalone)
		rc = read_token(t, &token, err);
	if (rc == 0 && !token.len)
		rc = request_token(t, &token, err);
	if (rc == 0)
		rc = write_kubeconfig(t, k, &token, kubeconfig, err);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(here); i++)
		if (str_starts(k->server, here[i]))
			tool_say(stderr,
				"tecctl: the other operator gets the address %s from %s: it must run on this machine too, or the kubeconfig must have an address that it can reach",
				k->server, t->from);
	k8s_kubeconfig_free(k);
	return rc;
}

/* The Secret is text that is wiped by apply(). */
int tool_account_give(struct tool *t, const struct strbuf *kubeconfig, struct err *err)
{
	cleanup_wiped_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_addf(&text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" TOOL_ACCOUNT
		"\",\"namespace\":\"%s\"},\"type\":\"Opaque\",\"data\":{\"" TOOL_ACCOUNT_MEMBER
		"\":\"",
		t->ns);
	bytes_to_b64(&text, strbuf_str(kubeconfig), kubeconfig->len);
	strbuf_adds(&text, "\"}}");
	if (apply(t, &kobj_secret, TOOL_ACCOUNT, strbuf_steal(&text), err) < 0)
		return err_wrap(err, "Secret " TOOL_ACCOUNT);
	return 0;
}
