/* SPDX-License-Identifier: MIT */
/* Port 8081, plain HTTP: GET /healthz (the event loop responds), /readyz (caches are filled and
 * listeners bound), /metrics. */
#ifndef TEC_SRV_HEALTH_H
#define TEC_SRV_HEALTH_H

#include <stdbool.h>

#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

struct srv_health;
/* ready returns false, and sets *why to a static text, while the process is not ready. */
struct srv_health *srv_health_new(
	struct loop *l, bool (*ready)(void *arg, const char **why), void *arg);
void srv_health_free(struct srv_health *s);
struct httpd *srv_health_httpd(struct srv_health *s);

#endif
