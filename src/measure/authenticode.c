/* SPDX-License-Identifier: MIT */
/*
 * The digest reads the file once, front to back. DER is parsed by hand: the Names that are compared
 * must point into the caller's bytes, which OpenSSL's objects do not, and only five levels of
 * PKCS#7 are needed. Refused: indefinite or padded lengths, an element that extends past its
 * parent, anything but zeros after the signature, and more certificates than fit.
 */
#include "config.h"

#include "tec/measure/authenticode.h"

#include <string.h>

#include "tec/base/mem.h"

/* ---- the digest */

/* Add the bytes from (included) to (excluded) of the image to a digest. */
int authenticode_add(struct bytes_sha256_run *run, const uint8_t *data,
	authenticode_source_fn source, void *arg, size_t from, size_t to, struct err *err)
{
	while (from < to) {
		size_t n = to - from < AUTHENTICODE_STEP ? to - from : AUTHENTICODE_STEP;
		const uint8_t *p = source ? source(arg, from, n, err) : data + from;

		if (!p)
			return -1;
		bytes_sha256_add(run, p, n);
		from += n;
	}
	return 0;
}

/* Hash once for both digests: they differ only in the padding at the end, so the state is copied
 * there. */
int authenticode_digest(const struct pe *pe, authenticode_source_fn source, void *arg,
	struct authenticode_digests *out, struct err *err)
{
	static const uint8_t zeros[8];
	cleanup_sha256 struct bytes_sha256_run run = {NULL}, padded = {NULL};
	size_t end = pe->len - pe->cert_len, counted = pe->headers_size, n = 3;
	size_t entry = pe->cert_entry_off ? pe->cert_entry_off : pe->headers_size;
	/* Of the headers all but the checksum and the directory entry of the certificate table:
	 * signing changes both. */
	struct range {
		size_t from, to;
	} range[PE_SECTIONS_MAX + 4] = {{0, pe->checksum_off},
		{(size_t)pe->checksum_off + 4, entry}, {entry + 8, pe->headers_size}};

	/* The sections by their offset in the file, not in header order, as the specification
	 * demands. */
	for (unsigned i = 0; i < pe->n_filed; i++) {
		const struct pe_section *s = &pe->section[pe->filed[i]];

		range[n++] = (struct range){s->raw_off, (size_t)s->raw_off + s->raw_size};
		counted += s->raw_size;
	}
	/* pe_parse() refuses overlapping sections, so pe came from elsewhere. */
	if (counted > end)
		return err_set(err, ERR_BUG, "PE sections are larger than their file");
	/* Loaders continue at the sum of the hashed sizes, even if there are gaps between
	 * sections. */
	range[n++] = (struct range){counted, end};
	bytes_sha256_init(&run);
	for (size_t i = 0; i < n; i++)
		if (authenticode_add(&run, pe->data, source, arg, range[i].from, range[i].to, err) <
			0)
			return -1;
	bytes_sha256_copy(&padded, &run);
	if (pe->cert_len == 0)
		bytes_sha256_add(&padded, zeros, (8 - pe->len % 8) % 8);
	bytes_sha256_end(&padded, out->as_signed);
	bytes_sha256_end(&run, out->as_measured);
	return 0;
}

/* ---- DER */

/* The bytes left to read. */
struct span {
	const uint8_t *p;
	size_t len;
};

#define TAG_INTEGER  0x02
#define TAG_BITS     0x03
#define TAG_OCTETS   0x04
#define TAG_OID      0x06
#define TAG_SEQUENCE 0x30
#define TAG_SET      0x31
#define TAG_CONTEXT0 0xa0

static bool next_is(const struct span *s, uint8_t tag)
{
	return s->len > 0 && s->p[0] == tag;
}

/* Read the next element: the whole of it, and its content. Only definite lengths in shortest form
 * (X.690 section 10.1) and one-byte tags are accepted. */
static bool take_any(struct span *s, struct span *whole, struct span *content)
{
	size_t head = 2, len, n;

	if (s->len < 2 || (s->p[0] & 0x1f) == 0x1f)
		return false;
	len = s->p[1];
	if (len >= 0x80) {
		n = len & 0x7f;
		if (n == 0 || n > 4 || s->len < 2 + n || s->p[2] == 0)
			return false;
		len = 0;
		for (size_t i = 0; i < n; i++)
			len = len << 8 | s->p[2 + i];
		if (len < 0x80)
			return false;
		head += n;
	}
	if (len > s->len - head)
		return false;
	*whole = (struct span){s->p, head + len};
	*content = (struct span){s->p + head, len};
	s->p += head + len;
	s->len -= head + len;
	return true;
}

static bool take(struct span *s, uint8_t tag, struct span *content)
{
	struct span whole;

	return next_is(s, tag) && take_any(s, &whole, content);
}

static bool take_oid(struct span *s, const uint8_t *oid, size_t len)
{
	struct span content;

	return take(s, TAG_OID, &content) && content.len == len && memcmp(content.p, oid, len) == 0;
}

/* Signatures are padded with zeros to a multiple of 8 bytes; nothing else may follow them. */
static bool all_zero(const struct span *s)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->p[i] != 0)
			return false;
	return true;
}

/* ---- certificates (RFC 5280 section 4.1), PKCS#7 (RFC 2315 section 9) */

/* Return a Name with its header, so that names can be compared as bytes. */
static bool take_name(struct span *s, const uint8_t **name, size_t *len)
{
	struct span whole, content;

	if (!next_is(s, TAG_SEQUENCE) || !take_any(s, &whole, &content))
		return false;
	*name = whole.p;
	*len = whole.len;
	return true;
}

/* Parse a Certificate up to its subject. The signature in it is checked elsewhere, if at all. */
static bool take_cert(struct span *s, struct authenticode_cert *out)
{
	struct span whole, cert, tbs, skip;

	if (!next_is(s, TAG_SEQUENCE) || !take_any(s, &whole, &cert))
		return false;
	out->der = whole.p;
	out->der_len = whole.len;
	if (!take(&cert, TAG_SEQUENCE, &tbs) || !take(&cert, TAG_SEQUENCE, &skip) ||
		!take(&cert, TAG_BITS, &skip) || cert.len > 0)
		return false;
	if (next_is(&tbs, TAG_CONTEXT0) && !take(&tbs, TAG_CONTEXT0, &skip)) /* version */
		return false;
	return take(&tbs, TAG_INTEGER, &skip) &&  /* serial number */
	       take(&tbs, TAG_SEQUENCE, &skip) && /* algorithm */
	       take_name(&tbs, &out->issuer, &out->issuer_len) &&
	       take(&tbs, TAG_SEQUENCE, &skip) && /* validity */
	       take_name(&tbs, &out->subject, &out->subject_len) &&
	       take(&tbs, TAG_SEQUENCE, &skip); /* key */
}

int authenticode_cert_read(
	const uint8_t *der, size_t len, struct authenticode_cert *out, struct err *err)
{
	struct span s = {der, len};

	*out = (struct authenticode_cert){0};
	if (!take_cert(&s, out) || !all_zero(&s))
		return err_set(err, ERR_INVALID, "this is not an X.509 certificate in DER");
	return 0;
}

/* Read SpcIndirectDataContent: the type of the signed data, then DigestInfo. With another digest
 * algorithm has_sha256 stays false. */
static int read_content(struct span explicit, struct authenticode_sig *out, struct err *err)
{
	static const uint8_t sha256[] = {0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01};
	struct span spc, about, info, alg, oid, digest;

	if (!take(&explicit, TAG_SEQUENCE, &spc) || explicit.len > 0)
		return err_set(err, ERR_INVALID, "signature's SpcIndirectDataContent is damaged");
	out->content = spc.p;
	out->content_len = spc.len;
	if (!take(&spc, TAG_SEQUENCE, &about) || !take(&spc, TAG_SEQUENCE, &info) ||
		!take(&info, TAG_SEQUENCE, &alg) || !take(&alg, TAG_OID, &oid) ||
		!take(&info, TAG_OCTETS, &digest) || info.len > 0)
		return err_set(err, ERR_INVALID, "signature's SpcIndirectDataContent is damaged");
	if (oid.len != sizeof(sha256) || memcmp(oid.p, sha256, sizeof(sha256)) != 0)
		return 0;
	if (digest.len != SHA256_LEN)
		return err_set(
			err, ERR_INVALID, "signature's SHA-256 digest has %zu bytes", digest.len);
	out->has_sha256 = true;
	memcpy(out->digest, digest.p, SHA256_LEN);
	return 0;
}

/* Collect the X.509 certificates, and skip other kinds. */
static int read_certs(struct span certs, struct authenticode_sig *out, struct err *err)
{
	while (certs.len > 0) {
		struct span whole, content;

		if (!next_is(&certs, TAG_SEQUENCE)) { /* PKCS#6, attribute certificates */
			if (!take_any(&certs, &whole, &content))
				return err_set(
					err, ERR_INVALID, "signature's certificates are damaged");
			continue;
		}
		if (out->n_certs == AUTHENTICODE_CERTS_MAX)
			return err_set(err, ERR_INVALID, "signature has more than %d certificates",
				AUTHENTICODE_CERTS_MAX);
		if (!take_cert(&certs, &out->cert[out->n_certs]))
			return err_set(err, ERR_INVALID, "signature's certificate %zu is damaged",
				out->n_certs);
		out->n_certs++;
	}
	return 0;
}

/* SignerInfos are not parsed here: pki/pkcs7 verifies them with OpenSSL. */
int authenticode_read(
	const uint8_t *pkcs7, size_t len, struct authenticode_sig *out, struct err *err)
{
	static const uint8_t signed_data[] = {
		0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02}; /* 1.2.840.113549.1.7.2 */
	static const uint8_t spc_indirect[] = {
		0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x01, 0x04}; /* ...311.2.1.4 */
	struct span all = {pkcs7, len}, info, explicit, sd, skip, content, spc, certs = {NULL, 0};

	*out = (struct authenticode_sig){0};
	if (!take(&all, TAG_SEQUENCE, &info) || !all_zero(&all) ||
		!take_oid(&info, signed_data, sizeof(signed_data)) ||
		!take(&info, TAG_CONTEXT0, &explicit) || info.len > 0 ||
		!take(&explicit, TAG_SEQUENCE, &sd) || explicit.len > 0)
		return err_set(err, ERR_INVALID, "the signature is not PKCS#7 SignedData in DER");
	if (!take(&sd, TAG_INTEGER, &skip) || !take(&sd, TAG_SET, &skip) ||
		!take(&sd, TAG_SEQUENCE, &content))
		return err_set(err, ERR_INVALID, "signature's SignedData is damaged");
	if (!take_oid(&content, spc_indirect, sizeof(spc_indirect)) ||
		!take(&content, TAG_CONTEXT0, &spc) || content.len > 0)
		return err_set(err, ERR_INVALID, "signature is not for a program (Authenticode)");
	if (next_is(&sd, TAG_CONTEXT0) && !take(&sd, TAG_CONTEXT0, &certs))
		return err_set(err, ERR_INVALID, "signature's certificates are damaged");
	if (read_content(spc, out, err) < 0)
		return -1;
	return read_certs(certs, out, err);
}

/* A signature without SHA-256 is counted but cannot be compared with the digest. */
int authenticode_check(const struct pe *pe, const uint8_t digest[SHA256_LEN], size_t *n_signatures,
	struct err *err)
{
	const uint8_t *der;
	size_t pos = 0, len;

	*n_signatures = 0;
	while (pe_next_signature(pe, &pos, &der, &len, err)) {
		struct authenticode_sig sig;

		if (authenticode_read(der, len, &sig, err) < 0)
			return err_wrap(err, "signature %zu", *n_signatures + 1);
		if (sig.has_sha256 && memcmp(sig.digest, digest, SHA256_LEN) != 0)
			return err_set(err, ERR_INVALID,
				"signature %zu does not match the contents of this file",
				*n_signatures + 1);
		++*n_signatures;
	}
	return err_is_set(err) ? -1 : 0;
}
