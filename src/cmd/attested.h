/* SPDX-License-Identifier: MIT */
/*
 * struct attested: records which Machines of a standalone operator have received their disk key.
 * The broker of this process gives no disk key to a node before that is marked on its Machine
 * (annotation last-attested). A Machine without the mark can therefore be deleted for its age: no
 * disk is encrypted with its key. This holds for Machines created while no other server had the
 * keys and since the store was last restored; state.marks_since_s is that time, stored in a
 * sealed row.
 *
 * Borrows the objects and the state; it alone writes marks_since_s and never_attested in the
 * state.
 */
#ifndef TEC_CMD_ATTESTED_H
#define TEC_CMD_ATTESTED_H

#include "tec/apistore/objects.h"
#include "tec/broker/kbsd.h"
#include "tec/k8s/transport.h"
#include "tec/state/state.h"

struct attested;

/* Call it after the state's caches are created and before anything else listens to them. here:
 * the embedded broker serves nodes. Fails if the row cannot be read. */
struct attested *attested_new(struct apistore_objects *objects, struct state *state, bool here,
	struct err *err) MUST_CHECK;
void attested_free(struct attested *a); /* NULL is fine; after the caches' last change */

/* To be called when a list of the state is complete. */
void attested_check(struct attested *a);
/* Marks, at most once a day and through api, the Machine whose disk key held is for; then
 * releases or refuses the key. */
void attested_mark(
	struct attested *a, struct k8s_transport *api, const char *ns, struct broker_held *held);

#endif
