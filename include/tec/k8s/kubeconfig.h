/* SPDX-License-Identifier: MIT */
/*
 * The address of the API server and our identity, from a kubeconfig file (YAML or JSON) or the
 * in-cluster service account. This module only holds the values; k8s/auth makes credentials of them
 * for each request. Supported: token, tokenFile, client certificate and CA as data or files
 * (relative to the file's folder), exec plugins, tls-server-name, insecure-skip-tls-verify,
 * proxy-url (http and https), namespace. auth-provider, username/password, impersonation (as, as-groups...) are
 * refused with an error that names them.
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
	char *proxy;      /* proxy-url, which may contain a password; NULL: none */
	char *namespace_; /* of the context; NULL if none */
	bool insecure;
	char *ca_file;          /* file names: read again on each connection */
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

/* Returns NULL with ERR_NOT_FOUND (and advice) or ERR_INVALID (naming file, context and member).
 * context NULL: current-context. */
struct k8s_kubeconfig *k8s_kubeconfig_load(
	const char *path, const char *context, struct err *err) MUST_CHECK;
struct k8s_kubeconfig *k8s_kubeconfig_parse(const char *text, size_t len, const char *dir,
	const char *context, struct err *err) MUST_CHECK;
/* For the service account of a Pod. host and port: the values of KUBERNETES_SERVICE_HOST and _PORT;
 * root: "/var/run/secrets/kubernetes.io/serviceaccount". */
struct k8s_kubeconfig *k8s_kubeconfig_in_cluster(
	const char *host, const char *port, const char *root, struct err *err) MUST_CHECK;

/* What a program's options and environment say; NULL: not given. */
struct k8s_kubeconfig_from {
	const char *file, *env_file;            /* --kubeconfig, $KUBECONFIG */
	const char *namespace_, *env_namespace; /* --namespace, $POD_NAMESPACE */
	const char *host, *port;                /* $KUBERNETES_SERVICE_HOST and _PORT */
	const char *root;                       /* folder of a Pod's service account, see above */
};
/*
 * Choose the configuration: options win over the environment (where "" counts as unset), the
 * environment over defaults; without a file, the service account is used. namespace_ of the result
 * is the one to use, and is valid: ERR_INVALID when none is known or its name is invalid.
 */
struct k8s_kubeconfig *k8s_kubeconfig_choose(
	const struct k8s_kubeconfig_from *from, struct err *err) MUST_CHECK;
void k8s_kubeconfig_free(struct k8s_kubeconfig *k);

#endif
