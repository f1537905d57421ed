/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "model/extract.h"
#include "tec/model/input.h"

/* A ConfigMap with this kbs-config.toml. */
static const struct kobj *file(const char *toml)
{
	cleanup_json struct json_object *o = json_tokener_parse("{" META("c") "}}");
	struct err err = ERR_INIT;
	const struct kobj *k;

	json_add(o, "data", json_add_str(json_obj(), MODEL_KBSFILE_KEY, toml));
	k = model_input_configmap_extract(o, &err);
	cr_assert(k, "%s", err.text);
	return k;
}

Test(model_kbsfile, the_walkthroughs_is_legacy)
{
	cleanup_kobj const struct kobj *k = file(
		"[http_server]\nsockets = [\"0.0.0.0:8080\"]\ninsecure_http = false\n"
		"private_key = \"/etc/https-key/https.key\"\n"
		"certificate = \"/etc/https-cert/https.crt\"\n"
		"[admin]\nauth_public_key = \"/etc/auth-secret/publicKey\"\n"
		"[attestation_service.attestation_token_broker]\npolicy_dir = \"/o/policies\"\n"
		"[attestation_service.rvps_config.storage]\nfile_path = \"/o/rv/v.json\"\n"
		"[[plugins]]\nname = \"resource\"\ntype = \"LocalFs\"\ndir_path = \"/o/repo\"\n"
		"[policy_engine]\npolicy_path = \"/o/opa/policy.rego\"\n");
	const struct model_kbsfile *f = &model_input(k)->file;

	cr_assert(f->there && f->legacy && !f->insecure_http);
	cr_assert_null(f->why);
	cr_assert_eq(f->port, 8080);
	cr_assert_str_eq(f->policy_path, "/o/opa/policy.rego");
	cr_assert_str_eq(f->resource_dir, "/o/repo");
	cr_assert_str_eq(f->values_path, "/o/rv/v.json");
	cr_assert_str_eq(f->policy_dir, "/o/policies");
	cr_assert_str_eq(f->files, "https-key/https.key\nhttps-cert/https.crt\n"
				   "auth-secret/publicKey\n");
}

Test(model_kbsfile, the_current_form)
{
	cleanup_kobj const struct kobj *k =
		file("[http_server]\nsockets = [\"[::]:9000\"]\ninsecure_http = true\n"
		     "[attestation_token]\ntrusted_certs_paths = [\"/etc/attestation-cert/a\", "
		     "\"/etc/attestation-cert/b\"]\n"
		     "[storage_backend.backends.local_fs]\ndir_path = \"/s\"\n"
		     "[[plugins]]\nname = \"resource\"\nstorage_backend_type = \"kvstorage\"\n");
	const struct model_kbsfile *f = &model_input(k)->file;

	cr_assert(f->there && !f->legacy && f->insecure_http);
	cr_assert_eq(f->port, 9000);
	cr_assert_str_eq(f->storage_dir, "/s");
	cr_assert_null(f->values_dir);
	cr_assert_str_eq(f->files, "attestation-cert/a\nattestation-cert/b\n");
}

Test(model_kbsfile, a_path_may_be_a_url)
{
	cleanup_kobj const struct kobj *k = file(
		"[http_server]\nprivate_key = \"file:///etc/https-key/https.key\"\n"
		"[attestation_token]\ntrusted_certs_paths = [\"file:///etc/attestation-cert/a\", "
		"\"http://etc/attestation-cert/b\", \"file://etc/attestation-cert/c\"]\n"
		"[policy_engine]\npolicy_path = \"file:///o/opa/policy.rego\"\n"
		"[storage_backend.backends.local_fs]\ndir_path = \"file:///s\"\n");
	const struct model_kbsfile *f = &model_input(k)->file;

	cr_assert(str_eq(f->why, NULL), "%s", f->why);
	cr_assert_str_eq(f->files, "https-key/https.key\nattestation-cert/a\n");
	cr_assert_str_eq(f->policy_path, "/o/opa/policy.rego");
	cr_assert_str_eq(f->storage_dir, "/s");
}

Test(model_kbsfile, an_admin_section_has_its_time)
{
	static const struct {
		const char *toml;
		bool older;
	} t[] = {
		{"", false},
		{"[admin]\nauthorization_mode = \"DenyAll\"", false},
		{"[admin]\ntype = \"Simple\"", true},
		{"[admin]\ninsecure_api = false", true},
		{"admin = {type = \"DenyAll\"}", true},
		{"[attestation_service]\ntype = \"coco_as_builtin\"", false},
		{"admin = \"type\"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_kobj const struct kobj *k = file(t[i].toml);

		cr_expect_eq(model_input(k)->file.older_admin, t[i].older, "%s", t[i].toml);
	}
}

Test(model_kbsfile, what_cannot_be_mounted_is_named)
{
	static const struct {
		const char *toml, *why;
	} t[] = {
		{"", NULL},
		{"[a", "line 1: unterminated table name"},
		{"a = 1\na = 2", "line 2: duplicate key"},
		{"[policy_engine]\npolicy_path = \"opa/p.rego\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = \"file://a/p.rego\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = \"file:///a/../p\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = \"/a/../p\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = \"/a/b:c/p\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = 7",
			"policy_engine.policy_path is not an absolute path"},
		{"[policy_engine]\npolicy_path = \"/a/\"",
			"policy_engine.policy_path is not an absolute path"},
		{"[storage_backend.backends.local_fs]\ndir_path = \"x\"",
			"storage_backend.backends.local_fs.dir_path is not an absolute path"},
		{"[http_server]\nsockets = [\"0.0.0.0\"]",
			"http_server.sockets does not begin with an address and a port"},
		{"[http_server]\nsockets = [8080]",
			"http_server.sockets does not begin with an address and a port"},
		{"[http_server]\nsockets = [\"a:70000\"]",
			"http_server.sockets does not begin with an address and a port"},
		{"plugins = 1\nhttp_server = []", NULL},
		{"[[plugins]]\nname = \"resource\"\ntype = \"LocalFs\"\ndir_path = [1]",
			"dir_path is not an absolute path"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_kobj const struct kobj *k = file(t[i].toml);
		const char *why = model_input(k)->file.why;

		cr_expect(str_eq(why, t[i].why), "%s: %s", t[i].toml, why ? why : "-");
	}
}

static bool join(void *arg, const char *key)
{
	strbuf_addf(arg, "%s,", key);
	return true;
}

Test(model_kbsfile, only_keys_of_a_directory_below_etc_count)
{
	cleanup_kobj const struct kobj *k = file("a = [\"/etc/auth-secret/k\", {b = "
						 "\"/etc/auth-secret/l\"}]\n"
						 "c = \"/etc/auth-secret/../x\"\n"
						 "d = \"/etc/auth-secret/a/b\"\n"
						 "e = \"/etc/auth-secret2/x\"\n"
						 "f = \"etc/auth-secret/x\"\n"
						 "g = \"/etc/passwd\"\n"
						 "h = \"/etc/auth-secret/.hidden\"\n"
						 "i = \"/etc/auth-secret/a b\"\n");
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	model_kbsfile_each(&model_input(k)->file, "auth-secret", join, &out);
	cr_assert_str_eq(out.data, "k,l,");
}

/* ---- model/input */

static const struct kobj *secret(const char *data)
{
	cleanup_free char *text = xasprintf("{" META("s") "},\"data\":%s}", data);

	return read_as(model_input_secret_extract, text);
}

Test(model_input, keys_are_sorted_and_the_hash_is_of_names_and_values)
{
	cleanup_kobj const struct kobj *a = secret("{\"b\":\"MQ==\",\"a\":\"Mg==\"}"),
				       *same = secret("{\"a\":\"Mg==\",\"b\":\"MQ==\"}"),
				       *value = secret("{\"a\":\"Mg==\",\"b\":\"MA==\"}"),
				       *moved = secret("{\"a\":\"Mg==b\",\"\":\"MQ==\"}"),
				       *none = secret("{}");

	cr_assert_str_eq(model_input(a)->keys, "a\nb\n");
	cr_assert_null(model_input(none)->keys);
	cr_assert(model_input_has(model_input(a), "b"));
	cr_assert_not(model_input_has(model_input(a), "c"));
	cr_assert_not(model_input_has(model_input(none), ""));
	cr_assert_eq(memcmp(model_input(a)->sha256, model_input(same)->sha256, SHA256_LEN), 0);
	cr_assert_neq(memcmp(model_input(a)->sha256, model_input(value)->sha256, SHA256_LEN), 0);
	cr_assert_neq(memcmp(model_input(a)->sha256, model_input(moved)->sha256, SHA256_LEN), 0);
}

Test(model_input, each_value_of_a_secret_has_its_own_hash)
{
	cleanup_kobj const struct kobj *a = secret("{\"b\":\"MQ==\",\"a\":\"Mg==\"}"),
				       *b = secret("{\"b\":\"MQ==\",\"a\":\"MA==\"}");
	const char *sums[] = {model_input_sum(model_input(a), "a"),
		model_input_sum(model_input(a), "b"), model_input_sum(model_input(b), "a"),
		model_input_sum(model_input(b), "b")};

	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		cr_assert(sums[i] && strlen(sums[i]) >= MODEL_INPUT_SUM_LEN);
	cr_expect_eq(memcmp(sums[1], sums[3], MODEL_INPUT_SUM_LEN), 0);
	cr_expect_neq(memcmp(sums[0], sums[2], MODEL_INPUT_SUM_LEN), 0);
	cr_expect_neq(memcmp(sums[0], sums[1], MODEL_INPUT_SUM_LEN), 0);
	cr_expect_null(model_input_sum(model_input(a), "c"));
}

Test(model_input, a_file_is_the_same_in_binary_data)
{
	static const struct {
		const char *data, *binary;
	} t[] = {
		{"\"a\":\"x\"", "\"a\":\"eA==\""},
		{"\"a\":\"\"", "\"a\":\"\""},
		{"\"reference_value\":\"[ ]\"", "\"reference_value\":\"WyBd\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *one = xasprintf("{" META("c") "},\"data\":{%s}}", t[i].data),
				  *two = xasprintf(
					  "{" META("c") "},\"binaryData\":{%s}}", t[i].binary);
		cleanup_kobj const struct kobj *a = read_as(model_input_configmap_extract, one),
					       *b = read_as(model_input_configmap_extract, two);

		cr_expect_str_eq(model_input(a)->keys, model_input(b)->keys);
		cr_expect_eq(memcmp(model_input(a)->sha256, model_input(b)->sha256, SHA256_LEN), 0,
			"%s", t[i].data);
		cr_expect_eq(model_input(a)->values_empty, model_input(b)->values_empty);
	}
}

Test(model_input, a_secrets_values_are_overwritten)
{
	cleanup_json struct json_object *o =
		json_tokener_parse("{" META("s") "},\"data\":{\"key1\":\"cmVzMXZhbDE=\"}}");
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *k = model_input_secret_extract(o, &err);
	const char *left =
		json_object_get_string(json_object_object_get(json_get_obj(o, "data"), "key1"));

	cr_assert(k);
	cr_assert_null(strstr(left, "cmVz"));
	cr_assert_not(model_input(k)->file.there);
}

Test(model_input, the_form_of_reference_values_is_known)
{
	static const struct {
		const char *value;
		bool list, empty;
	} t[] = {{"[\\n]\\n", true, true}, {" [ {} ]", true, false}, {"{}", false, false},
		{"", false, false}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *text = xasprintf(
			"{" META("c") "},\"data\":{\"reference_value\":\"%s\"}}", t[i].value);
		cleanup_kobj const struct kobj *k = read_as(model_input_configmap_extract, text);

		cr_expect_eq(model_input(k)->values_list, t[i].list, "%s", t[i].value);
		cr_expect_eq(model_input(k)->values_empty, t[i].empty, "%s", t[i].value);
	}
}
