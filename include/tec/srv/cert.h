/* SPDX-License-Identifier: MIT */
/*
 * The TLS Secrets (tls.crt, tls.key, ca.crt, as cert-manager writes them) that the served cluster
 * names. Each is watched by its name alone, so a listener needs no right to read other Secrets.
 * Changes of names and contents apply without a restart. If a member becomes unusable, the last
 * good certificate or CA stays in use and the problem is logged; a deleted Secret and a changed
 * name start over.
 */
#ifndef TEC_SRV_CERT_H
#define TEC_SRV_CERT_H

#include <stddef.h>

#include "tec/k8s/transport.h"
#include "tec/loop/loop.h"
#include "tec/model/cluster.h"
#include "tec/net/tls.h"

#define SRV_CERTS_MAX 16

/* Fills in the Secrets that the listeners of this cluster need: their certificates and, with
 * `ignition`, the CAs that nodes shall trust. NULL: the cluster names no such Secret. Borrowed
 * from c. */
size_t srv_certs_of(const struct model_cluster *c, bool ignition, const char *names[SRV_CERTS_MAX]);

struct srv_certs;
/* changed is called when the content of a Secret, or whether it can be read, has changed. */
struct srv_certs *srv_certs_new(struct loop *l, struct k8s_transport *t, const char *ns,
	void (*changed)(void *arg), void *arg);
void srv_certs_free(struct srv_certs *c);
/* Sets the watched names; NULL entries are skipped, and names that are no longer listed are
 * dropped. ca_sha256: as in struct model_cluster; a Secret whose ca.crt has any other certificate
 * counts as unusable, and what was in use from it is dropped. */
void srv_certs_want(struct srv_certs *c, const char *const *names, size_t n, const char *ca_sha256);
/* Whether each wanted Secret has been listed once, present or not. */
int srv_certs_filled(const struct srv_certs *c);
/* ca.crt, borrowed until control returns to the loop; NULL: no such Secret, no ca.crt in it, or
 * never a usable one. */
const char *srv_certs_ca(const struct srv_certs *c, const char *name);
/* The server identity, borrowed (take a ref to keep); NULL: absent or never usable. */
struct tls_ctx *srv_certs_tls(const struct srv_certs *c, const char *name);

#endif
