/* SPDX-License-Identifier: MIT */
/*
 * KbsConfigs in the namespaces of --trustee-namespaces: for each a struct state and a controller of
 * its own. KbsConfigs are watched always (as long as the API server does not know the kind, that
 * waits); everything else, Secrets among it, only by the leader and where there is a KbsConfig.
 */
#ifndef TEC_CMD_TRUSTEES_H
#define TEC_CMD_TRUSTEES_H

#include "options.h"

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

struct trustees;

/* The transports are borrowed; gate is the one that controllers write through. changed is called
 * when trustees_check() may have something to do. */
struct trustees *trustees_new(struct loop *l, struct k8s_transport *api, struct k8s_transport *gate,
	const struct options *o, const char *ns, void (*changed)(void *arg), void *arg);
void trustees_free(struct trustees *t); /* NULL is fine */
void trustees_start(struct trustees *t);
/* Starts or stops what should run. leads: and not shutting down. */
void trustees_check(struct trustees *t, bool leads);

#endif
