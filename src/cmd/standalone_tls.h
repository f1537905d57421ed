/* SPDX-License-Identifier: MIT */
/*
 * The certificate of a standalone operator's three listeners for nodes, in a Secret like those
 * that a cluster names. The keys of its CA and of the certificate are sealed rows of the store
 * and are created only once, so nodes also trust an operator that was restored elsewhere.
 */
#ifndef TEC_CMD_STANDALONE_TLS_H
#define TEC_CMD_STANDALONE_TLS_H

#include "tec/apistore/objects.h"
#include "tec/loop/loop.h"

#define STANDALONE_TLS_SECRET "standalone-tls"

struct standalone_tls;

/* Creates the Secret in ns; renews it, with a check every day, if it does not name host or
 * expires soon. node_ca: a file with the CA to use if there is none yet; NULL: one is created.
 * The objects are borrowed. */
struct standalone_tls *standalone_tls_new(struct loop *l, struct apistore_objects *objects,
	const char *ns, const char *host, const char *node_ca, struct err *err) MUST_CHECK;
void standalone_tls_free(struct standalone_tls *t); /* NULL is fine; before the objects */

#endif
