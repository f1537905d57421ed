/* SPDX-License-Identifier: MIT */
/*
 * One SSL_CTX per certificate. Every setting that libevhtp would leave at its default is made and
 * checked here; a context that could not be completed is never returned. It never prompts for a pass
 * phrase and never reads a file.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tec/net/tls.h"
#include "tec/pki/pair.h"

#define PEM_MAX    (1024 * 1024)
#define CHAIN_MAX  16
#define ALPN_HTTP1 "\x08http/1.1"

struct tls_ctx {
	unsigned refs;
	SSL_CTX *ssl; /* one reference */
	int64_t not_after;
};

/* Use the last error of OpenSSL's queue, which is the most specific one, and empty the queue. */
static int set_openssl_error(struct err *err, const char *what)
{
	unsigned long e = ERR_peek_last_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;

	ERR_clear_error();
	return err_set(
		err, ERR_INVALID, "%s: %s", what, reason ? reason : "not accepted by OpenSSL");
}

/* Refuse encrypted PEM: OpenSSL's default callback would prompt on the terminal and block. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

/* Select http/1.1. A client that offers only h2 gets an alert at once; one without ALPN speaks
 * HTTP/1.1 anyway. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *arg)
{
	unsigned char *chosen = NULL;

	if (SSL_select_next_proto(&chosen, out_len, (const unsigned char *)ALPN_HTTP1,
		    sizeof(ALPN_HTTP1) - 1, in, in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Protocol versions, groups and suites. TLS 1.3 suites are OpenSSL's defaults, all of them AEAD. */
static int set_policy(SSL_CTX *ssl, struct err *err)
{
	if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set1_groups_list(ssl, "X25519:P-256") != 1 ||
		SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1 ||
		SSL_CTX_set_num_tickets(ssl, 0) != 1)
		return set_openssl_error(err, "cannot apply the TLS settings");
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	/* Truncation by a missing close_notify is harmless: every message announces its length. */
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
					 SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
					 SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, NULL);
	return 0;
}

/*
 * Add each remaining certificate, up to CHAIN_MAX, and return their number. They are intermediates, or
 * CAs of clients, which are also announced to clients: they choose their certificate by them. A
 * malformed one is an error, as is one too many: what was left out would be missed only in a
 * handshake. OpenSSL signals the end of the text as an error, which the caller clears.
 */
static int add_certificates(
	SSL_CTX *ssl, BIO *bio, bool of_clients, const char *what, struct err *err)
{
	int n = 0;
	X509 *x;

	while ((x = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL)) != NULL) {
		bool ok;

		if (of_clients)
			ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), x) == 1 &&
			     SSL_CTX_add_client_CA(ssl, x) == 1;
		else
			ok = SSL_CTX_add1_chain_cert(ssl, x) == 1;
		X509_free(x);
		if (++n > CHAIN_MAX)
			return err_set(
				err, ERR_INVALID, "%s: more than %d certificates", what, CHAIN_MAX);
		if (!ok)
			return set_openssl_error(err, what);
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return set_openssl_error(err, what);
	return n;
}

static int use_certificates(struct tls_ctx *c, const void *pem, size_t len, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	struct tm tm = {.tm_sec = 0};
	X509 *leaf;
	int rc = 0;

	if (!bio)
		return set_openssl_error(err, "certificate");
	/* The first certificate is the server's own; all further ones are intermediates. */
	leaf = PEM_read_bio_X509_AUX(bio, NULL, no_pass_phrase, NULL);
	if (!leaf)
		rc = set_openssl_error(err, "no certificate in the PEM text");
	else if (SSL_CTX_use_certificate(c->ssl, leaf) != 1)
		rc = set_openssl_error(err, "certificate");
	else if (ASN1_TIME_to_tm(X509_get0_notAfter(leaf), &tm) == 1)
		c->not_after = (int64_t)timegm(&tm); /* else 0: the time is malformed */
	X509_free(leaf);
	if (rc == 0 && add_certificates(c->ssl, bio, false, "certificate chain", err) < 0)
		rc = -1;
	BIO_free(bio);
	ERR_clear_error();
	return rc;
}

/* The certificate is loaded first, so that the key can be checked against it. */
static int use_key(struct tls_ctx *c, const void *pem, size_t len, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, NULL) : NULL;
	int rc = 0;

	BIO_free(bio);
	if (!key)
		return set_openssl_error(err, "no usable private key in the PEM text");
	if (SSL_CTX_use_PrivateKey(c->ssl, key) != 1 || SSL_CTX_check_private_key(c->ssl) != 1)
		rc = set_openssl_error(err, "the private key does not match the certificate");
	EVP_PKEY_free(key);
	return rc;
}

/* A chain in the wrong order is served in the right one. */
struct tls_ctx *tls_ctx_new(
	const void *cert_pem, size_t cert_len, const void *key_pem, size_t key_len, struct err *err)
{
	const struct pki_pair pair = {
		.cert = cert_pem, .cert_len = cert_len, .key = key_pem, .key_len = key_len};
	cleanup_strbuf struct strbuf chain = STRBUF_INIT;
	cleanup_tls_ctx struct tls_ctx *c = NULL;
	struct err why = ERR_INIT;
	enum pki_pair_fault fault;

	ERR_clear_error();
	fault = pki_pair_judge(&pair, &chain, &why);
	if (fault != PKI_PAIR_OK && fault != PKI_PAIR_ORDER) {
		*err = why;
		return NULL;
	}
	c = xcalloc(1, sizeof(*c));
	c->refs = 1;
	c->ssl = SSL_CTX_new(TLS_server_method());
	if (!c->ssl) {
		set_openssl_error(err, "cannot create a TLS context");
		return NULL;
	}
	if (set_policy(c->ssl, err) < 0 || use_certificates(c, chain.data, chain.len, err) < 0 ||
		use_key(c, key_pem, key_len, err) < 0)
		return NULL;
	return steal_ptr(&c);
}

/* ---- clients */

/* Continue the handshake whatever the verification result; it stays with the connection, and
 * tls_client_of() reads it. */
static int go_on(int ok, X509_STORE_CTX *store)
{
	return 1;
}

int tls_ctx_ask_clients(struct tls_ctx *c, const void *ca_pem, size_t ca_len, struct err *err)
{
	static const char what[] = "cannot load the CA of client certificates";
	BIO *bio = BIO_new_mem_buf(ca_pem, ca_len > PEM_MAX ? 0 : (int)ca_len);
	int n;

	ERR_clear_error();
	n = bio ? add_certificates(c->ssl, bio, true, what, err) : 0;
	BIO_free(bio);
	if (n < 0)
		return -1;
	if (n == 0)
		return set_openssl_error(err, what);
	ERR_clear_error();
	SSL_CTX_set_session_id_context(c->ssl, (const unsigned char *)"tec", 3);
	SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, go_on);
	return 0;
}

/* Copy one name of the subject. False: too long for out, or with control characters. */
static bool copy_name(const X509_NAME_ENTRY *e, char *out, size_t size)
{
	unsigned char *text = NULL;
	int len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(e));
	bool ok = len > 0 && (size_t)len < size;

	for (int i = 0; ok && i < len; i++)
		ok = text[i] >= 0x20 && text[i] != 0x7f;
	if (ok) {
		memcpy(out, text, (size_t)len);
		out[len] = '\0';
	}
	OPENSSL_free(text);
	return ok;
}

/* Kubernetes conventions: the common name is the user, organizations are the groups. */
static bool read_subject(X509 *cert, struct tls_client *out)
{
	const X509_NAME *name = X509_get_subject_name(cert);

	*out = (struct tls_client){.n_orgs = 0};
	for (int i = 0; i < X509_NAME_entry_count(name); i++) {
		const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
		int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(e));

		if (nid == NID_commonName &&
			(out->name[0] || !copy_name(e, out->name, sizeof(out->name))))
			return false; /* with two names the user would be ambiguous */
		if (nid == NID_organizationName &&
			(out->n_orgs == TLS_CLIENT_ORGS ||
				!copy_name(e, out->orgs[out->n_orgs++], sizeof(out->orgs[0]))))
			return false;
	}
	return out->name[0] != '\0';
}

enum tls_client_state tls_client_of(struct ssl_st *ssl, struct tls_client *out)
{
	X509 *cert = SSL_get0_peer_certificate(ssl);
	uint32_t flags = cert ? X509_get_extension_flags(cert) : 0;
	bool ok;

	if (!cert)
		return TLS_CLIENT_NONE;
	/* Require the extended key usage clientAuth: OpenSSL also accepts a certificate without any
	 * usage. */
	ok = SSL_get_verify_result(ssl) == X509_V_OK && (flags & EXFLAG_XKUSAGE) &&
	     !(flags & EXFLAG_CA) && (X509_get_extended_key_usage(cert) & XKU_SSL_CLIENT) &&
	     read_subject(cert, out);
	/* Check expiry again: the handshake may have been long ago, and a watch is authorized only
	 * once. */
	ok = ok && X509_cmp_current_time(X509_get0_notAfter(cert)) > 0;
	ERR_clear_error();
	return ok ? TLS_CLIENT_OK : TLS_CLIENT_BAD;
}

struct tls_ctx *tls_ctx_ref(struct tls_ctx *c)
{
	c->refs++;
	return c;
}

void tls_ctx_unref(struct tls_ctx *c)
{
	if (!c)
		return;
	assert(c->refs > 0);
	if (--c->refs > 0)
		return;
	SSL_CTX_free(c->ssl);
	free(c);
}

int64_t tls_ctx_not_after(const struct tls_ctx *c)
{
	return c->not_after;
}

struct ssl_ctx_st *tls_ctx_ssl(struct tls_ctx *c)
{
	return c->ssl;
}
