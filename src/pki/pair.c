/* SPDX-License-Identifier: MIT */
/*
 * Reads the chain as a TLS server does: blocks that are not certificates are skipped, a malformed
 * one is refused. The server's own certificate is the one that the key belongs to, or without a key
 * the first. Nodes are assumed to verify as curl does: any certificate in ca.crt ends the chain.
 */
#include "config.h"

#include "tec/pki/pair.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/pki/cert.h"
#include "tec/pki/openssl.h"

#define CHAIN_MAX 17 /* certificates: the server's own and 16 others */
#define PEM_MAX   ((size_t)1 << 20)

static void stack_free(STACK_OF(X509) * s)
{
	sk_X509_pop_free(s, X509_free);
}
DEFINE_CLEANUP(stack_cleanup_, STACK_OF(X509) *, stack_free)
#define cleanup_stack __attribute__((cleanup(stack_cleanup_)))

/* ---- reading */

/* Note that a pass phrase is needed. OpenSSL's own callback would prompt on the terminal. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	if (arg)
		*(bool *)arg = true;
	return -1;
}

static BIO *open_pem(const void *pem, size_t len)
{
	BIO *bio = BIO_new_mem_buf(len ? pem : "", (int)len);

	if (!bio)
		DIE("no memory for a BIO");
	return bio;
}

/* NULL: no certificate, a malformed one, or too much text. The caller frees. */
static STACK_OF(X509) * read_all(const void *pem, size_t len)
{
	cleanup_stack STACK_OF(X509) *all = sk_X509_new_null();
	cleanup_bio BIO *bio = open_pem(pem, len <= PEM_MAX ? len : 0);
	X509 *x;

	while ((x = PEM_read_bio_X509(bio, NULL, no_pass_phrase, NULL)))
		if (!sk_X509_push(all, x))
			DIE("no memory for a certificate");
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE || !sk_X509_num(all))
		return NULL;
	return steal_ptr(&all);
}

/* ---- the order */

static void move(STACK_OF(X509) * from, int i, STACK_OF(X509) * to)
{
	if (!sk_X509_push(to, sk_X509_delete(from, i)))
		DIE("no memory for a certificate");
}

/* Move the server's own certificate, then each issuer that is there, then what is left. Returns
 * whether that changed the order. */
static bool put_in_order(STACK_OF(X509) * all, int own, STACK_OF(X509) * out)
{
	bool changed = false;

	while (own >= 0) {
		X509 *last = sk_X509_value(all, own);

		changed = changed || own > 0;
		move(all, own, out);
		own = -1;
		for (int i = 0; i < sk_X509_num(all) && own < 0; i++)
			if (X509_check_issued(sk_X509_value(all, i), last) == X509_V_OK)
				own = i;
	}
	while (sk_X509_num(all))
		move(all, 0, out);
	return changed;
}

/* Return which certificate the key belongs to; -1: none. */
static int owner_of(STACK_OF(X509) * all, EVP_PKEY *key)
{
	for (int i = 0; i < sk_X509_num(all); i++)
		if (X509_check_private_key(sk_X509_value(all, i), key) == 1)
			return i;
	return -1;
}

/* ---- judging */

#define FAULT(fault, ...) (err_set(why, ERR_INVALID, __VA_ARGS__), (fault))

static enum pki_pair_fault judge_key(
	const struct pki_pair *p, STACK_OF(X509) * all, int *own, struct err *why)
{
	cleanup_bio BIO *bio = open_pem(p->key, p->key_len);
	cleanup_pkey EVP_PKEY *key = NULL;
	bool encrypted = false;

	key = PEM_read_bio_PrivateKey(bio, NULL, no_pass_phrase, &encrypted);
	if (encrypted)
		return FAULT(PKI_PAIR_ENCRYPTED,
			"tls.key is encrypted; store the private key without a pass phrase");
	if (!key)
		return FAULT(PKI_PAIR_BAD_KEY, "tls.key is %s",
			p->key_len ? "not a private key in PEM" : "missing or empty");
	*own = owner_of(all, key);
	if (*own < 0)
		return FAULT(PKI_PAIR_MISMATCH,
			"tls.key does not match tls.crt; store a certificate and the private key that it was issued for");
	return PKI_PAIR_OK;
}

static enum pki_pair_fault judge_time(X509 *x, int64_t now_s, struct err *why)
{
	char at[CLOCK_RFC3339_LEN] = "an unreadable time";
	time_t now = (time_t)now_s;
	int early = X509_cmp_time(X509_get0_notBefore(x), &now);
	int late = X509_cmp_time(X509_get0_notAfter(x), &now);
	struct tm tm;

	if (early < 0 && late > 0)
		return PKI_PAIR_OK;
	if (ASN1_TIME_to_tm(late > 0 ? X509_get0_notBefore(x) : X509_get0_notAfter(x), &tm) == 1)
		clock_format((int64_t)timegm(&tm), at);
	return late > 0 ? FAULT(PKI_PAIR_EARLY,
				  "tls.crt is not valid before %s; compare the clocks", at)
			: FAULT(PKI_PAIR_EXPIRED, "tls.crt expired at %s; renew it", at);
}

static enum pki_pair_fault no_ca(struct err *why)
{
	return FAULT(PKI_PAIR_NO_CA,
		"ca.crt has no usable certificate, and nodes verify the server only with it; store the certificate of the CA "
		"that issued the server's certificate as ca.crt");
}

/* Verify as a node does that trusts these certificates and no others. */
static enum pki_pair_fault judge_ca(
	const struct pki_pair *p, STACK_OF(X509) * trusted, STACK_OF(X509) * chain, struct err *why)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509_STORE *store = X509_STORE_new();
	X509_VERIFY_PARAM *param;
	int error;

	if (!ctx || !store || X509_STORE_CTX_init(ctx, store, sk_X509_value(chain, 0), chain) != 1)
		DIE("no memory for a verification");
	param = X509_STORE_CTX_get0_param(ctx);
	X509_STORE_CTX_set0_trusted_stack(ctx, trusted);
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
	if (p->now_s)
		X509_VERIFY_PARAM_set_time(param, (time_t)p->now_s);
	else
		X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
	error = X509_verify_cert(ctx) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx);
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	if (error == X509_V_ERR_CERT_HAS_EXPIRED)
		return FAULT(PKI_PAIR_EXPIRED,
			"a CA certificate in ca.crt or tls.crt expired; renew it");
	if (error != X509_V_OK)
		return FAULT(PKI_PAIR_OTHER_CA,
			"nodes cannot verify tls.crt with ca.crt (%s); store the certificate of the CA that issued tls.crt as ca.crt",
			X509_verify_cert_error_string(error));
	return PKI_PAIR_OK;
}

/* What depends on more than the pair itself. The most urgent comes first. */
static enum pki_pair_fault judge_chain(
	const struct pki_pair *p, STACK_OF(X509) * trusted, STACK_OF(X509) * chain, struct err *why)
{
	X509 *own = sk_X509_value(chain, 0);
	enum pki_pair_fault fault = p->now_s ? judge_time(own, p->now_s, why) : PKI_PAIR_OK;

	if (fault == PKI_PAIR_OK && p->ca)
		fault = trusted ? judge_ca(p, trusted, chain, why) : no_ca(why);
	if (fault == PKI_PAIR_OK && p->name && !pki_x509_covers(own, p->name))
		return FAULT(PKI_PAIR_NAME,
			"tls.crt does not cover %.253s, the public address; have it issued for that name",
			p->name);
	return fault;
}

static enum pki_pair_fault judge(const struct pki_pair *p, struct strbuf *text, struct err *why)
{
	cleanup_stack STACK_OF(X509) *trusted = p->ca ? read_all(p->ca, strlen(p->ca)) : NULL;
	cleanup_stack STACK_OF(X509) *all = NULL, *chain = sk_X509_new_null();
	enum pki_pair_fault fault = PKI_PAIR_OK;
	bool changed;
	int own = 0;

	if (!p->cert)
		return !p->ca || trusted ? PKI_PAIR_OK : no_ca(why);
	if (!p->cert_len)
		return FAULT(PKI_PAIR_BAD_CERT, "tls.crt is missing or empty");
	all = read_all(p->cert, p->cert_len);
	if (!all || sk_X509_num(all) > CHAIN_MAX)
		return FAULT(PKI_PAIR_BAD_CERT,
			"tls.crt is not a chain of at most %d certificates in PEM", CHAIN_MAX);
	if (p->key && p->key_len > PEM_MAX)
		return FAULT(PKI_PAIR_BAD_KEY, "tls.key is longer than 1 MiB");
	if (p->key)
		fault = judge_key(p, all, &own, why);
	if (fault != PKI_PAIR_OK)
		return fault;
	changed = put_in_order(all, own, chain);
	for (int i = 0; text && i < sk_X509_num(chain); i++)
		if (!pki_x509_add_pem(text, sk_X509_value(chain, i)))
			return FAULT(PKI_PAIR_BAD_CERT, "tls.crt cannot be encoded as PEM");
	fault = judge_chain(p, trusted, chain, why);
	if (fault == PKI_PAIR_OK && changed)
		return FAULT(PKI_PAIR_ORDER,
			"the certificates in tls.crt are in the wrong order; store the server's own first, then its issuer");
	return fault;
}

/* Errors about rejected input must not stay in OpenSSL's queue: the next connection would find
 * them. */
enum pki_pair_fault pki_pair_judge(const struct pki_pair *p, struct strbuf *chain, struct err *why)
{
	enum pki_pair_fault fault;

	ERR_set_mark();
	fault = judge(p, chain, why);
	ERR_pop_to_mark();
	return fault;
}
