/* SPDX-License-Identifier: MIT */
/*
 * Credentials for one API server: choose the token and TLS identity for each request. Token files
 * are read again when they change (stat). Exec plugins run as child processes, and run again before
 * their expirationTimestamp or after a 401. Nothing blocks the loop.
 */
#ifndef TEC_K8S_AUTH_H
#define TEC_K8S_AUTH_H

#include "tec/k8s/kubeconfig.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/net/httpc.h"

struct k8s_auth;
struct k8s_cred {
	const char *bearer;    /* NULL: none; borrowed for the call */
	struct httpc_tls *tls; /* borrowed for the call; NULL: the server is plain http */
	unsigned generation;   /* tells whether a retry after a 401 is worthwhile */
};
typedef void (*k8s_cred_fn)(void *arg, const struct err *err, const struct k8s_cred *cred);

struct k8s_auth *k8s_auth_new(struct loop *l, struct k8s_kubeconfig *take_config);
void k8s_auth_free(struct k8s_auth *a);
/*
 * Return true and fill *cred when credentials are available (the usual case: no wait, no op). False
 * with err set: none are available and waiting does not help (ERR_DENIED, never NOT_FOUND, which
 * would look like an absent object). False without err: wait with k8s_auth_get().
 */
bool k8s_auth_ready(struct k8s_auth *a, struct k8s_cred *cred, struct err *err);
/* Wait for credentials, then call done once with them or with an error. */
struct op *k8s_auth_get(struct k8s_auth *a, struct op_scope *scope, k8s_cred_fn done, void *arg);
/* Report that the server answered 401 to this credential: it is read or fetched again. */
void k8s_auth_refused(struct k8s_auth *a);

#endif
