/* SPDX-License-Identifier: MIT */
/*
 * Server TLS contexts: TLS 1.2 or later, ECDHE AEAD suites, no tickets, no renegotiation, ALPN
 * http/1.1 only. Reference counted, so that a listener can switch to a new context while open
 * connections keep the old one. Made from PEM bytes, never from files: the caller reads Secrets or
 * files.
 */
#ifndef TEC_NET_TLS_H
#define TEC_NET_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"

struct tls_ctx;
struct ssl_ctx_st;

/* NULL with ERR_INVALID: the server cannot use them, as pki/pair.h has it. The order of the
 * certificates is free. OpenSSL owns its copy of the key. */
struct tls_ctx *tls_ctx_new(const void *cert_pem, size_t cert_len, const void *key_pem,
	size_t key_len, struct err *err) MUST_CHECK;
struct tls_ctx *tls_ctx_ref(struct tls_ctx *c);
void tls_ctx_unref(struct tls_ctx *c);              /* NULL is fine */
int64_t tls_ctx_not_after(const struct tls_ctx *c); /* the leaf's expiry, wall clock seconds */
struct ssl_ctx_st *tls_ctx_ssl(struct tls_ctx *c);  /* net/ only */

/*
 * Request an optional certificate from every client; call it before the context is used. A certificate
 * that fails verification against the CAs (PEM) does not end the handshake, so that the request can be
 * refused with a reason: authorization must check tls_client_of(). ERR_INVALID: no CA, a malformed one,
 * or more than 16.
 */
int tls_ctx_ask_clients(
	struct tls_ctx *c, const void *ca_pem, size_t ca_len, struct err *err) MUST_CHECK;

enum tls_client_state {
	TLS_CLIENT_NONE, /* no certificate */
	TLS_CLIENT_OK,   /* verified: its name is in *out */
	TLS_CLIENT_BAD,  /* unknown CA, expired, no clientAuth, or an unusable name */
};
#define TLS_CLIENT_ORGS 8
struct tls_client {
	char name[256];                  /* the subject's common name */
	char orgs[TLS_CLIENT_ORGS][128]; /* its organizations */
	size_t n_orgs;
};
struct ssl_st;
/* *out is filled only if the result is OK. net/ only. */
enum tls_client_state tls_client_of(struct ssl_st *ssl, struct tls_client *out);

DEFINE_CLEANUP(tls_ctx_cleanup_, struct tls_ctx *, tls_ctx_unref)
#define cleanup_tls_ctx __attribute__((cleanup(tls_ctx_cleanup_)))

#endif
