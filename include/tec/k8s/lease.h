/* SPDX-License-Identifier: MIT */
/*
 * Leader election by a coordination.k8s.io/v1 Lease: its duration is 15 s, it is renewed every 2 s,
 * and leadership ends 10 s after the last successful renewal by the boot clock.
 * k8s_lease_may_write() turns false at that moment without any event: it opens and closes a
 * k8s/gate. k8s_lease_release() releases the Lease (holderIdentity ""). A Lease that another program
 * did not release is taken when its duration has passed since the last renewal, but not
 * within two fifths of the duration.
 */
#ifndef TEC_K8S_LEASE_H
#define TEC_K8S_LEASE_H

#include <stdbool.h>

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

struct k8s_lease;
enum k8s_lease_state { K8S_LEASE_IDLE, K8S_LEASE_STANDBY, K8S_LEASE_LEADER, K8S_LEASE_RELEASED };

struct k8s_lease_conf {
	const char *ns, *name, *identity; /* identity: pod name + "_" + uuid */
	void (*on_change)(void *arg, bool leader);
	void *arg;
};

/* t must not be a gate: the requests of the election are what permits writing. */
struct k8s_lease *k8s_lease_new(
	struct loop *l, struct k8s_transport *t, const struct k8s_lease_conf *conf);
void k8s_lease_free(struct k8s_lease *s);
void k8s_lease_start(struct k8s_lease *s);
bool k8s_lease_may_write(void *s); /* fits k8s_gate_new() */
enum k8s_lease_state k8s_lease_state(const struct k8s_lease *s);
/* Release the lease; done runs when this is written or has failed (after 2 s at most). */
void k8s_lease_release(struct k8s_lease *s, void (*done)(void *arg), void *arg);

#endif
