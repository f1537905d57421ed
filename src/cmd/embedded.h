/* SPDX-License-Identifier: MIT */
/*
 * The key broker of a standalone operator: broker/ over sealed rows of the API's database, with a
 * listener for nodes only. The operator administers it through embedded_transport().
 */
#ifndef TEC_CMD_EMBEDDED_H
#define TEC_CMD_EMBEDDED_H

#include "options.h"

#include "tec/store/objects.h"
#include "tec/k8s/event.h"
#include "tec/kbs/transport.h"
#include "tec/net/httpd.h"
#include "tec/caches/caches.h"

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
struct attested;

/* Call it after the state's caches are created and before anything else listens to them. here:
 * the embedded broker serves nodes. Fails if the row cannot be read. */
struct attested *attested_new(struct store_objects *objects, struct caches *caches, bool here,
	struct err *err) MUST_CHECK;
void attested_free(struct attested *a); /* NULL is fine; after the caches' last change */

/* To be called when a list of the state is complete. */
void attested_check(struct attested *a);

struct embedded;

/* The objects are borrowed. Creates the key that signs tokens if there is none. */
struct embedded *embedded_new(struct loop *l, struct store_objects *objects,
	const struct options *o, struct err *err) MUST_CHECK;
void embedded_free(struct embedded *e); /* NULL is fine; after every transport */
struct kbs_transport *embedded_transport(struct embedded *e); /* the caller frees */

/* What the broker needs to find Machines and keys, and where it reports refusals; borrowed. */
struct embedded_nodes {
	const char *ns;
	const struct caches *caches;
	struct attested *attested;
	struct k8s_transport *api;
	struct k8s_events *events;
	struct ratelimit *rate; /* NULL: off */
};
int embedded_listen(
	struct embedded *e, const struct embedded_nodes *nodes, struct err *err) MUST_CHECK;
struct httpd *embedded_httpd(struct embedded *e); /* NULL before embedded_listen() */
bool *embedded_tls(struct embedded *e);           /* see srv_listener_follow() */

#endif
