/* SPDX-License-Identifier: MIT */
/*
 * A cursor over big-endian bytes that never passes the end. Each structure is read member by member
 * and compared with the only accepted form. tss2-mu is not used: it prints a line to stderr for
 * each malformed input, and any client can send such input. The tests compare the results with
 * tss2-mu.
 */
#include "config.h"

#include "tec/tpm/quote.h"

#include <string.h>

#define GENERATED_VALUE 0xff544347u /* TPM_GENERATED: "\xffTCG" */
#define ST_ATTEST_QUOTE 0x8018u
#define ALG_SHA256      0x000bu
#define ALG_RSASSA      0x0014u

/* The bytes left to read. Past the end every value is 0 and `cut` stays true. */
struct cursor {
	const uint8_t *p;
	size_t len;
	bool cut;
};

static const uint8_t *take(struct cursor *c, size_t n)
{
	const uint8_t *p = c->p;

	if (c->cut || n > c->len) {
		c->cut = true;
		return NULL;
	}
	c->p += n;
	c->len -= n;
	return p;
}

static uint32_t take_uint(struct cursor *c, size_t bytes)
{
	const uint8_t *p = take(c, bytes);
	uint32_t v = 0;

	for (size_t i = 0; p && i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* Read a TPM2B: size and bytes. NULL: it is truncated. */
static const uint8_t *take_sized(struct cursor *c, size_t *len)
{
	*len = take_uint(c, 2);
	return take(c, *len);
}

/* Check TPML_PCR_SELECTION (Part 2, 10.9.7). A truncated one passes here; the caller notices it
 * later. */
static int take_selection(struct cursor *c, struct err *err)
{
	static const uint8_t all[TPM_PCR_COUNT / 8] = {0xff, 0xff, 0xff};
	uint32_t count = take_uint(c, 4), hash = take_uint(c, 2), size = take_uint(c, 1);
	const uint8_t *map;

	if (!c->cut && count != 1)
		return err_set(err, ERR_INVALID,
			"The quote has %u PCR selections; it must have one, of PCR 0 to 23.",
			count);
	if (!c->cut && hash != ALG_SHA256)
		return err_set(err, ERR_INVALID,
			"The quote covers the PCR bank of algorithm 0x%04x; it must cover the SHA-256 bank.",
			hash);
	map = take(c, size);
	if (map && (size != sizeof(all) || memcmp(map, all, sizeof(all)) != 0))
		return err_set(err, ERR_INVALID,
			"The quote does not select exactly PCR 0 to 23 of the SHA-256 bank.");
	return 0;
}

/* Read TPMS_ATTEST up to TPMS_QUOTE_INFO. The magic number is what only the TPM itself can sign. */
static int take_head(struct cursor *c, struct tpm_quote *out, struct err *err)
{
	uint32_t magic = take_uint(c, 4), type = take_uint(c, 2);
	const uint8_t *extra;
	size_t name_len;

	if (magic != GENERATED_VALUE)
		return err_set(
			err, ERR_INVALID, "The quote does not begin with the TPM's magic number.");
	if (type != ST_ATTEST_QUOTE)
		return err_set(err, ERR_INVALID,
			"The attestation has type 0x%04x; it is not a quote.", type);
	take_sized(c, &name_len); /* qualifiedSigner */
	extra = take_sized(c, &out->extra_data_len);
	if (extra && out->extra_data_len > sizeof(out->extra_data))
		return err_set(err, ERR_INVALID, "The quote's extraData is too long: %zu bytes.",
			out->extra_data_len);
	if (extra)
		memcpy(out->extra_data, extra, out->extra_data_len);
	take(c, 8); /* clockInfo.clock */
	out->reset_count = take_uint(c, 4);
	out->restart_count = take_uint(c, 4);
	take(c, 1 + 8); /* clockInfo.safe, firmwareVersion */
	return 0;
}

int tpm_quote_parse(const uint8_t *attest, size_t len, struct tpm_quote *out, struct err *err)
{
	struct cursor c = {attest, len, false};
	const uint8_t *digest;
	size_t digest_len;

	if (take_head(&c, out, err) < 0 || take_selection(&c, err) < 0)
		return -1;
	digest = take_sized(&c, &digest_len);
	if (!digest)
		return err_set(err, ERR_INVALID, "The quote is truncated.");
	if (c.len > 0)
		return err_set(err, ERR_INVALID, "Trailing data after the quote.");
	if (digest_len != SHA256_LEN)
		return err_set(err, ERR_INVALID,
			"The quote's PCR digest has %zu bytes; a SHA-256 digest has 32.",
			digest_len);
	memcpy(out->pcr_digest, digest, SHA256_LEN);
	return 0;
}

/* The quoted digest is SHA-256 over all selected PCRs in ascending order. */
bool tpm_quote_covers(const struct tpm_quote *q, const uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN])
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(pcrs, (size_t)TPM_PCR_COUNT * SHA256_LEN, digest);
	return memcmp(digest, q->pcr_digest, SHA256_LEN) == 0;
}

int tpm_quote_signature(
	const uint8_t *sig, size_t len, const uint8_t **rsa, size_t *rsa_len, struct err *err)
{
	struct cursor c = {sig, len, false};
	uint32_t alg = take_uint(&c, 2), hash = take_uint(&c, 2);

	if (!c.cut && (alg != ALG_RSASSA || hash != ALG_SHA256))
		return err_set(err, ERR_INVALID,
			"The signature has scheme 0x%04x with digest 0x%04x; it must be RSASSA with SHA-256.",
			alg, hash);
	*rsa = take_sized(&c, rsa_len);
	if (!*rsa)
		return err_set(err, ERR_INVALID, "The signature is truncated.");
	if (c.len > 0)
		return err_set(err, ERR_INVALID, "Trailing data after the signature.");
	return 0;
}
