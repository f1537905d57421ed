/* SPDX-License-Identifier: MIT */
/*
 * The TLS Secrets (tls.crt, tls.key, ca.crt as cert-manager writes them) that the served cluster
 * names, each watched by its name alone, so that a listener needs no other Secret. Follows the
 * names and the contents without a restart: a member that turns to garbage leaves the last good
 * certificate or CA in use (and is logged); a Secret that is deleted and a name that changes start
 * over.
 */
#ifndef TEC_SRV_CERT_H
#define TEC_SRV_CERT_H

#include <stddef.h>

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"
#include "tec/model/cluster.h"
#include "tec/net/tls.h"

#define SRV_CERTS_MAX 16

/* The Secrets that the listeners of this cluster need: their certificate, and with `ignition` what
 * nodes shall trust. NULL entries are of Secrets that it does not name. Borrowed from c. */
size_t srv_certs_of(const struct model_cluster *c, bool ignition, const char *names[SRV_CERTS_MAX]);

struct srv_certs;
/* changed: some Secret's content, or whether it could be read, is other than before. */
struct srv_certs *srv_certs_new(struct loop *l, struct k8s_transport *t, const char *ns,
	void (*changed)(void *arg), void *arg);
void srv_certs_free(struct srv_certs *c);
/* The names wanted now; NULL entries are skipped; others are dropped. ca_sha256: as in struct
 * model_cluster; a Secret whose ca.crt has any other certificate counts as garbage, and what was in
 * use of it is dropped. */
void srv_certs_want(struct srv_certs *c, const char *const *names, size_t n, const char *ca_sha256);
/* All wanted Secrets have been listed once (present or not). */
int srv_certs_filled(const struct srv_certs *c);
/* ca.crt, borrowed for the turn; NULL: no such Secret, no ca.crt in it, or never a usable one. */
const char *srv_certs_ca(const struct srv_certs *c, const char *name);
/* The server identity, borrowed (take a ref to keep); NULL: absent or never usable. */
struct tls_ctx *srv_certs_tls(const struct srv_certs *c, const char *name);

#endif
