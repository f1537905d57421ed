/* SPDX-License-Identifier: MIT */
/*
 * The seam to a Trustee's admin API (kbs/transport.h), for the broker in this process: a request is
 * answered by broker/admin without a socket, and without a token, as no one else can call. The answer
 * is given when what it says is durable; when it could not be stored there is no answer, but an
 * error.
 */
#ifndef TEC_BROKER_TRANSPORT_H
#define TEC_BROKER_TRANSPORT_H

#include "tec/broker/store.h"
#include "tec/kbs/transport.h"

/* The store is borrowed. */
struct kbs_transport *broker_transport_new(struct loop *l, struct broker_store *store);

#endif
