/* SPDX-License-Identifier: MIT */
/*
 * The HTTPS maker of the seam: net/h2c, or net/httpc where the server does not choose HTTP/2, and
 * k8s/auth. All requests and watches share one HTTP/2 connection. One retry after a 401 with fresh
 * credentials (inside one op, within its deadline); 429 and 503 are reported with retry_after_ms,
 * not retried here: the queue does that. The protocol is logged when it changes and shown in
 * tec_api_connection_info.
 */
#ifndef TEC_K8S_CLIENT_H
#define TEC_K8S_CLIENT_H

#include "tec/k8s/kubeconfig.h"
#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"
#include "tec/net/httpc.h"

/* Takes the configuration; http is borrowed and must outlive it. user_agent: "tec-operator/0.1.0".
 * http1_only: HTTP/2 is not tried. */
struct k8s_transport *k8s_client_new(struct loop *l, struct httpc *http,
	struct k8s_kubeconfig *take_config, const char *user_agent, bool http1_only);

#endif
