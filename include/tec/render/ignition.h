/* SPDX-License-Identifier: MIT */
/* The Ignition configuration for nodes, and the choice of its version (Ignition specification
 * 3.x). */
#ifndef TEC_RENDER_IGNITION_H
#define TEC_RENDER_IGNITION_H

#include <json-c/json.h>

#include "tec/base/err.h"
#include "tec/base/str.h"
#include "tec/model/cluster.h"

/* The minor version for an Accept header: the highest acceptable one it names
 * ("application/vnd.coreos.ignition+json;version=3.3.0"; q=0 is not acceptable), at most 6; 6 if
 * none is named or any type is accepted; -1 (406) if none is acceptable or all are below 2. */
int render_ignition_version(const char *accept);

struct render_ignition_ca {
	const char *trustee; /* PEM or NULL: plain http */
	const char *ak;
	const char *server[MODEL_CLUSTER_SERVERS_MAX]; /* by index of trusteeServers */
};
/* Append the document. c must have public_trustee_addr (asserted). */
void render_ignition(const struct model_cluster *c, const char *uuid, int minor,
	const struct render_ignition_ca *ca, struct strbuf *out);

/* The member "servers" of the pin's configuration: publicTrusteeAddr (asserted), then
 * trusteeServers. ca->ak is not used. The caller puts it. */
struct json_object *render_ignition_servers(
	const struct model_cluster *c, const struct render_ignition_ca *ca);

/* The configuration that a node is given first: it only merges the one at url, over TLS with
 * this CA (PEM) and no other; ca NULL: plain http, or a CA that the node trusts already. The
 * caller puts it. */
struct json_object *render_ignition_first(const char *url, const char *ca);

#endif
