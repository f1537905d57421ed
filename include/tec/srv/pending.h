/* SPDX-License-Identifier: MIT */
/*
 * The limits on what strangers can make (operator.md section 1, registration): counts of
 * listener-made objects that nothing has matched yet, kept by watching the caches, so a request
 * costs O(1). Creates still in flight count too.
 */
#ifndef TEC_SRV_PENDING_H
#define TEC_SRV_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/k8s/cache.h"
#include "tec/model/cluster.h"

struct srv_pending;
/* Either cache may be NULL in a role that does not have it. */
struct srv_pending *srv_pending_new(struct k8s_cache *machines, struct k8s_cache *aks);
void srv_pending_free(struct srv_pending *p); /* after the caches' last change */
void srv_pending_begin(struct srv_pending *p);
void srv_pending_end(struct srv_pending *p);
/* False: *why (static) names the limit. */
bool srv_pending_machine_allowed(
	const struct srv_pending *p, const struct model_cluster *c, const char **why);
bool srv_pending_key_allowed(const struct srv_pending *p, const struct model_cluster *c,
	const char *uuid, const char **why);
size_t srv_pending_count(const struct srv_pending *p);

#endif
