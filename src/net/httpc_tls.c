/* SPDX-License-Identifier: MIT */
/*
 * Trust and client identity, as PEM kept in memory and passed to curl as blobs (not copied: the call
 * holds a reference). Everything is parsed once here, so that a bad file is a clear error and not a
 * failed handshake. An encrypted key is refused, because OpenSSL would prompt on the terminal. Each
 * object ends its CA bundle with a unique comment: curl compares blobs before it reuses a connection,
 * so two objects never share one even if their contents are equal.
 */
#include "config.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "httpc_internal.h"

/* A callback that returns an error makes OpenSSL fail instead of prompting on the terminal. */
static int refuse_password(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

/* The BIO reads the memory in place, which must outlive it. */
static BIO *bio_of(const void *pem, size_t len)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)len);

	if (!bio)
		DIE("BIO_new_mem_buf");
	return bio;
}

/* True if the reader has met the end of the text and not a malformed certificate. Empties OpenSSL's
 * queue of errors. */
static bool is_end(void)
{
	unsigned long e = ERR_peek_last_error();

	ERR_clear_error();
	return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

static int trust_pem(SSL_CTX *ctx, const void *pem, size_t len, struct err *err)
{
	BIO *bio = bio_of(pem, len);
	X509 *ca;
	int n = 0;

	for (; (ca = PEM_read_bio_X509(bio, NULL, refuse_password, NULL)) != NULL; n++) {
		if (X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca) != 1)
			DIE("out of memory: X509_STORE_add_cert");
		X509_free(ca);
	}
	BIO_free(bio);
	if (!is_end() || n == 0)
		return err_set(err, ERR_INVALID,
			"the certificate authority is not one or more PEM certificates");
	return 0;
}

/* Set certificate, key and chain. */
static int use_pair(SSL_CTX *ctx, const struct httpc_tls *t, struct err *err)
{
	BIO *certs = bio_of(t->cert, t->cert_len);
	BIO *key_pem = bio_of(secret_peek(t->key), secret_len(t->key));
	EVP_PKEY *key = PEM_read_bio_PrivateKey(key_pem, NULL, refuse_password, NULL);
	X509 *cert = PEM_read_bio_X509(certs, NULL, refuse_password, NULL), *x;
	int rc = 0;

	ERR_clear_error();
	while (cert && (x = PEM_read_bio_X509(certs, NULL, refuse_password, NULL)) != NULL)
		if (SSL_CTX_add0_chain_cert(ctx, x) != 1)
			DIE("out of memory: SSL_CTX_add0_chain_cert");
	if (!cert || !is_end())
		rc = err_set(err, ERR_INVALID, "the client certificate is not a PEM certificate");
	else if (!key)
		rc = err_set(
			err, ERR_INVALID, "the client key is not an unencrypted PEM private key");
	else if (X509_check_private_key(cert, key) != 1)
		rc = err_set(err, ERR_INVALID,
			"the client key does not belong to the client certificate");
	else if (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, key) != 1)
		rc = err_set(err, ERR_INVALID, "OpenSSL does not accept the client certificate");
	ERR_clear_error();
	X509_free(cert);
	EVP_PKEY_free(key);
	BIO_free(certs);
	BIO_free(key_pem);
	return rc;
}

/* Each part is checked here, so that a wrong Secret or file is reported by name before any
 * connection. */
struct httpc_tls *httpc_tls_new(const void *ca_pem, size_t ca_len, const void *cert_pem,
	size_t cert_len, const void *key_pem, size_t key_len, const char *server_name,
	struct err *err)
{
	static unsigned long serial;
	SSL_CTX *ctx;
	struct httpc_tls *t;
	int rc = 0;

	if (ca_len > INT32_MAX || cert_len > INT32_MAX || key_len > SECRET_MAX_LEN) {
		err_set(err, ERR_INVALID, "a certificate or key is too large");
		return NULL;
	}
	if (!cert_pem != !key_pem) {
		err_set(err, ERR_INVALID,
			"a client certificate and its key must be given together");
		return NULL;
	}
	t = xcalloc(1, sizeof(*t));
	t->refs = 1;
	if (ca_pem) {
		struct strbuf b = STRBUF_INIT;

		/* A comment that no other object has; see the head of this file. */
		strbuf_add(&b, ca_pem, ca_len);
		strbuf_addf(&b, "\n# tec %lu\n", ++serial);
		t->ca_len = b.len;
		t->ca = strbuf_steal(&b);
	}
	if (cert_pem) {
		t->cert = xmemdup(cert_pem, cert_len);
		t->cert_len = cert_len;
		t->key = secret_new_copy(key_pem, key_len);
	}
	if (server_name && *server_name)
		t->server_name = xstrdup(server_name);
	ctx = SSL_CTX_new(TLS_client_method());
	if (!ctx)
		DIE("out of memory: SSL_CTX_new");
	if (ca_pem)
		rc = trust_pem(ctx, ca_pem, ca_len, err);
	if (rc == 0 && cert_pem)
		rc = use_pair(ctx, t, err);
	SSL_CTX_free(ctx);
	if (rc < 0)
		httpc_tls_unref(steal_ptr(&t));
	return t;
}

/* Warn once per process: a warning for each connection would be ignored. */
void httpc_tls_skip_verify(struct httpc_tls *t)
{
	static bool warned;

	if (!warned)
		log_warn(NULL,
			"TLS certificates of the server are not verified: insecure-skip-tls-verify is set",
			NULL);
	warned = true;
	t->insecure = true;
}

struct httpc_tls *httpc_tls_ref(struct httpc_tls *t)
{
	t->refs++;
	return t;
}

void httpc_tls_unref(struct httpc_tls *t)
{
	if (!t || --t->refs)
		return;
	free(t->ca);
	free(t->cert);
	free(t->server_name);
	secret_free(t->key);
	free(t);
}

/* Let OpenSSL wipe plaintext it has passed on; curl's own buffers are wiped by our allocator
 * (httpc.c). */
static CURLcode on_ssl_ctx(CURL *easy, void *ctx, void *arg)
{
	SSL_CTX_set_options(ctx, SSL_OP_CLEANSE_PLAINTEXT);
	return CURLE_OK;
}

/* The context for h2c, with the settings that httpc_tls_apply() makes through curl. */
SSL_CTX *httpc_tls_ctx(const struct httpc_tls *t)
{
	struct err err = ERR_INIT;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		DIE("out of memory: SSL_CTX_new");
	SSL_CTX_set_options(
		ctx, SSL_OP_CLEANSE_PLAINTEXT | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, t->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	/* As in curl: an intermediate certificate may be the trust anchor. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
	if (!t->ca && !t->insecure)
		(void)SSL_CTX_set_default_verify_paths(ctx);
	if ((t->ca && trust_pem(ctx, t->ca, t->ca_len, &err) < 0) ||
		(t->cert && use_pair(ctx, t, &err) < 0))
		DIE("a certificate was accepted before: %s", err.text);
	ERR_clear_error();
	return ctx;
}

/* NOCOPY: the memory belongs to the httpc_tls, to which the call holds a reference. */
static CURLcode set_blob(CURL *easy, CURLoption opt, const void *data, size_t len)
{
	struct curl_blob blob = {
		.data = (void *)(uintptr_t)data, .len = len, .flags = CURL_BLOB_NOCOPY};

	return curl_easy_setopt(easy, opt, &blob);
}

/* The first failing option ends the chain; curl may be built without a feature. */
CURLcode httpc_tls_apply(const struct httpc_tls *t, CURL *easy)
{
	CURLcode rc;

	if (!t)
		return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
	rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	if (!rc)
		rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (!rc) /* a resumed session would not be verified again */
		rc = curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	if (!rc)
		rc = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_ctx);
	if (!rc && t->insecure) {
		rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		if (!rc)
			rc = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (!rc && t->ca) {
		/* CAPATH must be NULL: Debian's built-in directory would still trust every public CA. */
		rc = set_blob(easy, CURLOPT_CAINFO_BLOB, t->ca, t->ca_len);
		if (!rc)
			rc = curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		if (!rc)
			rc = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	}
	if (!rc && t->cert) {
		rc = set_blob(easy, CURLOPT_SSLCERT_BLOB, t->cert, t->cert_len);
		if (!rc)
			rc = set_blob(
				easy, CURLOPT_SSLKEY_BLOB, secret_peek(t->key), secret_len(t->key));
	}
	return rc;
}
