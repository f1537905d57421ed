/* SPDX-License-Identifier: MIT */
/*
 * struct attested: the Machines of a standalone operator whose node has had its disk key. The broker
 * of this process gives no key to a node before that is marked on the Machine (annotation
 * last-attested), so that a Machine without the mark can be deleted for its age: no disk is encrypted
 * with its key. This holds for the Machines that were made while no other server had the keys, and
 * since the store was last restored; state.marks_since_s says since when, in a sealed row.
 *
 * Borrows the objects and the state, in which it alone writes marks_since_s and never_attested.
 */
#ifndef TEC_CMD_ATTESTED_H
#define TEC_CMD_ATTESTED_H

#include "tec/apistore/objects.h"
#include "tec/broker/kbsd.h"
#include "tec/k8s/transport.h"
#include "tec/state/state.h"

struct attested;

/* After the state's caches are made, before anything else listens to them. here: the embedded broker
 * serves nodes. Fails when the row cannot be read. */
struct attested *attested_new(struct apistore_objects *objects, struct state *state, bool here,
	struct err *err) MUST_CHECK;
void attested_free(struct attested *a); /* NULL is fine; after the caches' last change */

/* To be called when a list of the state has come. */
void attested_check(struct attested *a);
/* Marks the Machine whose disk key this is through api, once a day; then it goes out. */
void attested_mark(
	struct attested *a, struct k8s_transport *api, const char *ns, struct broker_held *held);

#endif
