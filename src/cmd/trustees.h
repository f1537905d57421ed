/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs and TrusteeConfigs in the namespaces of --trustee-namespaces: each namespace has a
 * struct caches and its own controllers. The two kinds are always watched (the watch waits while
 * the API server does not have them); everything else, including Secrets, only by the leader and
 * where one of them exists.
 */
#ifndef TEC_CMD_TRUSTEES_H
#define TEC_CMD_TRUSTEES_H

#include "options.h"

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

struct trustees;

/* The transports are borrowed; controllers write through gate. changed is called when
 * trustees_check() may have something to do. */
struct trustees *trustees_new(struct loop *l, struct k8s_transport *api, struct k8s_transport *gate,
	const struct options *o, const char *ns, void (*changed)(void *arg), void *arg);
void trustees_free(struct trustees *t); /* NULL is fine */
void trustees_start(struct trustees *t);
/* Starts or stops what should run. leads: this process is the leader and not shutting down. */
void trustees_check(struct trustees *t, bool leads);

#endif
