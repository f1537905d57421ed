/* SPDX-License-Identifier: MIT */
/*
 * The parts of a running tec-operator and how they hang together. struct parts owns everything in
 * it but the options; parts_fini takes it down in reverse order, from any stage of construction.
 */
#ifndef TEC_CMD_PARTS_H
#define TEC_CMD_PARTS_H

#include "attested.h"
#include "embedded.h"
#include "images.h"
#include "options.h"
#include "standalone.h"
#include "trustees.h"

#include "tec/base/err.h"
#include "tec/ctl/ak.h"
#include "tec/ctl/cluster.h"
#include "tec/ctl/env.h"
#include "tec/ctl/follow.h"
#include "tec/ctl/image.h"
#include "tec/ctl/machine.h"
#include "tec/ctl/record.h"
#include "tec/ctl/since.h"
#include "tec/ctl/trustee.h"
#include "tec/ctl/unreadable.h"
#include "tec/k8s/client.h"
#include "tec/k8s/gate.h"
#include "tec/k8s/lease.h"
#include "tec/k8s/watch.h"
#include "tec/loop/timer.h"
#include "tec/net/httpc.h"
#include "tec/srv/health.h"
#include "tec/srv/listener.h"
#include "tec/srv/regak.h"
#include "tec/srv/regignition.h"
#include "tec/state/state.h"

struct parts {
	struct options *options; /* borrowed */
	struct loop *loop;
	char *ns;
	struct httpc *http;
	struct standalone *standalone; /* NULL: there is a cluster */
	struct embedded *embedded;     /* the key broker; NULL: another one is used */
	struct attested *attested;     /* of a standalone one: who has had its disk key */
	struct k8s_transport *api;     /* listeners, watches, the lease */
	struct k8s_transport *gate;    /* the same for controllers while there is a lease */
	struct k8s_transport *trustee_gate;
	struct state state; /* owns its caches; NULL: not needed in this role */
	struct k8s_watch *watch[STATE_N_KINDS];
	struct k8s_events *events, *ctl_events;
	struct images *images; /* from registries */
	struct ctl_env env;
	struct ctl_since *since; /* when this operator was installed */
	struct ctl_trustee *trustee;
	struct ctl_cluster *cluster;
	struct ctl_kind *machine;
	struct ctl_kind *ak;
	struct ctl_kind *image;
	struct ctl_follow *follow;
	struct ctl_unreadable *unreadable;
	struct trustees *trustees; /* NULL: not among --controllers */
	bool revoking_on;          /* ctl/trustee, ctl/machine, ctl/ak: what revokes keys */
	bool all_on;               /* ... and the others */
	bool finishing;            /* see ctl/duty.h, as of all of these */
	struct timer wait;
	bool waited;
	struct k8s_lease *lease, *trustee_lease; /* NULL: there is no election, or no such work */
	unsigned n_releasing;
	struct srv_certs *certs;
	struct srv_pending *pending;
	struct srv_regkey *regkey;
	struct ratelimit *rate;
	struct srv_listener *regignition;
	struct srv_listener *regak;
	struct srv_health *health;
	struct defer check; /* parts_check() */
	bool ending;        /* told to; ctl/ending.h has what the others mean */
	bool releasing, released, draining;
	uint64_t ending_ms; /* since when, boot clock */
	struct timer next_ending;
};

void parts_init(struct parts *p, struct options *o, struct loop *take_loop);
int parts_connect(struct parts *p, struct err *err) MUST_CHECK;
int parts_watch(struct parts *p, struct err *err) MUST_CHECK;
int parts_control(struct parts *p, struct err *err) MUST_CHECK;
int parts_serve(struct parts *p, struct err *err) MUST_CHECK;

/* ---- life.c */

/* Something changed that decides what should run; arg is the struct parts. */
void parts_check(void *arg);
void parts_start(struct parts *p);
void parts_reload(struct parts *p);
/* Hands back the lease, serves on for the shutdown delay, finishes what is in flight (10 s at most),
 * stops the loop. A second call stops at once. */
void parts_shutdown(struct parts *p, const char *why);
void parts_fini(struct parts *p);

#endif
