/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/str.h"
#include "tec/k8s/kubeconfig.h"

#define CTX                                                                                        \
	"contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]\ncurrent-context: c\n"
#define CLUSTER         "clusters: [{name: k, cluster: {server: 'https://h:6443'}}]\n"
#define USER            "users: [{name: u, user: {token: t}}]\n"
#define WITH_CLUSTER(c) CTX USER "clusters: [{name: k, cluster: {" c "}}]\n"
#define WITH_USER(u)    CTX CLUSTER "users: [{name: u, user: {" u "}}]\n"
#define WITH_EXEC(e)    WITH_USER("exec: {apiVersion: client.authentication.k8s.io/v1, " e "}")
#define B64             "aGVsbG8=" /* hello */

static struct k8s_kubeconfig *parse(const char *text, struct err *err)
{
	err_clear(err);
	return k8s_kubeconfig_parse(text, strlen(text), "/dir", NULL, err);
}

static struct k8s_kubeconfig *good(const char *text)
{
	struct err err = ERR_INIT;
	struct k8s_kubeconfig *k = parse(text, &err);

	cr_assert(k, "%s\n%s", err.text, text);
	return k;
}

static bool is(const struct secret *s, const char *text)
{
	return s && secret_len(s) == strlen(text) &&
	       memcmp(secret_peek(s), text, strlen(text)) == 0;
}

static void no_secrets(void)
{
	cr_assert_eq(secret_count(), 0);
}

TestSuite(k8s_kubeconfig, .fini = no_secrets);

Test(k8s_kubeconfig, a_token_and_a_ca_in_the_file)
{
	struct k8s_kubeconfig *k = good(
		"apiVersion: v1\nkind: Config\npreferences: {}\n" CTX
		"clusters:\n- name: other\n  cluster: {server: 'https://x'}\n- name: k\n  cluster:\n"
		"    server: HTTPS://10.0.0.1:6443/\n    certificate-authority-data: |\n      aGVs\n"
		"      bG8=\n    tls-server-name: api.test\n    extensions: [{name: x}]\n"
		"users:\n- name: u\n  user:\n    token: abc.def\n---\n# nothing more\n");

	cr_assert_str_eq(k->server, "https://10.0.0.1:6443");
	cr_assert_str_eq(k->tls_server_name, "api.test");
	cr_assert_str_eq(k->namespace_, "n");
	cr_assert(is(k->token, "abc.def"));
	cr_assert(is(k->ca_data, "hello"));
	cr_assert_not(k->insecure);
	cr_assert_null(k->exec_argv);
	k8s_kubeconfig_free(k);
}

Test(k8s_kubeconfig, json_is_yaml)
{
	struct k8s_kubeconfig *k =
		good("{\"kind\":\"Config\",\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\","
		     "\"context\":{\"cluster\":\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":"
		     "{\"server\":\"http://127.0.0.1:8001\",\"proxy-url\":\"\"}}],\"users\":null}");

	cr_assert_str_eq(k->server, "http://127.0.0.1:8001");
	cr_assert_null(k->token);
	cr_assert_null(k->namespace_);
	k8s_kubeconfig_free(k);
}

Test(k8s_kubeconfig, files_are_relative_to_the_folder)
{
	struct k8s_kubeconfig *k = good(CTX
		"clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: ca.pem}}]\n"
		"users: [{name: u, user: {client-certificate: /abs/c.pem, client-key: sub/k.pem, tokenFile: t}}]\n");

	cr_assert_str_eq(k->ca_file, "/dir/ca.pem");
	cr_assert_str_eq(k->cert_file, "/abs/c.pem");
	cr_assert_str_eq(k->key_file, "/dir/sub/k.pem");
	cr_assert_str_eq(k->token_file, "/dir/t");
	k8s_kubeconfig_free(k);
}

Test(k8s_kubeconfig, an_exec_plugin)
{
	struct k8s_kubeconfig *k = good(WITH_EXEC(
		"command: ./bin/plug, args: [token, \"-i\", '5'], interactiveMode: Never, "
		"provideClusterInfo: true, installHint: get it, "
		"env: [{name: A, value: b=c}, {name: E, value: ''}]"));

	cr_assert_str_eq(k->exec_argv[0], "/dir/./bin/plug");
	cr_assert_str_eq(k->exec_argv[1], "token");
	cr_assert_str_eq(k->exec_argv[3], "5");
	cr_assert_null(k->exec_argv[4]);
	cr_assert_str_eq(k->exec_env[0], "A=b=c");
	cr_assert_str_eq(k->exec_env[1], "E=");
	cr_assert_null(k->exec_env[2]);
	cr_assert(k->exec_cluster_info);
	cr_assert_str_eq(k->exec_api_version, "client.authentication.k8s.io/v1");
	k8s_kubeconfig_free(k);
	k = good(WITH_USER(
		"exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: plug, env: null}"));
	cr_assert_str_eq(k->exec_argv[0], "plug");
	k8s_kubeconfig_free(k);
}

static const struct {
	const char *text, *says;
	enum err_kind kind;
} bad[] = {
	{"", "", ERR_INVALID},
	{"[]", "not a map", ERR_INVALID},
	{"a: [", "", ERR_INVALID},
	{"kind: Pod", "kind is not Config", ERR_INVALID},
	{"kind: [1]", "kind", ERR_INVALID},
	{CLUSTER USER "contexts: []", "current-context is not set", ERR_NOT_FOUND},
	{CLUSTER USER "current-context: x", "\"x\" in contexts", ERR_NOT_FOUND},
	{CLUSTER USER "current-context: x\ncontexts: {name: x}", "\"x\" in contexts",
		ERR_NOT_FOUND},
	{CLUSTER USER "current-context: x\ncontexts: [1, null, {name: 5}, {name: x}]",
		"has no context", ERR_INVALID},
	{CLUSTER USER "current-context: x\ncontexts: [{name: x, context: {user: u}}]",
		"does not name a cluster", ERR_INVALID},
	{CTX USER, "\"k\" in clusters", ERR_NOT_FOUND},
	{CTX CLUSTER, "\"u\" in users", ERR_NOT_FOUND},
	{WITH_CLUSTER(""), "server is not", ERR_INVALID},
	{WITH_CLUSTER("server: 5"), "server is not a string", ERR_INVALID},
	{WITH_CLUSTER("server: 'ftp://h'"), "server is not an https", ERR_INVALID},
	{WITH_CLUSTER("server: h:6443"), "server is not an https", ERR_INVALID},
	{WITH_CLUSTER("server: HTTPS:/h"), "server is not an https", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://'"), "does not have a host", ERR_INVALID},
	{WITH_CLUSTER("server: 'https:///x'"), "does not have a host", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://u:p@h'"), "user information", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h?x'"), "query", ERR_INVALID},
	{WITH_CLUSTER("server: \"https://h\\r\\nX: y\""), "blank", ERR_INVALID},
	{WITH_CLUSTER("server: 'http://h'"), "plain http", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', proxy-url: 'socks5://u:pw@p'"),
		"proxy-url: proxies of type socks5 are not supported", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', proxy-url: 'http:///p'"), "proxy-url: the proxy is not",
		ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', insecure-skip-tls-verify: 'true'"), "not a boolean",
		ERR_INVALID},
	{WITH_CLUSTER(
		 "server: 'https://h', insecure-skip-tls-verify: true, certificate-authority: x"),
		"exclude each other", ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', certificate-authority-data: '!!'"), "not base64",
		ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', certificate-authority-data: \"\\n\""), "not base64",
		ERR_INVALID},
	{WITH_CLUSTER("server: 'https://h', certificate-authority-data: [x]"), "not a string",
		ERR_INVALID},
	{WITH_USER("auth-provider: {name: gcp}"), "auth-provider is not supported", ERR_INVALID},
	{WITH_USER("username: a, password: b"), "username is not supported", ERR_INVALID},
	{WITH_USER("password: 5"), "password is not supported", ERR_INVALID},
	{WITH_USER("token: t, as: root"), "impersonation", ERR_INVALID},
	{WITH_USER("token: t, as-uid: x"), "impersonation", ERR_INVALID},
	{WITH_USER("token: t, as-groups: [g]"), "impersonation", ERR_INVALID},
	{WITH_USER("token: t, as-user-extra: {a: [b]}"), "impersonation", ERR_INVALID},
	{WITH_USER("token: 5"), "token is not a string", ERR_INVALID},
	{WITH_USER("token: 'a b'"), "blanks", ERR_INVALID},
	{WITH_USER("token: \"a\\r\\nX: y\""), "blanks", ERR_INVALID},
	{WITH_USER("token: \"a\\0b\""), "", ERR_INVALID},
	{WITH_USER("client-certificate-data: " B64), "must be set together", ERR_INVALID},
	{WITH_USER("client-key: k"), "must be set together", ERR_INVALID},
	{WITH_USER("exec: 5"), "exec is not a map", ERR_INVALID},
	{WITH_USER("exec: {command: x}"), "apiVersion must be", ERR_INVALID},
	{WITH_USER("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}"),
		"apiVersion must be", ERR_INVALID},
	{WITH_EXEC("interactiveMode: Never"), "command is missing", ERR_INVALID},
	{WITH_EXEC("command: x, interactiveMode: Always"), "needs a terminal", ERR_INVALID},
	{WITH_EXEC("command: x, interactiveMode: Maybe"), "interactiveMode", ERR_INVALID},
	{WITH_EXEC("command: x, args: y"), "args is not a list", ERR_INVALID},
	{WITH_EXEC("command: x, args: [y, 5]"), "args[1]", ERR_INVALID},
	{WITH_EXEC("command: x, env: {a: b}"), "env is not a list", ERR_INVALID},
	{WITH_EXEC("command: x, env: [{name: a}]"), "env[0]", ERR_INVALID},
	{WITH_EXEC("command: x, env: [{name: a=b, value: c}]"), "env[0]", ERR_INVALID},
	{WITH_EXEC("command: x, env: [5]"), "env[0]", ERR_INVALID},
	{WITH_USER("token: t, exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
		"exclude each other", ERR_INVALID},
};

Test(k8s_kubeconfig, what_cannot_work_is_refused_by_its_name)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_assert_null(parse(bad[i].text, &err), "%s", bad[i].text);
		cr_assert_eq(err.kind, bad[i].kind, "%zu %s: %s", i, bad[i].text, err.text);
		cr_assert(strstr(err.text, bad[i].says), "%zu: \"%s\" lacks \"%s\"", i, err.text,
			bad[i].says);
		cr_assert_eq(secret_count(), 0, "%s", bad[i].text);
	}
}

Test(k8s_kubeconfig, errors_never_show_a_token)
{
	struct err err = ERR_INIT;

	cr_assert_null(parse(WITH_USER("token: 'top secret'"), &err));
	cr_assert_null(strstr(err.text, "top"));
	cr_assert_null(parse(
		WITH_USER("client-key-data: topsecret, client-certificate-data: " B64), &err));
	cr_assert_null(strstr(err.text, "topsecret"));
}

Test(k8s_kubeconfig, limits_hold_for_tokens_and_data)
{
	char *big = xmalloc(140000);
	struct err err = ERR_INIT;

	memset(big, 'A', 139999);
	big[139999] = '\0';
	cleanup_free char *token =
		xasprintf(CTX CLUSTER "users: [{name: u, user: {token: %s}}]", big);
	cleanup_free char *data = xasprintf(CTX USER
		"clusters: [{name: k, cluster: {server: 'https://h', certificate-authority-data: %s}}]",
		big);

	free(big);
	cr_assert_null(parse(token, &err));
	cr_assert(strstr(err.text, "128 KiB"), "%s", err.text);
	cr_assert_null(parse(data, &err));
	cr_assert(strstr(err.text, "128 KiB"), "%s", err.text);
}

Test(k8s_kubeconfig, the_named_context_wins)
{
	static const char text[] =
		CLUSTER USER "current-context: a\ncontexts:\n- {name: a, context: {cluster: k}}\n"
			     "- {name: b, context: {cluster: k, user: u, namespace: bb}}\n";
	struct err err = ERR_INIT;
	struct k8s_kubeconfig *k = k8s_kubeconfig_parse(text, strlen(text), ".", "b", &err);

	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(k->namespace_, "bb");
	k8s_kubeconfig_free(k);
	k8s_kubeconfig_free(NULL);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

Test(k8s_kubeconfig, a_file_is_loaded_and_its_folder_used)
{
	char dir[] = "/tmp/tec-kubeconfig-XXXXXX";
	struct err err = ERR_INIT;

	cr_assert(mkdtemp(dir));
	cleanup_free char *path = xasprintf("%s/config", dir), *token = xasprintf("%s/t", dir);

	write_file(path, WITH_USER("tokenFile: t"));
	struct k8s_kubeconfig *k = k8s_kubeconfig_load(path, NULL, &err);

	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(k->token_file, token);
	k8s_kubeconfig_free(k);
	write_file(path, "kind: Pod");
	cr_assert_null(k8s_kubeconfig_load(path, NULL, &err));
	cr_assert(strstr(err.text, path), "%s", err.text);
	unlink(path);
	err_clear(&err);
	cr_assert_null(k8s_kubeconfig_load(path, NULL, &err));
	cr_assert_eq(err.kind, ERR_NOT_FOUND);
	cr_assert(strstr(err.text, "--kubeconfig"), "%s", err.text);
	err_clear(&err);
	cr_assert_null(k8s_kubeconfig_load("/a:/b", NULL, &err));
	cr_assert(strstr(err.text, "name one file"), "%s", err.text);
	err_clear(&err);
	cr_assert_null(k8s_kubeconfig_load(dir, NULL, &err));
	cr_assert_eq(err.kind, ERR_INVALID);
	rmdir(dir);
}

Test(k8s_kubeconfig, in_cluster)
{
	char dir[] = "/tmp/tec-incluster-XXXXXX";
	struct err err = ERR_INIT;
	struct k8s_kubeconfig *k;

	cr_assert(mkdtemp(dir));
	cleanup_free char *token = xasprintf("%s/token", dir), *ca = xasprintf("%s/ca.crt", dir),
			  *ns = xasprintf("%s/namespace", dir);

	cr_assert_null(k8s_kubeconfig_in_cluster(NULL, NULL, dir, &err));
	cr_assert_eq(err.kind, ERR_NOT_FOUND);
	cr_assert(strstr(err.text, "--kubeconfig"));
	err_clear(&err);
	cr_assert_null(k8s_kubeconfig_in_cluster("10.0.0.1", "99999", dir, &err));
	err_clear(&err);
	cr_assert_null(k8s_kubeconfig_in_cluster("10.0.0.1", "443", dir, &err));
	cr_assert(strstr(err.text, "automount"), "%s", err.text);
	err_clear(&err);
	write_file(token, "t");
	write_file(ca, "c");
	k = k8s_kubeconfig_in_cluster("10.0.0.1", "443", dir, &err);
	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(k->server, "https://10.0.0.1:443");
	cr_assert_null(k->namespace_);
	k8s_kubeconfig_free(k);
	write_file(ns, "tec\n");
	k = k8s_kubeconfig_in_cluster("fd00::1", "443", dir, &err);
	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(k->server, "https://[fd00::1]:443");
	cr_assert_str_eq(k->namespace_, "tec");
	cr_assert_str_eq(k->token_file, token);
	cr_assert_str_eq(k->ca_file, ca);
	k8s_kubeconfig_free(k);
	unlink(token);
	unlink(ca);
	unlink(ns);
	rmdir(dir);
}

Test(k8s_kubeconfig, options_win_over_the_environment_and_that_over_what_is_found)
{
	static const char context[] =
		"{clusters: [{name: c, cluster: {server: 'http://a'}}], users: [{name: u, user: {}}],"
		" contexts: [{name: x, context: {cluster: c, user: u, namespace: found}}],"
		" current-context: x}";
	char dir[] = "/tmp/tec-choose-XXXXXX";

	cr_assert(mkdtemp(dir));
	cleanup_free char *token = xasprintf("%s/token", dir), *ca = xasprintf("%s/ca.crt", dir),
			  *ns = xasprintf("%s/namespace", dir), *file = xasprintf("%s/config", dir),
			  *none = xasprintf("%s/none", dir);
	const struct {
		struct k8s_kubeconfig_from from;
		const char *server, *ns_or_error;
	} c[] = {
		{{.file = file}, "http://a", "found"},
		{{.env_file = file}, "http://a", "found"},
		{{.file = file, .env_file = none, .host = "h", .port = "1"}, "http://a", "found"},
		{{.file = none, .env_file = file}, NULL, none},
		{{.file = "", .env_file = file}, NULL, ""},
		{{.host = "h", .port = "1"}, "https://h:1", "pods"},
		{{.env_file = "", .host = "h", .port = "1"}, "https://h:1", "pods"},
		{{.port = "1"}, NULL, "--kubeconfig"},
		{{.file = file, .namespace_ = "a", .env_namespace = "b"}, "http://a", "a"},
		{{.file = file, .env_namespace = "b"}, "http://a", "b"},
		{{.file = file, .env_namespace = ""}, "http://a", "found"},
		{{.file = file, .namespace_ = "../a"}, NULL, "--namespace"},
		{{.file = file, .namespace_ = ""}, NULL, "--namespace"},
		{{.file = file, .env_namespace = "A"}, NULL, "\"A\" is not a valid namespace"},
	};

	write_file(token, "t");
	write_file(ca, "c");
	write_file(ns, "pods\n");
	write_file(file, context);
	for (size_t i = 0; i < ARRAY_LEN(c); i++) {
		struct k8s_kubeconfig_from from = c[i].from;
		struct err err = ERR_INIT;
		struct k8s_kubeconfig *k;

		from.root = dir;
		k = k8s_kubeconfig_choose(&from, &err);
		cr_expect_eq(k != NULL, c[i].server != NULL, "%zu: %s", i, err.text);
		if (k) {
			cr_expect_str_eq(k->server, c[i].server);
			cr_expect_str_eq(k->namespace_, c[i].ns_or_error);
		} else {
			cr_expect(strstr(err.text, c[i].ns_or_error), "%zu: %s", i, err.text);
		}
		k8s_kubeconfig_free(k);
	}
	unlink(ns);
	struct err err = ERR_INIT;
	cr_expect_null(k8s_kubeconfig_choose(
		&(struct k8s_kubeconfig_from){.host = "h", .port = "1", .root = dir}, &err));
	cr_expect(strstr(err.text, "POD_NAMESPACE"), "%s", err.text);
	unlink(token);
	unlink(ca);
	unlink(file);
	rmdir(dir);
}
