/* SPDX-License-Identifier: MIT */
/* Shared by auth.c and auth_exec.c. */
#ifndef TEC_K8S_AUTH_INTERNAL_H
#define TEC_K8S_AUTH_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "tec/k8s/kubeconfig.h"

/* The answer of an exec plugin. */
struct auth_exec {
	struct secret *token, *cert,
		*key; /* owned by the caller of the parser; NULL: none; token ends in a NUL byte */
	int64_t expires_s; /* wall clock; 0: never */
};
void auth_exec_fini(struct auth_exec *x);
/* The plugin's input, as "KUBERNETES_EXEC_INFO=value" for its environment; the caller frees it. */
char *auth_exec_info(const struct k8s_kubeconfig *k, const char *ca_pem, size_t ca_len);
/* On failure *out is empty and needs no auth_exec_fini(). */
int auth_exec_parse(const char *text, size_t len, const char *api_version, struct auth_exec *out,
	struct err *err) MUST_CHECK;

#endif
