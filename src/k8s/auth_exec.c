/* SPDX-License-Identifier: MIT */
/* The input and output of an exec plugin (client.authentication.k8s.io, ExecCredential). This file
 * only parses and prints: auth.c runs the process. */
#include "config.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"

#include "auth_internal.h"

static const struct json_limits exec_limits = {.bytes = 256 * 1024, .depth = 16, .tokens = 2000};

void auth_exec_fini(struct auth_exec *x)
{
	secret_free(x->token);
	secret_free(x->cert);
	secret_free(x->key);
	memset(x, 0, sizeof(*x));
}

/* The cluster is included only when the kubeconfig sets provideClusterInfo, as client-go does. */
char *auth_exec_info(const struct k8s_kubeconfig *k, const char *ca_pem, size_t ca_len)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *spec = json_obj(), *cluster;
	cleanup_free char *text = NULL;

	json_add_str(o, "apiVersion", k->exec_api_version);
	json_add_str(o, "kind", "ExecCredential");
	if (k->exec_cluster_info) {
		cluster = json_obj();
		json_add_str(cluster, "server", k->server);
		json_add_str(cluster, "tls-server-name", k->tls_server_name);
		json_add_str(cluster, "proxy-url", k->proxy);
		if (k->insecure)
			json_add_bool(cluster, "insecure-skip-tls-verify", true);
		if (ca_pem) {
			cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

			bytes_to_b64(&b64, ca_pem, ca_len);
			json_add_str(cluster, "certificate-authority-data", strbuf_str(&b64));
		}
		json_add(spec, "cluster", cluster);
	}
	json_add_bool(spec, "interactive", false);
	json_add(o, "spec", spec);
	text = json_text(o);
	return xasprintf("KUBERNETES_EXEC_INFO=%s", text);
}

/* Moves a string member into a secret, wiping json-c's copy. Returns 0 when it is absent, too. */
static int take_secret(struct json_object *status, const char *name, size_t nul,
	struct secret **out, struct err *err)
{
	const char *s = json_get_str(status, name);
	size_t len = s ? strlen(s) : 0;

	if (!len)
		return 0;
	if (len + nul > SECRET_MAX_LEN)
		return err_set(err, ERR_DENIED, "%s is larger than 128 KiB", name);
	*out = secret_new_copy(s, len + nul);
	secret_wipe((char *)(uintptr_t)s, len);
	return 0;
}

/* The plugin must answer in the requested apiVersion: a mismatch is an error, as in client-go. */
static int read_status(
	struct json_object *o, const char *api_version, struct auth_exec *out, struct err *err)
{
	struct json_object *status = json_get_obj(o, "status");
	const unsigned char *token;
	const char *expires;
	int64_t us;

	if (!str_eq(json_get_str(o, "kind"), "ExecCredential") || !status)
		return err_set(err, ERR_DENIED, "it did not print an ExecCredential with a status");
	if (!str_eq(json_get_str(o, "apiVersion"), api_version))
		return err_set(err, ERR_DENIED,
			"its output does not have apiVersion %s: set the version that the plugin supports",
			api_version);
	expires = json_get_str(status, "expirationTimestamp");
	if (take_secret(status, "token", 1, &out->token, err) != 0 ||
		take_secret(status, "clientCertificateData", 0, &out->cert, err) != 0 ||
		take_secret(status, "clientKeyData", 0, &out->key, err) != 0)
		return -1;
	/* The token becomes a header line: a line break in it would start another header. */
	token = out->token ? secret_peek(out->token) : NULL;
	for (; token && *token; token++)
		if (*token <= ' ' || *token >= 0x7f)
			return err_set(err, ERR_DENIED,
				"its token contains a blank, a control character or a non-ASCII byte");
	if (!out->cert != !out->key)
		return err_set(err, ERR_DENIED,
			"clientCertificateData and clientKeyData must be set together");
	if (!out->token && !out->cert)
		return err_set(err, ERR_DENIED,
			"its status contains neither a token nor a client certificate");
	if (!expires)
		return 0;
	if (clock_parse(expires, &us) != 0)
		return err_set(err, ERR_DENIED, "its expirationTimestamp is not an RFC 3339 time");
	out->expires_s = us / 1000000;
	return 0;
}

/* The credential is not printed in any error, and every failure is ERR_DENIED. */
int auth_exec_parse(const char *text, size_t len, const char *api_version, struct auth_exec *out,
	struct err *err)
{
	struct json_object *o = json_parse(text, len, &exec_limits, err);
	int rc;

	memset(out, 0, sizeof(*out));
	if (!o) {
		err->kind = ERR_DENIED;
		return err_wrap(err, "its output");
	}
	rc = json_object_is_type(o, json_type_object)
		     ? read_status(o, api_version, out, err)
		     : err_set(err, ERR_DENIED, "it did not print an ExecCredential");
	json_object_put(o);
	if (rc != 0)
		auth_exec_fini(out);
	return rc;
}
