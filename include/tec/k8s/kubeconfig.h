/* SPDX-License-Identifier: MIT */
/*
 * Address of the API server and our identity: a kubeconfig file (YAML or JSON) or the in-cluster
 * service account. Values only; k8s/auth turns them into credentials per request. Supported: token,
 * tokenFile, client certificate and CA as data or files (relative to the file's folder), exec
 * plugins, tls-server-name, insecure-skip-tls-verify, namespace. proxy-url, auth-provider,
 * username/password, impersonation (as, as-groups...) are refused with an error that says so.
 */
#ifndef TEC_K8S_KUBECONFIG_H
#define TEC_K8S_KUBECONFIG_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

struct k8s_kubeconfig {
	char *server; /* "https://host:port", no trailing slash */
	char *tls_server_name;
	char *namespace_; /* of the context; NULL if none */
	bool insecure;
	char *ca_file;          /* file names: re-read on each connection */
	struct secret *ca_data; /* decoded PEM */
	char *cert_file, *key_file;
	struct secret *cert_data, *key_data;
	char *token_file;
	struct secret *token;
	char **exec_argv; /* NULL-terminated; NULL: no plugin */
	char **exec_env;  /* "NAME=value" */
	char *exec_api_version;
	bool exec_cluster_info; /* provideClusterInfo */
};

/* NULL: ERR_NOT_FOUND (with what to do) or ERR_INVALID naming file, context and member. context
 * NULL: current-context. */
struct k8s_kubeconfig *k8s_kubeconfig_load(
	const char *path, const char *context, struct err *err) MUST_CHECK;
struct k8s_kubeconfig *k8s_kubeconfig_parse(const char *text, size_t len, const char *dir,
	const char *context, struct err *err) MUST_CHECK;
/* KUBERNETES_SERVICE_HOST/PORT as arguments, root =
 * "/var/run/secrets/kubernetes.io/serviceaccount". */
struct k8s_kubeconfig *k8s_kubeconfig_in_cluster(
	const char *host, const char *port, const char *root, struct err *err) MUST_CHECK;

/* What a program has from its options and its environment; NULL: not given. */
struct k8s_kubeconfig_from {
	const char *file, *env_file;            /* --kubeconfig, $KUBECONFIG */
	const char *namespace_, *env_namespace; /* --namespace, $POD_NAMESPACE */
	const char *host, *port;                /* $KUBERNETES_SERVICE_HOST and _PORT */
	const char *root; /* where a Pod finds its service account, see above */
};
/*
 * The option wins over the environment (where "" is as good as nothing), the environment over what
 * is found; without a file it is the service account. namespace_ of the result is the one to use,
 * and valid: ERR_INVALID when there is none or no object can be in it.
 */
struct k8s_kubeconfig *k8s_kubeconfig_choose(
	const struct k8s_kubeconfig_from *from, struct err *err) MUST_CHECK;
void k8s_kubeconfig_free(struct k8s_kubeconfig *k);

#endif
