/* SPDX-License-Identifier: MIT */
/* Checks whether the system can attest the first nodes of a new cluster, as far as the API
 * objects show it: for tecctl bootstrap check. */
#ifndef TEC_REPORT_BOOTSTRAP_H
#define TEC_REPORT_BOOTSTRAP_H

#include "tec/model/cluster.h"
#include "tec/report/endpoints.h"
#include "tec/report/finding.h"
#include "tec/report/world.h"

/* Checks conditions, addresses, additional servers, registration and images. w must hold the
 * lists of clusters and images. */
void report_bootstrap(
	const struct report_world *w, const struct model_cluster *c, struct report_findings *f);
/* Reports whether the certificate is valid for the host of the address. */
void report_bootstrap_host(const struct report_endpoint *e, bool named, struct report_findings *f);
/* Reports the answer of the address: an HTTP status, or 0 and the reason in why. */
void report_bootstrap_answer(const struct report_endpoint *e, int status, const struct err *why,
	struct report_findings *f);

#endif
