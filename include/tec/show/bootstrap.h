/* SPDX-License-Identifier: MIT */
/* Checks whether the system can attest the first nodes of a new cluster, as far as the API
 * objects show it: for tecctl bootstrap check. */
#ifndef TEC_SHOW_BOOTSTRAP_H
#define TEC_SHOW_BOOTSTRAP_H

#include "tec/model/cluster.h"
#include "tec/show/endpoints.h"
#include "tec/show/finding.h"
#include "tec/show/world.h"

/* Checks conditions, addresses, additional servers, registration and images. w must hold the
 * lists of clusters and images. */
void show_bootstrap(
	const struct show_world *w, const struct model_cluster *c, struct show_findings *f);
/* Reports whether the certificate is valid for the host of the address. */
void show_bootstrap_host(const struct show_endpoint *e, bool named, struct show_findings *f);
/* Reports the answer of the address: an HTTP status, or 0 and the reason in why. */
void show_bootstrap_answer(
	const struct show_endpoint *e, int status, const struct err *why, struct show_findings *f);

#endif
