/* SPDX-License-Identifier: MIT */
/*
 * Key pairs over OpenSSL 3 EVP. A private key in PEM passes through OpenSSL's secure BIO (wiped on
 * free) and then exists in a struct secret only. Reading refuses encrypted keys (no prompt for a
 * passphrase), algorithms other than the two made here, and trailing data. OpenSSL's error queue is
 * left unchanged: a stale entry would be reported by an unrelated TLS session.
 */
#include "config.h"

#include "tec/pki/key.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/pki/openssl.h"

struct pki_key {
	EVP_PKEY *evp; /* owned; OpenSSL wipes the private part on free */
};

/* NULL aborts: key generation fails only without memory or random numbers. */
static struct pki_key *wrap_new(EVP_PKEY *take_evp, const char *what)
{
	struct pki_key *k;

	if (!take_evp)
		DIE("cannot make a %s key", what);
	k = xcalloc(1, sizeof(*k));
	k->evp = take_evp;
	return k;
}

struct pki_key *pki_key_new_ed25519(void)
{
	return wrap_new(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), "Ed25519");
}

struct pki_key *pki_key_new_p256(void)
{
	return wrap_new(EVP_EC_gen("P-256"), "P-256");
}

bool pki_key_is_ed25519(const struct pki_key *k)
{
	return EVP_PKEY_is_a(k->evp, "ED25519") == 1;
}

void pki_key_free(struct pki_key *k)
{
	if (!k)
		return;
	EVP_PKEY_free(k->evp);
	free(k);
}

void *pki_key_evp(const struct pki_key *k)
{
	return k->evp;
}

struct pki_jwk pki_jwk_read(struct json_object *o)
{
	return (struct pki_jwk){.kty = json_get_str(o, "kty"),
		.crv = json_get_str(o, "crv"),
		.alg = json_get_str(o, "alg"),
		.x = json_get_str(o, "x"),
		.y = json_get_str(o, "y"),
		.n = json_get_str(o, "n"),
		.e = json_get_str(o, "e")};
}

bool pki_bio_ends(BIO *bio)
{
	char c;

	while (BIO_read(bio, &c, 1) == 1)
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return false;
	return true;
}

/* Refuse an encrypted key instead of prompting on the terminal. */
static int no_passphrase(char *buf, int size, int rwflag, void *arg)
{
	(void)buf, (void)size, (void)rwflag, (void)arg;
	return -1;
}

/* Trailing data is refused: a second key there would be ignored silently. */
struct pki_key *pki_key_from_pem(const struct secret *pem, struct err *err)
{
	cleanup_bio BIO *bio = BIO_new_mem_buf(secret_peek(pem), (int)secret_len(pem));
	cleanup_pkey EVP_PKEY *evp = NULL;
	char group[32] = "";
	bool ours;

	if (!bio)
		DIE("no memory for a BIO");
	ERR_set_mark();
	/* Accepts PKCS#8 and the older "EC PRIVATE KEY". */
	evp = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	ERR_pop_to_mark();
	if (!evp)
		return err_null(err, ERR_INVALID, "no unencrypted private key in PEM");
	/* Another algorithm would fail only later, at the first signature. prime256v1 is OpenSSL's
	 * name of P-256. */
	ours = EVP_PKEY_is_a(evp, "ED25519") ||
	       (EVP_PKEY_is_a(evp, "EC") &&
		       EVP_PKEY_get_group_name(evp, group, sizeof(group), NULL) == 1 &&
		       str_eq(group, "prime256v1"));
	if (!ours || !pki_bio_ends(bio))
		return err_null(err, ERR_INVALID,
			"the private key must be a single Ed25519 or P-256 key without trailing data");
	return wrap_new(steal_ptr(&evp), "parsed");
}

/* The secure-memory BIO wipes its buffer when freed; a plain one would leave the key on the
 * heap. */
struct secret *pki_key_private_pem(const struct pki_key *k)
{
	cleanup_bio BIO *bio = BIO_new(BIO_s_secmem());
	char *data = NULL;
	long len;

	if (!bio || PEM_write_bio_PKCS8PrivateKey(bio, k->evp, NULL, NULL, 0, NULL, NULL) != 1)
		DIE("cannot write a private key as PEM");
	len = BIO_get_mem_data(bio, &data);
	return secret_new_copy(data, (size_t)len);
}

void pki_key_public_pem(const struct pki_key *k, struct strbuf *out)
{
	cleanup_bio BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL;
	long len;

	if (!bio || PEM_write_bio_PUBKEY(bio, k->evp) != 1)
		DIE("cannot write a public key as PEM");
	len = BIO_get_mem_data(bio, &data);
	strbuf_add(out, data, (size_t)len);
}
