/* SPDX-License-Identifier: MIT */
/*
 * The seam to a Trustee's admin API (kbs/transport.h) for the broker in this process:
 * broker/admin answers a request without a socket and without a token, as nobody else can call
 * it. The answer is delivered when it is durable; if it could not be stored, the call fails
 * instead.
 */
#ifndef TEC_BROKER_TRANSPORT_H
#define TEC_BROKER_TRANSPORT_H

#include "tec/broker/store.h"
#include "tec/kbs/transport.h"

/* The store is borrowed. */
struct kbs_transport *broker_transport_new(struct loop *l, struct broker_store *store);

#endif
