/* SPDX-License-Identifier: MIT */
/* Whether the system can attest the first nodes of a new cluster, as far as the API's objects say. */
#ifndef TEC_SHOW_BOOTSTRAP_H
#define TEC_SHOW_BOOTSTRAP_H

#include "tec/model/cluster.h"
#include "tec/show/endpoints.h"
#include "tec/show/finding.h"
#include "tec/show/world.h"

/* Conditions, addresses, further servers, registration, images. Needs clusters and images. */
void show_bootstrap(
	const struct show_world *w, const struct model_cluster *c, struct show_findings *f);
/* Whether the certificate is for the host of the address. */
void show_bootstrap_host(const struct show_endpoint *e, bool named, struct show_findings *f);
/* What came back from the address: a status, or 0 and why. */
void show_bootstrap_answer(
	const struct show_endpoint *e, int status, const struct err *why, struct show_findings *f);

#endif
