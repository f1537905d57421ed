/* SPDX-License-Identifier: MIT */
/*
 * Credentials for one API server: decides per request which token and TLS identity to use. Token
 * files are re-read when they change (stat), exec plugins run as a child and are run again before
 * their expirationTimestamp or after a 401. Never blocks the loop.
 */
#ifndef TEC_K8S_AUTH_H
#define TEC_K8S_AUTH_H

#include "tec/k8s/kubeconfig.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"
#include "tec/net/httpc.h"

struct k8s_auth;
struct k8s_cred {
	const char *bearer; /* NULL: none; borrowed for the call */
	struct httpc_tls *
		tls; /* borrowed for the call; take a ref to keep; NULL: the server is plain http */
	unsigned generation; /* changes when the token or the TLS identity does: is a retry after
				401 worth it? */
};
typedef void (*k8s_cred_fn)(void *arg, const struct err *err, const struct k8s_cred *cred);

struct k8s_auth *k8s_auth_new(struct loop *l, struct k8s_kubeconfig *take_config);
void k8s_auth_free(struct k8s_auth *a);
/*
 * True and *cred filled when there are credentials (the usual case: no wait, no op). False with err
 * set: there are none and waiting will not help (ERR_DENIED, never NOT_FOUND, which would look like
 * an absent object). False without: k8s_auth_get.
 */
bool k8s_auth_ready(struct k8s_auth *a, struct k8s_cred *cred, struct err *err);
/* Waits for them. */
struct op *k8s_auth_get(struct k8s_auth *a, struct op_scope *scope, k8s_cred_fn done, void *arg);
/* The server answered 401 to this credential: read or fetch it again. */
void k8s_auth_refused(struct k8s_auth *a);

#endif
