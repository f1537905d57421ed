/* SPDX-License-Identifier: MIT */
/*
 * The parts of a running tec-operator and their connections. struct parts owns everything in it
 * except the options; parts_fini() releases it in reverse order, from any stage of construction.
 */
#ifndef TEC_CMD_PARTS_H
#define TEC_CMD_PARTS_H

#include "embedded.h"
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
#include "tec/ctl/adoption_cutoff.h"
#include "tec/ctl/trustee.h"
#include "tec/ctl/unreadable.h"
#include "tec/k8s/client.h"
#include "tec/k8s/gate.h"
#include "tec/k8s/lease.h"
#include "tec/k8s/watch.h"
#include "tec/loop/timer.h"
#include "tec/loop/wallwatch.h"
#include "tec/net/httpc.h"
#include "tec/net/httpc_proxy.h"
#include "tec/srv/health.h"
#include "tec/srv/listener.h"
#include "tec/srv/regak.h"
#include "tec/srv/regignition.h"
#include "tec/caches/caches.h"

struct parts {
	struct options *options; /* borrowed */
	struct loop *loop;
	char *ns;
	struct httpc *http;
	struct standalone *standalone; /* NULL: a Kubernetes cluster is used */
	struct embedded *embedded;     /* the key broker; NULL: Trustee is elsewhere */
	struct attested *attested;     /* standalone only: who has received its disk key */
	struct k8s_transport *api;     /* for listeners, watches and the Lease */
	struct k8s_transport *gate;    /* the same for controllers, open while the Lease is held */
	struct k8s_transport *trustee_gate;
	struct caches caches; /* owns its caches; NULL: not needed in this role */
	struct k8s_watch *watch[CACHES_N_KINDS];
	struct k8s_events *events, *ctl_events;
	struct oci_authfile *registry_auth;
	struct oci_lookup *lookup;     /* of labels in registries */
	struct oci_computes *computes; /* NULL: values are computed by Jobs */
	char *compute_tool, *scratch;  /* owned */
	struct ctl_env env;
	const char *proxy_env[HTTPC_PROXY_VARIABLES + 1];
	struct ctl_adoption_cutoff *since; /* when this operator was installed */
	struct ctl_trustee *trustee;
	struct ctl_cluster *cluster;
	struct ctl_kind *machine;
	struct ctl_kind *ak;
	struct ctl_kind *image;
	struct ctl_follow *follow;
	struct ctl_unreadable *unreadable;
	struct trustees *trustees; /* NULL: not among --controllers */
	bool revoking_on;          /* the controllers that revoke keys run: trustee, machine, ak */
	bool all_on;               /* ... and all others, too */
	bool finishing;            /* see ctl/leader_tasks.h, as for these all */
	struct timer wait;
	struct wallwatch clock;
	bool waited;
	struct k8s_lease *lease, *trustee_lease; /* NULL: no election, or not this role */
	unsigned n_releasing;
	struct srv_certs *certs;
	struct srv_pending *pending;
	struct srv_regkey *regkey;
	struct ratelimit *rate;
	struct srv_listener *regignition;
	struct srv_listener *regak;
	struct srv_health *health;
	struct defer check; /* parts_check() */
	bool ending;        /* shutting down; for the next members see ctl/shutdown.h */
	bool releasing, released, draining;
	uint64_t ending_ms; /* boot time at which the shutdown began */
	struct timer next_ending;
};

void parts_init(struct parts *p, struct options *o, struct loop *take_loop);
int parts_connect(struct parts *p, struct err *err) MUST_CHECK;
int parts_watch(struct parts *p, struct err *err) MUST_CHECK;
int parts_control(struct parts *p, struct err *err) MUST_CHECK;
int parts_serve(struct parts *p, struct err *err) MUST_CHECK;

/* Schedules a check of what should run; to be called when anything changes that this depends
 * on. arg is the struct parts. */
void parts_check(void *arg);
void parts_start(struct parts *p);
/* Starts the shutdown: releases the Lease, serves for the shutdown delay, finishes requests in
 * flight (10 s at most), then stops the loop. A second call stops it at once. */
void parts_shutdown(struct parts *p, const char *why);
void parts_fini(struct parts *p);

#endif
