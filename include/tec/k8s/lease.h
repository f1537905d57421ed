/* SPDX-License-Identifier: MIT */
/*
 * Leader election by a coordination.k8s.io/v1 Lease: 15 s duration, renewed every 2 s, given up 10
 * s after the last successful renewal by the boot clock. k8s_lease_may_write() turns false at that
 * moment by itself, without waiting for an event: it opens and closes a k8s/gate. Released
 * (holderIdentity "") by k8s_lease_release().
 */
#ifndef TEC_K8S_LEASE_H
#define TEC_K8S_LEASE_H

#include <stdbool.h>

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

struct k8s_lease;
enum k8s_lease_state { K8S_LEASE_IDLE, K8S_LEASE_STANDBY, K8S_LEASE_LEADER, K8S_LEASE_RELEASED };

struct k8s_lease_conf {
	const char *ns, *name, *identity;            /* identity: pod name + "_" + uuid */
	uint32_t duration_ms, deadline_ms, retry_ms; /* 0: 15,000 / 10,000 / 2,000 */
	void (*on_change)(void *arg, bool leader);
	void *arg;
};

/* t has no gate: its requests are how one becomes a writer. */
struct k8s_lease *k8s_lease_new(
	struct loop *l, struct k8s_transport *t, const struct k8s_lease_conf *conf);
void k8s_lease_free(struct k8s_lease *s);
void k8s_lease_start(struct k8s_lease *s);
bool k8s_lease_may_write(void *s); /* fits k8s_gate_new() */
enum k8s_lease_state k8s_lease_state(const struct k8s_lease *s);
/* Hands the lease back; done runs when it is written or has failed (2 s at most). */
void k8s_lease_release(struct k8s_lease *s, void (*done)(void *arg), void *arg);

#endif
