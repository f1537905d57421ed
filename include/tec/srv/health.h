/* SPDX-License-Identifier: MIT */
/* Port 8081, plain HTTP: GET /healthz (the loop turns), /readyz (caches filled, listeners bound),
 * /metrics. */
#ifndef TEC_SRV_HEALTH_H
#define TEC_SRV_HEALTH_H

#include <stdbool.h>

#include "tec/loop/loop.h"
#include "tec/net/httpd.h"

struct srv_health;
/* ready: false with *why (static) set while not. */
struct srv_health *srv_health_new(
	struct loop *l, bool (*ready)(void *arg, const char **why), void *arg);
void srv_health_free(struct srv_health *s);
struct httpd *srv_health_httpd(struct srv_health *s);

#endif
