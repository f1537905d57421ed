/* SPDX-License-Identifier: MIT */
/*
 * The admin calls: who asks comes first, then the path, then the body, as in the real one; so
 * nobody without a token learns which names exist. A write answers when the store has it. A message
 * of reference values is not atomic: what stood before a refused name stays.
 */
#include "config.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/standalone/kbswire.h"

#include "kbsd_internal.h"

#define RESOURCE_POLICY "resource-policy"

static const char plugin_error[] = "Plugin internal error";

/* -1: refused, the request is gone. denied: the error's type, which depends on the endpoint. */
static int authorize(const struct kbsd_call *c, const char *denied)
{
	struct err err = ERR_INIT;

	if (kbsauth_check(&c->k->auth, httpd_req_header(c->req, "Authorization"),
		    httpd_req_target(c->req), clock_wall_s(), &err) == 0)
		return 0;
	kbsd_refuse(c, err.http, denied, "admin access denied: %s", err.text);
	return -1;
}

/* ---- resources */

/* The key in the request's path, borrowed; NULL: refused, the request is gone. */
static const char *resource_key(const struct kbsd_call *c)
{
	const char *key = httpd_req_path(c->req) + strlen(KBSD_RESOURCE);
	struct err err = ERR_INIT;

	if (authorize(c, "AdminAuthInitialization") < 0)
		return NULL;
	if (kbswire_resource_check(key, &err) == 0)
		return key;
	kbsd_refuse(c, 400, "PluginInternalError", "%s: %s", plugin_error, err.text);
	return NULL;
}

void kbsd_resource_put(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "resource-put"};
	const char *key = resource_key(&c), *body;
	struct err err = ERR_INIT;
	size_t len;

	if (!key)
		return;
	body = httpd_req_body(req, &len);
	if (kbsstore_set(c.k->store, KBSSTORE_REPOSITORY, key, body, len, &err) < 0)
		kbsd_refuse(&c, err.http ? err.http : 400, "PluginInternalError", "%s: %s",
			plugin_error, err.text);
	else
		kbsd_reply(&c, "text/xml", NULL, 0);
}

void kbsd_resource_delete(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "resource-delete"};
	const char *key = resource_key(&c);
	struct err err = ERR_INIT;

	if (!key)
		return;
	if (kbsstore_remove(c.k->store, KBSSTORE_REPOSITORY, key, &err) == 0)
		kbsd_reply(&c, "text/xml", NULL, 0);
	else if (c.k->quirks)
		kbsd_refuse(&c, 401, "PluginInternalError", "%s", plugin_error);
	else
		kbsd_refuse(&c, 404, "ResourceNotFound", "there is no such resource");
}

/* ---- reference values */

static int set_value(void *arg, const char *name, const char *entry, size_t len, struct err *err)
{
	const struct kbsd_call *c = arg;

	return kbsstore_set(c->k->store, KBSSTORE_REFERENCE_VALUE, name, entry, len, err);
}

void kbsd_values_put(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "refvalue-put"};
	struct err err = ERR_INIT;
	const char *body;
	size_t len;

	if (authorize(&c, "AdminAuthAccess") < 0)
		return;
	body = httpd_req_body(req, &len);
	if (kbswire_values(body, len, clock_wall_s(), set_value, &c, &err) < 0)
		kbsd_refuse(&c, 400, "RvpsError",
			"RVPS configuration failed: Failed to register reference value: %s",
			err.text);
	else
		kbsd_reply(&c, "application/json", NULL, 0);
}

void kbsd_value_get(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "refvalue-get"};
	const char *name = httpd_req_path(req) + strlen(KBSD_REFERENCE_VALUE);
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	struct kbsstore_value entry;
	struct err err = ERR_INIT;

	if (authorize(&c, "AdminAuthAccess") < 0)
		return;
	if (kbsstore_get(c.k->store, KBSSTORE_REFERENCE_VALUE, name, &entry, &err) < 0 ||
		kbswire_entry_value(entry.data, entry.len, &value, &err) < 0)
		kbsd_refuse(&c, err.kind == ERR_NOT_FOUND ? 404 : 500, "RvpsError",
			"RVPS configuration failed: Failed to get reference_values: %s", err.text);
	else
		kbsd_reply(&c, "application/json", value.data, value.len);
}

/* ---- policies */

static int set_policy(struct kbsstore *s, enum kbsstore_ns ns, const char *id, const void *text,
	size_t len, struct err *err)
{
	cleanup_free char *key = xasprintf("%s" KBSD_REGO, id);

	return kbsstore_set(s, ns, key, text, len, err);
}

static void put_policy(
	const struct kbsd_call *c, enum kbsstore_ns ns, const char *type, const char *detail)
{
	__attribute__((cleanup(kbswire_policy_fini))) struct kbswire_policy p = {NULL, NULL, 0};
	bool with_id = ns == KBSSTORE_ATTESTATION_POLICY;
	struct err err = ERR_INIT;
	const char *body;
	size_t len;

	if (authorize(c, "AdminAuthAccess") < 0)
		return;
	body = httpd_req_body(c->req, &len);
	if (kbswire_policy_parse(body, len, with_id, &p, &err) < 0 ||
		set_policy(c->k->store, ns, with_id ? p.id : RESOURCE_POLICY, p.text, p.len, &err) <
			0)
		kbsd_refuse(c, 400, type, "%s: %s", detail, err.text);
	else
		kbsd_reply(c, NULL, NULL, 0);
}

void kbsd_attestation_policy_put(struct httpd_req *req, void *arg)
{
	put_policy(&(struct kbsd_call){arg, req, "attestation-policy-put"},
		KBSSTORE_ATTESTATION_POLICY, "AttestationError",
		"Attestation error: Set policy failed");
}

void kbsd_resource_policy_put(struct httpd_req *req, void *arg)
{
	put_policy(&(struct kbsd_call){arg, req, "resource-policy-put"}, KBSSTORE_KBS,
		"ParsePolicyError", "Failed to parse policy");
}

static void add_name(void *arg, const char *key)
{
	size_t len = strlen(key);

	if (str_ends(key, KBSD_REGO))
		len -= strlen(KBSD_REGO);
	json_push(arg, json_object_new_string_len(key, (int)len));
}

void kbsd_resource_policy_get(struct httpd_req *req, void *arg)
{
	struct kbsd_call c = {arg, req, "resource-policy-get"};
	cleanup_json struct json_object *names = json_arr();
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;

	if (authorize(&c, "AdminAuthAccess") < 0)
		return;
	if (kbsstore_list(c.k->store, KBSSTORE_KBS, add_name, names, &err) < 0) {
		kbsd_refuse(&c, 500, "PolicyEngineError", "Policy engine error: %s", err.text);
		return;
	}
	text = json_text(names);
	kbsd_reply(&c, "application/json", text, strlen(text));
}

/* ---- what is there at the start */

/* The real one's own texts grant more than anybody wants; what matters here is that they are there
 * and not ours. */
static const char stock_resource_policy[] =
	"# stock: every resource to every attester but \"sample\"\n"
	"package policy\n"
	"import rego.v1\n"
	"default allow := false\n"
	"allow if {\n"
	"\tdata.plugin == \"resource\"\n"
	"\tnot input.submods.cpu0[\"ear.veraison.annotated-evidence\"].sample\n"
	"}\n";
static const char stock_attestation_policy[] = "# stock\n"
					       "package policy\n"
					       "import rego.v1\n"
					       "default executables := 33\n"
					       "trust_claims := {\"executables\": executables}\n";

int kbsd_seed(struct kbsstore *store, struct err *err)
{
	static const struct {
		enum kbsstore_ns ns;
		const char *id, *text;
	} stock[] = {
		{KBSSTORE_KBS, RESOURCE_POLICY, stock_resource_policy},
		{KBSSTORE_ATTESTATION_POLICY, "default_cpu", stock_attestation_policy},
		{KBSSTORE_ATTESTATION_POLICY, "default_gpu", stock_attestation_policy},
		{KBSSTORE_ATTESTATION_POLICY, "default_switch", stock_attestation_policy},
		{KBSSTORE_ATTESTATION_POLICY, "default_ppcie", stock_attestation_policy},
	};

	for (size_t i = 0; i < ARRAY_LEN(stock); i++) {
		cleanup_free char *key = xasprintf("%s" KBSD_REGO, stock[i].id);
		struct kbsstore_value there;
		struct err none = ERR_INIT;

		if (kbsstore_get(store, stock[i].ns, key, &there, &none) == 0)
			continue;
		if (kbsstore_set(
			    store, stock[i].ns, key, stock[i].text, strlen(stock[i].text), err) < 0)
			return -1;
	}
	return 0;
}
