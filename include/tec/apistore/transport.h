/* SPDX-License-Identifier: MIT */
/*
 * A k8s_transport (k8s/transport.h) to objects of the same process. A write is done when the
 * request is started, and answered when it is stored (apistore/objects). A watch gets a bookmark a
 * minute, when it asked for them, and ends after its timeoutSeconds.
 *
 * The objects are borrowed, several transports may share them, and they go last. Deadlines do not
 * matter here: nothing takes long.
 */
#ifndef TEC_APISTORE_TRANSPORT_H
#define TEC_APISTORE_TRANSPORT_H

#include "tec/apistore/objects.h"
#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

/* Ended by k8s_transport_free(), after all that it has in flight. */
struct k8s_transport *apistore_transport_new(struct loop *l, struct apistore_objects *objects);

#endif
