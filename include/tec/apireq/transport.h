/* SPDX-License-Identifier: MIT */
/*
 * A k8s_transport (k8s/transport.h) to objects in the same process, so that controllers need not
 * know which API they use. A write takes effect when the request is started and is answered when it
 * is stored (store/objects). A watch gets a bookmark per minute if it asked for bookmarks, and
 * ends after its timeoutSeconds.
 *
 * The objects are borrowed and must outlive the transports, several of which may share them.
 * Deadlines are ignored: no request takes long.
 */
#ifndef TEC_APIREQ_TRANSPORT_H
#define TEC_APIREQ_TRANSPORT_H

#include "tec/store/objects.h"
#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"

/* Free it with k8s_transport_free(), when no request is in flight. */
struct k8s_transport *apireq_transport_new(struct loop *l, struct store_objects *objects);

#endif
