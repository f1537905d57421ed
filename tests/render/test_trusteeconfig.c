/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/toml.h"
#include "tec/kobj/meta.h"
#include "tec/render/kbstls.h"
#include "tec/render/trusteeconfig.h"

/* writable: the annotation; NULL: none. */
static const struct model_trusteeconfig *tc_with(const char *writable, const char *spec)
{
	cleanup_free char *mark = writable ? xasprintf("\"%s\"", writable) : xstrdup("null");
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"t\",\"uid\":\"u\",\"resourceVersion\":\"1\","
			  "\"annotations\":{\"" MODEL_KBSCONFIG_WRITABLE "\":%s}},\"spec\":%s}",
			mark, spec);
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;
	const struct kobj *k = model_trusteeconfig_extract(o, &err);

	cr_assert(k, "%s", err.text);
	cr_assert_null(model_trusteeconfig(k)->problem);
	return model_trusteeconfig(k);
}

static const struct model_trusteeconfig *tc(const char *spec)
{
	return tc_with(NULL, spec);
}

#define PERMISSIVE "{\"profileType\":\"Permissive\"}"
#define RESTRICTED                                                                                 \
	"{\"profileType\":\"Restricted\",\"httpsSpec\":{\"tlsSecretName\":\"h\"},"                 \
	"\"attestationTokenVerificationSpec\":{\"tlsSecretName\":\"t\"}}"

/* ---- kbs-config.toml */

static struct json_object *config(const char *spec)
{
	const struct model_trusteeconfig *t = tc(spec);
	cleanup_json struct json_object *data = render_child_data(t, RENDER_CHILD_CONFIG);
	const char *text = json_get_str(data, MODEL_KBSFILE_KEY);
	struct err err = ERR_INIT;
	struct json_object *o = toml_parse(text, strlen(text), &err);

	cr_assert(o, "%s: %s", err.text, text);
	cr_assert_null(strstr(text, " #"), "a tag is left: %s", text);
	kobj_unref(&t->obj);
	return o;
}

Test(render_trusteeconfig, the_file_has_what_is_provided)
{
	cleanup_json struct json_object *open = config(PERMISSIVE), *closed = config(RESTRICTED);

	cr_assert(json_get_bool(open, "http_server/insecure_http", false));
	cr_assert_null(json_get(open, "http_server/tls_profile"));
	cr_assert_null(json_get(open, "http_server/private_key"));
	cr_assert(json_get_bool(open, "attestation_token/insecure_header_jwk", false));
	cr_assert_null(json_get(open, "attestation_service/attestation_token_broker/signer"));

	cr_assert_not(json_get_bool(closed, "http_server/insecure_http", true));
	cr_assert_str_eq(json_get_str(closed, "http_server/tls_profile"), "intermediate");
	cr_assert_str_eq(
		json_get_str(closed, "http_server/private_key"), "/etc/https-key/privateKey");
	cr_assert_not(json_get_bool(closed, "attestation_token/insecure_header_jwk", true));
	cr_assert_str_eq(json_get_str(closed,
				 "attestation_service/attestation_token_broker/signer/key_path"),
		"/etc/attestation-key/token.key");
	cr_assert_str_eq(json_get_str(closed, "admin/authorization_mode"), "DenyAll");
}

/* ---- TLS lines in somebody's file: section 9 of the specification, case 4 */

#define OLD                                                                                        \
	"[http_server]\nsockets = [\"0.0.0.0:8080\"]\ninsecure_http = false\n"                     \
	"# TLS configuration - Mozilla old profile\ntls_profile = \"old\"\n\n[admin]\na = 1\n"
#define MODERN "# TLS configuration - Mozilla modern profile\ntls_profile = \"modern\"\n"
#define CUSTOM                                                                                     \
	"# TLS configuration - Mozilla custom profile\ntls_profile = \"custom\"\ntls_ciphers = \"A\"\n"

static char *merge(const char *text, const char *lines)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	cr_assert_eq(render_kbstls_merge(text, lines, &out, &err), 0, "%s: %s", err.text, text);
	return strbuf_steal(&out);
}

Test(render_kbstls, lines_are_put_in_and_nothing_else_changes)
{
	static const char *const table[][3] = {
		{OLD, MODERN,
			"[http_server]\nsockets = [\"0.0.0.0:8080\"]\ninsecure_http = false\n" MODERN
			"\n[admin]\na = 1\n"},
		{OLD, "", OLD},
		/* None before: at the end of the section, before its blank lines. */
		{"[http_server]\na = 1\n\n\n[b]\n", MODERN,
			"[http_server]\na = 1\n" MODERN "\n\n[b]\n"},
		{"[http_server]", MODERN, "[http_server]\n" MODERN},
		/* What the Trustee operator's own merge breaks. */
		{"[http_server]\ntls_profile=\"old\"\nworker_count = 4\n", MODERN,
			"[http_server]\n" MODERN "worker_count = 4\n"},
		{"[ http_server ] # mine\ntls_profile = \"old\"\n[x]\ntls_profile = \"theirs\"\n",
			MODERN,
			"[ http_server ] # mine\n" MODERN "[x]\ntls_profile = \"theirs\"\n"},
		{"[http_server]\nsockets = [\n  \"[::]:1\",\n]\nb = \"\"\"\n[x]\ntls_profile = 1\n\"\"\"\n[x]\n",
			MODERN,
			"[http_server]\nsockets = [\n  \"[::]:1\",\n]\nb = \"\"\"\n[x]\ntls_profile = 1\n\"\"\"\n" MODERN
			"[x]\n"},
		/* A text may end with quotes of its own. */
		{"[http_server]\na = [\"\"\"x\"\"\"\"]\nb = '''''y'''''\n[x]\nc = 1\n", MODERN,
			"[http_server]\na = [\"\"\"x\"\"\"\"]\nb = '''''y'''''\n" MODERN
			"[x]\nc = 1\n"},
		{"[http_server]\na = '#' # [\ntls_ciphers = [\n\"A\"\n]\nc = 2\n", MODERN,
			"[http_server]\na = '#' # [\n" MODERN "c = 2\n"},
		{"[http_server]\r\na = 1\r\n[x]\r\n", "tls_groups = \"A\"\n",
			"[http_server]\r\na = 1\r\ntls_groups = \"A\"\r\n[x]\r\n"},
		{"[http_server]\r", "tls_groups = \"A\"\n",
			"[http_server]\r\ntls_groups = \"A\"\r\n"},
		{"[x]\na = 1\n[http_server]\r", "tls_groups = \"A\"\n",
			"[x]\na = 1\n[http_server]\r\ntls_groups = \"A\"\n"},
		/* Other spellings of the same. */
		{"[ \"http_server\" ]\n\"tls_profile\" = \"old\"\na = 1\n", MODERN,
			"[ \"http_server\" ]\n" MODERN "a = 1\n"},
		{"http_server.sockets = []\n'http_server' . tls_profile = \"old\"\n[x]\n", MODERN,
			"http_server.sockets = []\nhttp_server.tls_profile = \"modern\"\n[x]\n"},
		{"http_server.tls_profile = \"old\"\n", MODERN, /* nothing else */
			"http_server.tls_profile = \"modern\"\n"},
		{"a = 1\nhttp_server.sockets = [\n]\nb = 1\n", CUSTOM,
			"a = 1\nhttp_server.sockets = [\n]\nhttp_server.tls_profile = \"custom\"\n"
			"http_server.tls_ciphers = \"A\"\nb = 1\n"},
		{"tls_profile = 1\n[http_server]\ntls_other = 2\n", "tls_groups = \"A\"\n",
			"tls_profile = 1\n[http_server]\ntls_other = 2\ntls_groups = \"A\"\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *once = merge(table[i][0], table[i][1]);
		cleanup_free char *twice = merge(once, table[i][1]);

		cr_assert_str_eq(once, table[i][2]);
		if (strstr(table[i][1], "tls_"))
			cr_assert_str_eq(twice, once, "merged twice");
	}
}

Test(render_kbstls, a_profile_becomes_another_one_and_back)
{
	cleanup_free char *custom = merge(OLD, CUSTOM);
	cleanup_free char *back =
		merge(custom, "# TLS configuration - Mozilla old profile\ntls_profile = \"old\"\n");

	cr_assert(strstr(custom, "tls_ciphers") && !strstr(custom, "\"old\""));
	cr_assert_str_eq(back, OLD);
}

/* Written by hand, with blank lines wherever they please the eye. */
#define BY_HAND                                                                                       \
	"# ours\n\n[http_server]\n\nsockets = [\"0.0.0.0:8080\"]\n\nworker_count = 8\n"               \
	"insecure_http = false\n\n# TLS configuration - Mozilla old profile\ntls_profile = \"old\"\n" \
	"\n\n[admin]\n\n\na = 1\n"

Test(render_kbstls, blank_lines_never_add_up)
{
	static const char *const lines[] = {MODERN, CUSTOM, "tls_groups = \"X25519\"\n",
		"# TLS configuration - Mozilla old profile\ntls_profile = \"old\"\n"};
	cleanup_free char *text = xstrdup(BY_HAND);

	for (size_t i = 0; i < 12; i++) {
		char *next = merge(text, lines[i % ARRAY_LEN(lines)]);

		free(text);
		text = next;
		cr_assert_null(strstr(text, "\n\n\n\n"), "three blank lines: %s", text);
		cr_assert(strstr(text, "worker_count = 8\ninsecure_http = false\n\n"), "%s", text);
		cr_assert_eq(!strstr(text, "tls_profile"), i % ARRAY_LEN(lines) == 2, "%s", text);
	}
	cr_assert_str_eq(text, BY_HAND);
}

/* The lines that it has already: the Trustee operator's own files, and the one made here. */
Test(render_kbstls, a_file_merged_with_itself_stays)
{
	const struct model_trusteeconfig *t = tc(RESTRICTED);
	cleanup_json struct json_object *data = render_child_data(t, RENDER_CHILD_CONFIG);
	const char *made = json_get_str(data, MODEL_KBSFILE_KEY);
	cleanup_free char *once = merge(made, render_child_tls(t));
	cleanup_free char *twice = merge(once, render_child_tls(t));

	cr_assert_str_eq(once, made);
	cr_assert_str_eq(twice, made);
	kobj_unref(&t->obj);
}

Test(render_kbstls, what_cannot_be_merged_is_refused)
{
	static const char *const bad[] = {"", "[http]\n", "http_server = {}\n",
		"[http_server]\na = \n", "[[http_server]]\n", "[http_server]\na = \"\"\"\n"};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		err = (struct err)ERR_INIT;
		cr_assert_eq(render_kbstls_merge(bad[i], MODERN, &out, &err), -1, "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

/* ---- the KbsConfig */

static const struct model_kbsconfig *kbs(const char *meta, const char *spec)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"t-kbs-config\",\"uid\":\"k\",\"resourceVersion\":\"1\",%s},\"spec\":%s}",
		meta, spec);
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;
	const struct kobj *k = model_kbsconfig_extract(o, &err);

	cr_assert(o && k, "%s", err.text);
	return model_kbsconfig(k);
}

#define OWNED(profile)                                                                             \
	"\"annotations\":{\"trusted-execution-clusters.io/profile\":\"" profile "\"},"             \
	"\"ownerReferences\":[{\"uid\":\"u\",\"controller\":true}]"

static char *patch(const char *spec, const char *meta, const char *have)
{
	const struct model_trusteeconfig *t = tc(spec);
	const struct model_kbsconfig *k = kbs(meta, have);
	cleanup_json struct json_object *o = render_child_kbsconfig(t, "ns", k);
	char *text = o ? json_text(o) : xstrdup("nothing");

	kobj_unref(&t->obj);
	kobj_unref(&k->obj);
	return text;
}

Test(render_trusteeconfig, a_kbsconfig_as_made_needs_no_patch)
{
	static const char *const specs[] = {PERMISSIVE, RESTRICTED,
		"{\"profileType\":\"Permissive\",\"ibmSE\":{\"pvName\":\"v\"},\"kbsServiceType\":\"NodePort\"}"};

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		const struct model_trusteeconfig *t = tc(specs[i]);
		cleanup_json struct json_object *o = render_child_kbsconfig(t, "ns", NULL), *spec;
		cleanup_free char *text = NULL, *again = NULL;

		cr_assert(json_object_object_get_ex(o, "spec", &spec));
		json_object_get(spec);
		text = json_text(spec);
		again = patch(specs[i], i == 1 ? OWNED("Restricted") : OWNED("Permissive"), text);
		cr_assert_str_eq(again, "nothing");
		kobj_unref(&t->obj);
	}
}

/* The one of the TrusteeConfig is in force. */
Test(render_trusteeconfig, a_writable_repository_is_that_of_the_trusteeconfig)
{
	static const char *const rows[][3] = {
		/* its own, the KbsConfig's, that of the KbsConfig afterwards */
		{NULL, NULL, NULL},
		{"true", NULL, "true"},
		{"false", "true", "false"},
		{NULL, "true", "gone"},
		{"true", "true", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct model_trusteeconfig *t = tc_with(rows[i][0], PERMISSIVE);
		cleanup_json struct json_object *whole = render_child_kbsconfig(t, "ns", NULL);
		cleanup_free char *spec = json_text(json_get_obj(whole, "spec"));
		cleanup_free char *have =
			rows[i][1] ? xasprintf("\"%s\"", rows[i][1]) : xstrdup("null");
		cleanup_strbuf struct strbuf meta = STRBUF_INIT;
		const struct model_kbsconfig *k;
		cleanup_json struct json_object *o = NULL;
		struct json_object *marks, *value = NULL;

		strbuf_addf(&meta,
			"\"annotations\":{\"trusted-execution-clusters.io/profile\":\"Permissive\","
			"\"" MODEL_KBSCONFIG_WRITABLE "\":%s},"
			"\"ownerReferences\":[{\"uid\":\"u\",\"controller\":true}]",
			have);
		k = kbs(strbuf_str(&meta), spec);
		o = render_child_kbsconfig(t, "ns", k);
		marks = json_get_obj(o, "metadata/annotations");
		cr_expect_eq(
			marks && json_object_object_get_ex(marks, MODEL_KBSCONFIG_WRITABLE, &value),
			rows[i][2] != NULL, "%zu", i);
		cr_expect(str_eq(json_object_get_string(value),
				  str_eq(rows[i][2], "gone") ? NULL : rows[i][2]),
			"%zu", i);
		cr_expect(str_eq(kobj_annotation(whole, MODEL_KBSCONFIG_WRITABLE), rows[i][0]));
		kobj_unref(&t->obj);
		kobj_unref(&k->obj);
	}
}

#define FULL                                                                                       \
	"\"kbsConfigMapName\":\"t-kbs-config\",\"kbsAuthSecretName\":\"t-auth-secret\","           \
	"\"kbsRvpsRefValuesConfigMapName\":\"t-rvps-reference-values\","                           \
	"\"kbsAttestationPolicyConfigMapName\":\"t-attestation-policy-cpu\","                      \
	"\"kbsGpuAttestationPolicyConfigMapName\":\"t-attestation-policy-gpu\","                   \
	"\"kbsResourcePolicyConfigMapName\":\"t-resource-policy\","                                \
	"\"kbsDeploymentType\":\"AllInOneDeployment\",\"kbsSecretResources\":[\"mine\"]"

Test(render_trusteeconfig, what_users_may_set_is_kept_and_the_rest_is_set_back)
{
	static const char *const table[][4] = {
		{PERMISSIVE, OWNED("Permissive"),
			"{" FULL ",\"KbsEnvVars\":{\"RUST_LOG\":\"info\",\"A\":\"b\"},"
			"\"KbsDeploymentSpec\":{\"replicas\":3},\"ibmSEConfigSpec\":{\"certStorePvc\":\"mine\"},"
			"\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"c\"}]}}",
			"nothing"},
		{PERMISSIVE, OWNED("Permissive"),
			"{" FULL
			",\"KbsEnvVars\":{\"RUST_LOG\":\"info\"},\"kbsHttpsKeySecretName\":\"x\","
			"\"kbsAsConfigMapName\":\"y\",\"kbsServiceType\":\"NodePort\"}",
			"{\"metadata\":{},\"spec\":{\"kbsAsConfigMapName\":null,\"kbsHttpsKeySecretName\":null,"
			"\"kbsServiceType\":\"ClusterIP\"}}"},
		/* Debug logs go with the profile that brought them, and only then. */
		{RESTRICTED, OWNED("Permissive"),
			"{" FULL ",\"KbsEnvVars\":{\"RUST_LOG\":\"debug\"},"
			"\"kbsHttpsKeySecretName\":\"t-https-key-secret\",\"kbsHttpsCertSecretName\":\"t-https-cert-secret\","
			"\"kbsAttestationKeySecretName\":\"t-attestation-key-secret\","
			"\"kbsAttestationCertSecretName\":\"t-attestation-cert-secret\"}",
			"{\"metadata\":{\"annotations\":{\"trusted-execution-clusters.io/profile\":\"Restricted\"}},"
			"\"spec\":{\"KbsEnvVars\":{\"RUST_LOG\":null}}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		cleanup_free char *text = patch(table[i][0], table[i][1], table[i][2]);

		cr_assert_str_eq(text, table[i][3]);
	}
}

Test(render_trusteeconfig, labels_and_keys_are_the_trustee_operators)
{
	const struct model_trusteeconfig *t = tc(RESTRICTED);
	cleanup_secret struct secret *value = secret_new_copy("v", 1);
	cleanup_secret struct secret *text =
		render_child_secret(t, "ns", RENDER_CHILD_TOKEN_CERT, value, NULL, "hash");
	cleanup_free char *s = xstrndup((const char *)secret_peek(text), secret_len(text));
	cleanup_json struct json_object *o = json_tokener_parse(s);

	cr_assert_str_eq(json_get_str(o, "metadata/name"), "t-attestation-cert-secret");
	cr_assert_str_eq(json_get_str(o, "data/token.crt"), "dg==");
	cr_assert(strstr(s, "\"app.kubernetes.io/component\":\"attestation\""));
	cr_assert(strstr(s, "\"app.kubernetes.io/managed-by\":\"trustee-operator\""));
	kobj_unref(&t->obj);
}
