/* SPDX-License-Identifier: MIT */
/*
 * Reads the PEM armour and the DER by hand, byte by byte: RFC 8017 permits exactly one DER encoding
 * per RSA key, and OpenSSL's decoder takes 140 us per key where this takes 3 (10,000 keys are
 * listed at each start). Nothing is skipped: no header lines, no text around the block, no
 * alternative length encoding. Tests and fuzzer compare every accepted key with OpenSSL.
 */
#include "config.h"

#include "tec/pki/spki.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <string.h>

#include "tec/base/mem.h"

#define PEM_MAX  8192
#define BITS_MIN 2048
#define BITS_MAX 4096
#define ACCEPTED "an RSA public key of 2048 to 4096 bits with exponent 65537"
#define WANTED   "send one PEM block \"PUBLIC KEY\" (SubjectPublicKeyInfo) with " ACCEPTED

#define BEGIN    "-----BEGIN "
#define END_LINE "-----END PUBLIC KEY-----"
#define LABEL    "PUBLIC KEY"

/* The bytes that are still unread. */
struct span {
	const uint8_t *p;
	size_t len;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Consume text if the span starts with it. */
static bool take_text(struct span *s, const char *text)
{
	size_t n = strlen(text);

	if (s->len < n || memcmp(s->p, text, n) != 0)
		return false;
	s->p += n;
	s->len -= n;
	return true;
}

static bool take_eol(struct span *s)
{
	return take_text(s, "\r\n") || take_text(s, "\n");
}

/* Explain what was sent instead of a public key, judging by the block's label. */
static int refuse_label(struct span s, struct err *err)
{
	static const struct {
		const char *label, *what;
	} known[] = {
		{"RSA PUBLIC KEY", "a bare RSA public key (PKCS #1)"},
		{"CERTIFICATE", "a certificate"},
		{"EC PARAMETERS", "elliptic curve parameters"},
	};
	size_t n = 0;

	while (n < s.len && n < 64 && s.p[n] != '-' && s.p[n] != '\n')
		n++;
	/* Covers every "... PRIVATE KEY" label; say so clearly, as the key has just left its
	 * machine. */
	if (n >= 11 && memcmp(s.p + n - 11, "PRIVATE KEY", 11) == 0)
		return err_set(err, ERR_INVALID,
			"This is a private key and must stay on its machine; " WANTED ".");
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (n == strlen(known[i].label) && memcmp(s.p, known[i].label, n) == 0)
			return err_set(err, ERR_INVALID, "This is %s; " WANTED ".", known[i].what);
	}
	return err_set(err, ERR_INVALID, "The PEM block is not a public key; " WANTED ".");
}

/* Join the base64 lines up to the END line. Empty lines are refused here, characters outside
 * base64 by the caller's decoder. */
static int join_lines(struct span *s, struct strbuf *b64, struct err *err)
{
	while (!take_text(s, END_LINE)) {
		size_t n = 0;

		while (n < s->len && s->p[n] != '\r' && s->p[n] != '\n')
			n++;
		if (n == 0 || n == s->len)
			return err_set(err, ERR_INVALID,
				"The PEM block has an empty line or no end line; " WANTED ".");
		/* RFC 1421 headers, such as Proc-Type of an encrypted key. */
		if (memchr(s->p, ':', n))
			return err_set(
				err, ERR_INVALID, "The PEM block has header lines; " WANTED ".");
		strbuf_add(b64, s->p, n);
		s->p += n;
		s->len -= n;
		if (!take_eol(s))
			return err_set(err, ERR_INVALID,
				"The PEM lines must end in LF or CRLF; " WANTED ".");
	}
	return 0;
}

/* Convert PEM (RFC 7468) to DER. The caller frees *der. */
static int pem_to_der(struct span s, uint8_t **der, size_t *der_len, struct err *err)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	while (s.len > 0 && is_space((char)s.p[0]))
		s.p++, s.len--;
	while (s.len > 0 && is_space((char)s.p[s.len - 1]))
		s.len--;
	if (s.len == 0)
		return err_set(err, ERR_INVALID, "The public key is empty; " WANTED ".");
	if (!take_text(&s, BEGIN))
		return err_set(err, ERR_INVALID,
			"The public key does not begin with a PEM line; " WANTED ".");
	if (!take_text(&s, LABEL "-----"))
		return refuse_label(s, err);
	if (!take_eol(&s))
		return err_set(
			err, ERR_INVALID, "The PEM begin line has trailing data; " WANTED ".");
	if (join_lines(&s, &b64, err) < 0)
		return -1;
	if (s.len > 0)
		return err_set(err, ERR_INVALID,
			"The text contains more than one PEM block, or text around it; " WANTED
			".");
	if (bytes_from_b64(strbuf_str(&b64), b64.len, der, der_len) < 0)
		return err_set(err, ERR_INVALID, "The PEM block is not base64; " WANTED ".");
	return 0;
}

/* Take one DER element with this tag and a minimal definite length (X.690 section 10.1) of at
 * most 65535. */
static bool take_tlv(struct span *s, uint8_t tag, struct span *content)
{
	size_t len, head = 2;

	if (s->len < 2 || s->p[0] != tag)
		return false;
	len = s->p[1];
	/* The long form is minimal only for a length that no shorter form can express. */
	if (len == 0x81) {
		if (s->len < 3 || s->p[2] < 0x80)
			return false;
		len = s->p[2];
		head = 3;
	} else if (len == 0x82) {
		if (s->len < 4 || s->p[2] == 0)
			return false;
		len = (size_t)s->p[2] << 8 | s->p[3];
		head = 4;
	} else if (len >= 0x80) {
		return false;
	}
	if (len > s->len - head)
		return false;
	content->p = s->p + head;
	content->len = len;
	s->p += head + len;
	s->len -= head + len;
	return true;
}

/* Take a positive INTEGER in its shortest form (X.690 section 8.3.2), without the sign byte. */
static bool take_positive(struct span *s, struct span *out)
{
	if (!take_tlv(s, 0x02, out) || out->len == 0 || (out->p[0] & 0x80))
		return false;
	if (out->p[0] == 0) {
		if (out->len == 1 || !(out->p[1] & 0x80))
			return false;
		out->p++;
		out->len--;
	}
	return true;
}

static bool has_prefix(struct span s, const uint8_t *bytes, size_t len)
{
	return s.len >= len && memcmp(s.p, bytes, len) == 0;
}

/* Accept the AlgorithmIdentifier rsaEncryption with NULL parameters (RFC 3279 section 2.3.1)
 * only. */
static int check_algorithm(struct span alg, struct err *err)
{
	static const uint8_t rsa[] = {0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
		0x01, 0x05, 0x00}; /* 1.2.840.113549.1.1.1, NULL */
	static const uint8_t pss[] = {
		0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a};
	static const uint8_t ec[] = {0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01};

	if (alg.len == sizeof(rsa) && has_prefix(alg, rsa, sizeof(rsa)))
		return 0;
	if (has_prefix(alg, pss, sizeof(pss)))
		return err_set(err, ERR_INVALID,
			"This is an RSASSA-PSS key, which Trustee cannot verify; " WANTED ".");
	if (has_prefix(alg, ec, sizeof(ec)))
		return err_set(err, ERR_INVALID,
			"This is an elliptic curve key, which Trustee cannot verify; " WANTED ".");
	return err_set(err, ERR_INVALID,
		"The key's algorithm is not rsaEncryption with NULL parameters; " WANTED ".");
}

/* Check the RSAPublicKey (RFC 8017 A.1.1) in the BIT STRING. */
static int check_rsa(struct span bits, unsigned *out_bits, struct err *err)
{
	static const uint8_t f4[] = {0x01, 0x00, 0x01};
	struct span rsa, n, e;
	unsigned n_bits;

	/* The first byte counts the unused bits of the last one: a key has none. */
	if (bits.len < 1 || bits.p[0] != 0)
		return err_set(err, ERR_INVALID, "The key's bit string is malformed; " WANTED ".");
	bits.p++;
	bits.len--;
	if (!take_tlv(&bits, 0x30, &rsa) || bits.len > 0 || !take_positive(&rsa, &n) ||
		!take_positive(&rsa, &e) || rsa.len > 0)
		return err_set(err, ERR_INVALID,
			"The RSA key is malformed or has trailing data; " WANTED ".");
	/* take_positive() left no leading zero byte, so clz is defined. */
	n_bits = (unsigned)(n.len * 8) - (unsigned)(__builtin_clz(n.p[0]) - 24);
	if (n_bits < BITS_MIN || n_bits > BITS_MAX)
		return err_set(err, ERR_INVALID, "The RSA key has %u bits; " WANTED ".", n_bits);
	if (!has_prefix(e, f4, sizeof(f4)) || e.len != sizeof(f4))
		return err_set(
			err, ERR_INVALID, "The RSA key's exponent is not 65537; " WANTED ".");
	/* A product of two odd primes is odd: OpenSSL would fail only when the key is used. */
	if (!(n.p[n.len - 1] & 1))
		return err_set(err, ERR_INVALID, "The RSA modulus is even; " WANTED ".");
	*out_bits = n_bits;
	return 0;
}

/* The algorithm is checked before the BIT STRING so that the message can name the kind of key. */
int pki_spki_parse_der(const uint8_t *der, size_t len, struct pki_spki *out, struct err *err)
{
	struct span all = {der, len}, spki, alg, key;

	if (!take_tlv(&all, 0x30, &spki) || !take_tlv(&spki, 0x30, &alg))
		return err_set(err, ERR_INVALID,
			"The key is not a SubjectPublicKeyInfo in DER; " WANTED ".");
	if (check_algorithm(alg, err) < 0)
		return -1;
	if (!take_tlv(&spki, 0x03, &key) || spki.len > 0)
		return err_set(err, ERR_INVALID, "The key's bit string is malformed; " WANTED ".");
	if (all.len > 0)
		return err_set(err, ERR_INVALID, "Trailing data after the key; " WANTED ".");
	if (check_rsa(key, &out->bits, err) < 0)
		return -1;
	if (len > sizeof(out->der)) /* 4096 bits are 550 bytes */
		return err_set(err, ERR_INVALID, "The public key is too long; " WANTED ".");
	memcpy(out->der, der, len);
	out->der_len = len;
	bytes_sha256(der, len, out->sha256);
	return 0;
}

/* len is bounded before decoding, because the sender is not yet authenticated. */
int pki_spki_parse_pem(const char *pem, size_t len, struct pki_spki *out, struct err *err)
{
	struct span s = {(const uint8_t *)pem, len};
	cleanup_free uint8_t *der = NULL;
	size_t der_len = 0;

	if (len > PEM_MAX)
		return err_set(err, ERR_INVALID, "The public key is too long; " WANTED ".");
	if (len > 0 && memchr(pem, '\0', len))
		return err_set(err, ERR_INVALID, "The public key contains a NUL byte; " WANTED ".");
	if (pem_to_der(s, &der, &der_len, err) < 0)
		return -1;
	return pki_spki_parse_der(der, der_len, out, err);
}

int pki_spki_verify(const struct pki_spki *k, const void *message, size_t len, const uint8_t *sig,
	size_t sig_len, struct err *err)
{
	const unsigned char *p = k->der;
	EVP_PKEY *key = d2i_PUBKEY(NULL, &p, (long)k->der_len);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	/* OpenSSL's default padding for RSA signatures is PKCS #1 v1.5. */
	bool ok = key && ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		  EVP_DigestVerify(ctx, sig, sig_len, message, len) == 1;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	ERR_clear_error();
	if (!ok)
		return err_set(err, ERR_DENIED, "The signature was not made with this key.");
	return 0;
}

void pki_spki_to_pem(const struct pki_spki *k, struct strbuf *out)
{
	cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

	bytes_to_b64(&b64, k->der, k->der_len);
	strbuf_adds(out, BEGIN LABEL "-----\n");
	/* RFC 7468 section 2: lines of exactly 64 characters, the last one may be shorter. */
	for (size_t i = 0; i < b64.len; i += 64) {
		strbuf_add(out, b64.data + i, b64.len - i < 64 ? b64.len - i : 64);
		strbuf_addc(out, '\n');
	}
	strbuf_adds(out, END_LINE "\n");
}
