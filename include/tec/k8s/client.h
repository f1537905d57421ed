/* SPDX-License-Identifier: MIT */
/*
 * The HTTPS transport: net/h2c, or net/httpc where the server does not support HTTP/2, with
 * k8s/auth. All requests and watches share one HTTP/2 connection. After a 401, the request is
 * retried once with new credentials (within one op and its deadline). 429 and 503 are reported with
 * retry_after_ms and not retried here: the queue does that. The protocol is logged when it changes
 * and shown in tec_api_connection_info.
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
