/* SPDX-License-Identifier: MIT */
/*
 * What pki_spki_parse_pem() accepts is a key to OpenSSL too, with the same DER, and its canonical
 * PEM gives the same key again. What it refuses is refused with a whole sentence. The first byte
 * chooses: PEM as it stands, or DER that is armoured first, so that mutations reach the DER reader.
 */
#include "config.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/str.h"
#include "tec/pki/spki.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct pki_spki *k)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	const unsigned char *p = k->der;
	EVP_PKEY *pkey = d2i_PUBKEY(NULL, &p, (long)k->der_len);
	unsigned char *der = NULL;
	struct err err = ERR_INIT;
	struct pki_spki again;
	int len;

	assert(pkey && p == k->der + k->der_len);
	assert((unsigned)EVP_PKEY_get_bits(pkey) == k->bits && k->bits >= 2048 && k->bits <= 4096);
	len = i2d_PUBKEY(pkey, &der);
	assert(len > 0 && (size_t)len == k->der_len && memcmp(der, k->der, k->der_len) == 0);
	OPENSSL_free(der);
	EVP_PKEY_free(pkey);

	pki_spki_to_pem(k, &pem);
	if (pki_spki_parse_pem(pem.data, pem.len, &again, &err) < 0)
		assert(!"the canonical PEM is refused");
	assert(again.der_len == k->der_len && memcmp(again.der, k->der, k->der_len) == 0);
	assert(memcmp(again.sha256, k->sha256, SHA256_LEN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct pki_spki k;

	if (size == 0)
		return 0;
	if (data[0] == 'D') {
		strbuf_adds(&pem, "-----BEGIN PUBLIC KEY-----\n");
		bytes_to_b64(&pem, data + 1, size - 1);
		strbuf_adds(&pem, "\n-----END PUBLIC KEY-----\n");
	} else {
		strbuf_add(&pem, data + 1, size - 1);
	}
	if (pki_spki_parse_pem(strbuf_str(&pem), pem.len, &k, &err) == 0)
		check_accepted(&k);
	else
		assert(err.kind == ERR_INVALID && str_ends(err.text, "."));
	return 0;
}
