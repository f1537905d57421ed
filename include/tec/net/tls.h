/* SPDX-License-Identifier: MIT */
/*
 * Server TLS contexts: TLS 1.2+, ECDHE AEAD suites, no tickets, no renegotiation,
 * ALPN http/1.1 only. Reference counted (struct tls_ctx is one of the two kinds of object that
 * are): a listener swaps its context for a new one and open connections keep the old. Made from PEM
 * bytes, never from files: the caller reads Secrets or files.
 */
#ifndef TEC_NET_TLS_H
#define TEC_NET_TLS_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/base/mem.h"

struct tls_ctx;
struct ssl_ctx_st;

/* NULL with ERR_INVALID: no certificate, a key that does not fit it, garbage. The key's copy inside
 * OpenSSL is OpenSSL's. */
struct tls_ctx *tls_ctx_new(const void *cert_pem, size_t cert_len, const void *key_pem,
	size_t key_len, struct err *err) MUST_CHECK;
struct tls_ctx *tls_ctx_ref(struct tls_ctx *c);
void tls_ctx_unref(struct tls_ctx *c);              /* NULL is fine */
int64_t tls_ctx_not_after(const struct tls_ctx *c); /* wall clock seconds of the leaf's end */
struct ssl_ctx_st *tls_ctx_ssl(struct tls_ctx *c);  /* net/ only */

DEFINE_CLEANUP(tls_ctx_cleanup_, struct tls_ctx *, tls_ctx_unref)
#define cleanup_tls_ctx __attribute__((cleanup(tls_ctx_cleanup_)))

#endif
