/* SPDX-License-Identifier: MIT */
/*
 * The certificate with which the three listeners of a standalone operator speak to nodes, in a Secret
 * as those that a cluster names are. Its authority's key and its own are sealed rows of the store and
 * born once: nodes trust what was restored elsewhere, too.
 */
#ifndef TEC_CMD_STANDALONE_TLS_H
#define TEC_CMD_STANDALONE_TLS_H

#include "tec/apistore/objects.h"
#include "tec/loop/loop.h"

#define STANDALONE_TLS_SECRET "standalone-tls"

struct standalone_tls;

/* Makes the Secret in ns, or again when it does not name host or ends soon; looks at it every day.
 * node_ca: a file with the authority to take while there is none; NULL: one is made. The objects are
 * borrowed. */
struct standalone_tls *standalone_tls_new(struct loop *l, struct apistore_objects *objects,
	const char *ns, const char *host, const char *node_ca, struct err *err) MUST_CHECK;
void standalone_tls_free(struct standalone_tls *t); /* NULL is fine; before the objects */

#endif
