/* SPDX-License-Identifier: MIT */
/*
 * YAML becomes JSON (base/yaml); then names lead from the context to the cluster and the user.
 * Everything is checked here once, so that a later failure to connect is about the network. An
 * unsupported member is an error that names it and is never skipped: with an ignored proxy or
 * impersonation we would talk to the wrong server or as the wrong user. The parsed tree and the
 * file's text contain keys and are wiped.
 */
#include "config.h"

#include "tec/k8s/kubeconfig.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/str.h"
#include "tec/base/yaml.h"
#include "tec/kobj/key.h"
#include "tec/net/httpc_proxy.h"

#define KUBECONFIG_MAX (1024u * 1024)

/* exec.env may contain passwords, so its values are wiped; other strings are no secrets. */
void k8s_kubeconfig_free(struct k8s_kubeconfig *k)
{
	if (!k)
		return;
	struct secret *const secrets[] = {k->ca_data, k->cert_data, k->key_data, k->token};
	char *const texts[] = {k->server, k->tls_server_name, k->namespace_, k->ca_file,
		k->cert_file, k->key_file, k->token_file, k->exec_api_version};

	for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
		secret_free(secrets[i]);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	for (char **p = k->exec_argv; p && *p; p++)
		free(*p);
	free(k->exec_argv);
	for (char **p = k->exec_env; p && *p; p++) {
		secret_wipe(*p, strlen(*p));
		free(*p);
	}
	free(k->exec_env);
	if (k->proxy)
		secret_wipe(k->proxy, strlen(k->proxy));
	free(k->proxy);
	free(k);
}

/* ---- members ---- */

/* Relative paths are relative to the folder of the kubeconfig, as in client-go. */
static char *in_dir(const char *dir, const char *path)
{
	return path[0] == '/' || !dir || !*dir ? xstrdup(path) : xasprintf("%s/%s", dir, path);
}

/* Decode a base64 member into a secret. Line breaks are allowed, as in Go's decoder. */
static int decode(
	const char *what, const char *name, const char *s, struct secret **out, struct err *err)
{
	cleanup_secret struct secret *flat = NULL;
	size_t len = strlen(s), n = 0;
	char *p;

	if (len > SECRET_MAX_LEN)
		return err_set(err, ERR_INVALID, "%s: %s is larger than 128 KiB", what, name);
	flat = secret_new(len);
	p = (char *)secret_bytes(flat);
	for (size_t i = 0; i < len; i++)
		if (s[i] != '\n' && s[i] != '\r')
			p[n++] = s[i];
	*out = n ? secret_from_b64(p, n) : NULL;
	if (!*out)
		return err_set(err, ERR_INVALID, "%s: %s is not base64", what, name);
	return 0;
}

/* A member of a map and where it goes, by its type; ends with name NULL. */
struct member {
	const char *name;
	const char **str;     /* borrowed from the map */
	bool *flag;           /* false when absent */
	char **file;          /* a path, owned by the caller */
	struct secret **data; /* from base64 */
};

/* Read the members of a map, which `what` names in errors. Absent, null and "" set NULL; another
 * type is an error. */
static int read_members(struct json_object *o, const char *what, const char *dir,
	const struct member *m, struct err *err)
{
	for (; m->name; m++) {
		struct json_object *v = NULL;
		const char *s = NULL;

		json_object_object_get_ex(o, m->name, &v);
		if (m->flag) {
			if (v && !json_object_is_type(v, json_type_boolean))
				return err_set(
					err, ERR_INVALID, "%s: %s is not a boolean", what, m->name);
			*m->flag = json_object_get_boolean(v);
			continue;
		}
		if (v && !(s = json_get_str(o, m->name)))
			return err_set(err, ERR_INVALID, "%s: %s is not a string", what, m->name);
		if (s && !*s)
			s = NULL;
		if (m->str)
			*m->str = s;
		else if (m->file)
			*m->file = s ? in_dir(dir, s) : NULL;
		else if (s && decode(what, m->name, s, m->data, err) != 0)
			return -1;
	}
	return 0;
}

/* Find an element by name in an array of {name, <member>: {...}} and return its inner object. */
static struct json_object *find_named(struct json_object *root, const char *list,
	const char *member, const char *name, struct err *err)
{
	struct json_object *arr = json_get_arr(root, list);

	for (size_t i = 0; i < json_len(arr); i++) {
		struct json_object *e = json_at(arr, i), *inner;

		if (!str_eq(json_get_str(e, "name"), name))
			continue;
		inner = json_get_obj(e, member);
		if (!inner)
			err_set(err, ERR_INVALID, "%s \"%s\" has no %s", list, name, member);
		return inner;
	}
	err_set(err, ERR_NOT_FOUND, "there is no \"%s\" in %s", name, list);
	return NULL;
}

/* ---- cluster ---- */

/* Paths are appended to the address, so a query, a fragment or a trailing slash must not be part of
 * it. */
static int set_server(struct k8s_kubeconfig *k, const char *s, struct err *err)
{
	bool tls = s && strncasecmp(s, "https://", 8) == 0;
	const char *host = s ? s + (tls ? 8 : 7) : NULL;
	size_t len;

	if (!s || (!tls && strncasecmp(s, "http://", 7) != 0))
		return err_set(err, ERR_INVALID, "server is not an https:// address");
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f || *p == '?' || *p == '#')
			return err_set(
				err, ERR_INVALID, "server contains a blank, a query or a fragment");
	if (strchr(host, '@'))
		return err_set(err, ERR_INVALID,
			"server contains user information: put a token in users instead");
	if (!*host || *host == '/' || *host == ':')
		return err_set(err, ERR_INVALID, "server does not have a host");
	/* The user has been read before. */
	if (!tls && (k->token || k->token_file || k->cert_data || k->cert_file || k->exec_argv))
		return err_set(
			err, ERR_INVALID, "server is plain http: credentials are not sent over it");
	len = strlen(host);
	while (len && host[len - 1] == '/')
		len--;
	k->server = xasprintf("%s%.*s", tls ? "https://" : "http://", (int)len, host);
	return 0;
}

/* insecure-skip-tls-verify together with a CA is refused by client-go, too. */
static int read_cluster(
	struct k8s_kubeconfig *k, struct json_object *o, const char *dir, struct err *err)
{
	const char *server, *proxy, *name;
	const struct member members[] = {{"server", .str = &server}, {"proxy-url", .str = &proxy},
		{"tls-server-name", .str = &name},
		{"insecure-skip-tls-verify", .flag = &k->insecure},
		{"certificate-authority", .file = &k->ca_file},
		{"certificate-authority-data", .data = &k->ca_data}, {NULL}};

	if (read_members(o, "cluster", dir, members, err) != 0)
		return -1;
	if (proxy && httpc_proxy_check(proxy, err) < 0)
		return err_wrap(err, "proxy-url");
	if (k->insecure && (k->ca_file || k->ca_data))
		return err_set(err, ERR_INVALID,
			"insecure-skip-tls-verify and certificate-authority exclude each other: remove one");
	k->tls_server_name = xstrdup(name);
	k->proxy = xstrdup(proxy);
	return set_server(k, server, err);
}

/* ---- user ---- */

static const struct {
	const char *name, *instead;
} refused[] = {
	{"auth-provider", "use an exec plugin"},
	{"username", "use a token or a client certificate"},
	{"password", "use a token or a client certificate"},
	{"as", "impersonation: use the account's own credentials"},
	{"as-uid", "impersonation: use the account's own credentials"},
	{"as-groups", "impersonation: use the account's own credentials"},
	{"as-user-extra", "impersonation: use the account's own credentials"},
};

/* A list of exec; absent counts as empty. */
static int get_list(struct json_object *o, const char *name, struct json_object **out, size_t *n,
	struct err *err)
{
	*out = json_get(o, name);
	*n = json_len(*out);
	if (*out && !json_object_is_type(*out, json_type_array))
		return err_set(err, ERR_INVALID, "exec: %s is not a list", name);
	return 0;
}

/* env is a list of {name, value}; it becomes an envp of "name=value". Numbers and booleans among
 * the arguments are refused, because YAML may have changed their spelling. */
static int read_exec_lists(struct k8s_kubeconfig *k, struct json_object *o, const char *command,
	const char *dir, struct err *err)
{
	struct json_object *args, *env;
	size_t n;

	if (get_list(o, "args", &args, &n, err) != 0)
		return -1;
	k->exec_argv = xcalloc(n + 2, sizeof(*k->exec_argv));
	/* A bare name is searched in PATH; a relative path is relative to the file's folder, as in
	 * client-go. */
	k->exec_argv[0] = strchr(command, '/') ? in_dir(dir, command) : xstrdup(command);
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(args, i);

		if (!json_object_is_type(e, json_type_string) ||
			strlen(json_object_get_string(e)) != (size_t)json_object_get_string_len(e))
			return err_set(
				err, ERR_INVALID, "exec: args[%zu] is not a string: quote it", i);
		k->exec_argv[i + 1] = xstrdup(json_object_get_string(e));
	}
	if (get_list(o, "env", &env, &n, err) != 0)
		return -1;
	k->exec_env = xcalloc(n + 1, sizeof(*k->exec_env));
	for (size_t i = 0; i < n; i++) {
		struct json_object *e = json_at(env, i);
		const char *name = json_get_str(e, "name"), *value = json_get_str(e, "value");

		if (!name || !*name || strchr(name, '=') || !value)
			return err_set(
				err, ERR_INVALID, "exec: env[%zu] needs a name and a value", i);
		k->exec_env[i] = xasprintf("%s=%s", name, value);
	}
	return 0;
}

/* Plugins run without a terminal, so interactiveMode Always is refused. */
static int read_exec(
	struct k8s_kubeconfig *k, struct json_object *o, const char *dir, struct err *err)
{
	const char *version, *command, *mode;
	const struct member members[] = {{"apiVersion", .str = &version},
		{"command", .str = &command}, {"interactiveMode", .str = &mode},
		{"provideClusterInfo", .flag = &k->exec_cluster_info}, {NULL}};

	if (read_members(o, "exec", dir, members, err) != 0)
		return -1;
	if (!str_eq(version, "client.authentication.k8s.io/v1") &&
		!str_eq(version, "client.authentication.k8s.io/v1beta1"))
		return err_set(err, ERR_INVALID,
			"exec: apiVersion must be client.authentication.k8s.io/v1 or v1beta1: update the plugin's entry");
	if (!command)
		return err_set(err, ERR_INVALID, "exec: command is missing");
	if (str_eq(mode, "Always"))
		return err_set(err, ERR_INVALID,
			"exec: interactiveMode Always needs a terminal, which an operator does not have: use a token or certificate");
	if (mode && !str_eq(mode, "Never") && !str_eq(mode, "IfAvailable"))
		return err_set(
			err, ERR_INVALID, "exec: interactiveMode must be Never or IfAvailable");
	k->exec_api_version = xstrdup(version);
	return read_exec_lists(k, o, command, dir, err);
}

/* tokenFile wins over token once it was read, as in client-go (see k8s_auth_new()). */
static int read_user(
	struct k8s_kubeconfig *k, struct json_object *o, const char *dir, struct err *err)
{
	struct json_object *exec = NULL, *v = NULL;
	bool cert;
	const char *token;
	const struct member members[] = {{"token", .str = &token},
		{"tokenFile", .file = &k->token_file},
		{"client-certificate", .file = &k->cert_file}, {"client-key", .file = &k->key_file},
		{"client-certificate-data", .data = &k->cert_data},
		{"client-key-data", .data = &k->key_data}, {NULL}};

	/* Tools write unused members as "" or [], which must not be refused. */
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (json_object_object_get_ex(o, refused[i].name, &v) && !json_is_empty(v))
			return err_set(err, ERR_INVALID, "user: %s is not supported: %s",
				refused[i].name, refused[i].instead);
	if (read_members(o, "user", dir, members, err) != 0)
		return -1;
	if (token && strlen(token) >= SECRET_MAX_LEN)
		return err_set(err, ERR_INVALID, "user: token is larger than 128 KiB");
	k->token = token ? secret_new_copy(token, strlen(token)) : NULL;
	if (json_object_object_get_ex(o, "exec", &exec) && exec) {
		if (!json_object_is_type(exec, json_type_object))
			return err_set(err, ERR_INVALID, "user: exec is not a map");
		if (read_exec(k, exec, dir, err) != 0)
			return -1;
	}
	/* Only combinations with one unambiguous identity pass. */
	cert = k->cert_file || k->cert_data;
	if (cert != (k->key_file || k->key_data))
		return err_set(err, ERR_INVALID,
			"user: client-certificate and client-key must be set together");
	if (k->exec_argv && (k->token || k->token_file || cert))
		return err_set(err, ERR_INVALID,
			"user: exec and a token or client certificate exclude each other: remove one");
	if (k->token)
		for (size_t i = 0; i < secret_len(k->token); i++)
			if (secret_peek(k->token)[i] <= 0x20 || secret_peek(k->token)[i] >= 0x7f)
				return err_set(err, ERR_INVALID,
					"user: token contains blanks or non-ASCII bytes");
	return 0;
}

/* ---- file ---- */

/* The user is read before the cluster, because the server's scheme must fit the credentials. */
static int read_config(struct k8s_kubeconfig *k, struct json_object *root, const char *dir,
	const char *context, struct err *err)
{
	const char *kind, *current, *cluster, *user, *ns;
	struct json_object *ctx, *o;
	const struct member top[] = {
		{"kind", .str = &kind}, {"current-context", .str = &current}, {NULL}};
	const struct member members[] = {{"cluster", .str = &cluster}, {"user", .str = &user},
		{"namespace", .str = &ns}, {NULL}};

	if (!json_object_is_type(root, json_type_object))
		return err_set(err, ERR_INVALID, "not a kubeconfig: it is not a map");
	if (read_members(root, "kubeconfig", dir, top, err) != 0)
		return -1;
	if (kind && !str_eq(kind, "Config"))
		return err_set(err, ERR_INVALID, "not a kubeconfig: kind is not Config");
	context = context && *context ? context : current;
	if (!context)
		return err_set(err, ERR_NOT_FOUND,
			"current-context is not set: kubectl config use-context NAME");
	ctx = find_named(root, "contexts", "context", context, err);
	if (!ctx)
		return -1;
	if (read_members(ctx, "context", dir, members, err) != 0)
		return err_wrap(err, "context \"%s\"", context);
	if (!cluster)
		return err_set(err, ERR_INVALID, "context \"%s\" does not name a cluster", context);
	k->namespace_ = ns ? xstrdup(ns) : NULL;
	o = user ? find_named(root, "users", "user", user, err) : NULL;
	if (user && (!o || read_user(k, o, dir, err) != 0))
		return err_wrap(err, "context \"%s\"", context);
	o = find_named(root, "clusters", "cluster", cluster, err);
	if (!o || read_cluster(k, o, dir, err) != 0)
		return err_wrap(err, "context \"%s\"", context);
	return 0;
}

/* JSON is YAML, so both are read alike. The tree is wiped even after an error. */
struct k8s_kubeconfig *k8s_kubeconfig_parse(
	const char *text, size_t len, const char *dir, const char *context, struct err *err)
{
	struct json_object *root = yaml_parse(text, len, err);
	struct k8s_kubeconfig *k;

	if (!root) {
		if (!err_is_set(err))
			err_set(err, ERR_INVALID, "not a kubeconfig: it is empty");
		return NULL;
	}
	k = xcalloc(1, sizeof(*k));
	if (read_config(k, root, dir, context, err) != 0) {
		k8s_kubeconfig_free(k);
		k = NULL;
	}
	json_wipe(root);
	json_object_put(root);
	return k;
}

/* KUBECONFIG may be a colon-separated list for kubectl; here it is one file, and the error says
 * so. */
struct k8s_kubeconfig *k8s_kubeconfig_load(const char *path, const char *context, struct err *err)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *dir =
		slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
	struct k8s_kubeconfig *k;
	size_t len;
	char *text = file_read(path, KUBECONFIG_MAX, &len, NULL, err);

	if (!text) {
		if (err->kind == ERR_NOT_FOUND && strchr(path, ':'))
			err_wrap(err, "kubeconfig: name one file (lists of files are not merged)");
		else
			err_wrap(err,
				"kubeconfig: give a readable file with --kubeconfig or KUBECONFIG");
		return NULL;
	}
	k = k8s_kubeconfig_parse(text, len, dir, context, err);
	file_wipe(text, len);
	if (!k)
		err_wrap(err, "kubeconfig %s", path);
	return k;
}

/* Check that the service account is readable now: without this, a Pod without one would fail at its
 * first request only. An IPv6 address needs brackets in a URL. */
struct k8s_kubeconfig *k8s_kubeconfig_in_cluster(
	const char *host, const char *port, const char *root, struct err *err)
{
	cleanup_free char *ns_file = NULL, *ns = NULL;
	struct err ignored = ERR_INIT;
	struct k8s_kubeconfig *k;
	uint64_t number;
	size_t len;

	if (!host || !*host || !port || str_to_u64(port, 65535, &number) != 0 || number == 0) {
		err_set(err, ERR_NOT_FOUND,
			"not running in a cluster (KUBERNETES_SERVICE_HOST and _PORT): use --kubeconfig FILE");
		return NULL;
	}
	k = xcalloc(1, sizeof(*k));
	k->server = xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
	k->token_file = xasprintf("%s/token", root);
	k->ca_file = xasprintf("%s/ca.crt", root);
	if (access(k->token_file, R_OK) != 0 || access(k->ca_file, R_OK) != 0) {
		err_set_errno(err, ERR_NOT_FOUND, errno,
			"no service account in %s: set automountServiceAccountToken", root);
		k8s_kubeconfig_free(k);
		return NULL;
	}
	ns_file = xasprintf("%s/namespace", root);
	ns = file_read(ns_file, 255, &len, NULL, &ignored);
	if (ns)
		ns[strcspn(ns, " \t\r\n")] = '\0';
	if (ns && *ns)
		k->namespace_ = steal_ptr(&ns);
	return k;
}

static const char *not_empty(const char *s)
{
	return s && *s ? s : NULL;
}

/* An option that is given but empty is used as it is, unlike an empty variable, so that the error
 * names it. */
struct k8s_kubeconfig *k8s_kubeconfig_choose(
	const struct k8s_kubeconfig_from *from, struct err *err)
{
	const char *file = from->file ? from->file : not_empty(from->env_file);
	const char *ns = from->namespace_ ? from->namespace_ : not_empty(from->env_namespace);
	struct k8s_kubeconfig *k =
		file ? k8s_kubeconfig_load(file, NULL, err)
		     : k8s_kubeconfig_in_cluster(from->host, from->port, from->root, err);

	if (k && ns)
		xreplace(&k->namespace_, ns);
	if (k && !k->namespace_)
		err_set(err, ERR_INVALID,
			"no namespace is set: use --namespace, or set POD_NAMESPACE or the namespace of the context");
	else if (k && !kobj_label_valid(k->namespace_, strlen(k->namespace_)))
		err_set(err, ERR_INVALID, "%s is not a valid namespace: use another --namespace",
			log_esc(k->namespace_));
	if (!err_is_set(err))
		return k;
	k8s_kubeconfig_free(k);
	return NULL;
}
