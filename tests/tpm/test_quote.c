/* SPDX-License-Identifier: MIT */
/* tss2-mu is the second opinion: it marshals what is read here. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <tss2/tss2_mu.h>

#include "tec/base/mem.h"
#include "tec/tpm/quote.h"

static void quiet(void)
{
	setenv("TSS2_LOG", "all+none", 1);
}
TestSuite(tpm_quote, .init = quiet);

static TPMS_ATTEST genuine(void)
{
	TPMS_ATTEST a = {.magic = TPM2_GENERATED_VALUE, .type = TPM2_ST_ATTEST_QUOTE};

	a.qualifiedSigner.size = 34;
	memset(a.qualifiedSigner.name, 0xab, 34);
	a.extraData.size = 32;
	memset(a.extraData.buffer, 0xcd, 32);
	a.clockInfo = (TPMS_CLOCK_INFO){0x0102030405060708, 9, 10, 1};
	a.firmwareVersion = 0x1122334455667788;
	a.attested.quote.pcrSelect.count = 1;
	a.attested.quote.pcrSelect.pcrSelections[0] =
		(TPMS_PCR_SELECTION){TPM2_ALG_SHA256, 3, {0xff, 0xff, 0xff}};
	a.attested.quote.pcrDigest.size = 32;
	memset(a.attested.quote.pcrDigest.buffer, 0xef, 32);
	return a;
}

static int parse(const TPMS_ATTEST *a, struct tpm_quote *q, struct err *err)
{
	uint8_t bytes[2048];
	size_t len = 0;

	cr_assert_eq(Tss2_MU_TPMS_ATTEST_Marshal(a, bytes, sizeof(bytes), &len), 0);
	return tpm_quote_parse(bytes, len, q, err);
}

Test(tpm_quote, reads_what_tss2_wrote)
{
	TPMS_ATTEST a = genuine();
	struct tpm_quote q;
	struct err err = ERR_INIT;

	cr_assert_eq(parse(&a, &q, &err), 0, "%s", err.text);
	cr_assert_eq(q.extra_data_len, 32);
	cr_assert_eq(memcmp(q.extra_data, a.extraData.buffer, 32), 0);
	cr_assert_eq(memcmp(q.pcr_digest, a.attested.quote.pcrDigest.buffer, 32), 0);
	cr_assert_eq(q.reset_count, 9);
	cr_assert_eq(q.restart_count, 10);
}

/* Whatever the lengths of names and extraData are, nothing of the rest moves. */
Test(tpm_quote, reads_every_length_of_name_and_extra_data)
{
	for (uint16_t name = 0; name <= 68; name++) {
		TPMS_ATTEST a = genuine();
		struct tpm_quote q;
		struct err err = ERR_INIT;

		a.qualifiedSigner.size = name;
		a.extraData.size = name < 64 ? name : 64;
		cr_assert_eq(parse(&a, &q, &err), 0, "%u: %s", name, err.text);
		cr_assert_eq(q.restart_count, 10);
	}
}

Test(tpm_quote, refuses_every_beginning_and_a_byte_more)
{
	TPMS_ATTEST a = genuine();
	uint8_t bytes[2048] = {0};
	size_t len = 0;
	struct tpm_quote q;

	cr_assert_eq(Tss2_MU_TPMS_ATTEST_Marshal(&a, bytes, sizeof(bytes), &len), 0);
	for (size_t n = 0; n <= len + 1; n++) {
		struct err err = ERR_INIT;
		cleanup_free uint8_t *copy = xmemdup(bytes, n); /* for the sanitizer */

		cr_expect_eq(tpm_quote_parse(copy, n, &q, &err), n == len ? 0 : -1, "%zu", n);
	}
}

Test(tpm_quote, refuses_other_attestations)
{
	static const uint16_t types[] = {TPM2_ST_ATTEST_CERTIFY, TPM2_ST_ATTEST_CREATION,
		TPM2_ST_ATTEST_TIME, TPM2_ST_ATTEST_NV, TPM2_ST_ATTEST_COMMAND_AUDIT,
		TPM2_ST_ATTEST_SESSION_AUDIT};

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		TPMS_ATTEST a = genuine();
		struct tpm_quote q;
		struct err err = ERR_INIT;

		memset(&a.attested, 0, sizeof(a.attested));
		a.type = types[i];
		cr_expect_eq(parse(&a, &q, &err), -1, "%04x", types[i]);
	}
}

Test(tpm_quote, refuses_what_a_tpm_did_not_make)
{
	TPMS_ATTEST a = genuine();
	struct tpm_quote q;
	struct err err = ERR_INIT;

	a.magic ^= 1;
	cr_assert_eq(parse(&a, &q, &err), -1);
}

Test(tpm_quote, refuses_digests_of_other_banks)
{
	TPMS_ATTEST a = genuine();
	struct tpm_quote q;
	struct err err = ERR_INIT;

	a.attested.quote.pcrDigest.size = 48;
	cr_assert_eq(parse(&a, &q, &err), -1);
}

Test(tpm_quote, covers_exactly_its_values)
{
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN] = {{1}};
	struct tpm_quote q;

	bytes_sha256(pcrs, sizeof(pcrs), q.pcr_digest);
	cr_assert(tpm_quote_covers(&q, (const uint8_t(*)[SHA256_LEN])pcrs));
	pcrs[23][31] = 1;
	cr_assert_not(tpm_quote_covers(&q, (const uint8_t(*)[SHA256_LEN])pcrs));
}

static int signature(TPMI_ALG_SIG_SCHEME scheme, TPMI_ALG_HASH hash, long more)
{
	TPMT_SIGNATURE s = {.sigAlg = scheme};
	uint8_t bytes[1024] = {0};
	const uint8_t *rsa;
	size_t len = 0, rsa_len;
	struct err err = ERR_INIT;

	s.signature.rsassa.hash = hash;
	s.signature.rsassa.sig.size = 256;
	memset(s.signature.rsassa.sig.buffer, 0x5a, 256);
	cr_assert_eq(Tss2_MU_TPMT_SIGNATURE_Marshal(&s, bytes, sizeof(bytes), &len), 0);
	if (tpm_quote_signature(bytes, len + (size_t)more, &rsa, &rsa_len, &err) < 0)
		return -1;
	cr_assert_eq(rsa_len, 256);
	cr_assert_eq(memcmp(rsa, s.signature.rsassa.sig.buffer, 256), 0);
	return 0;
}

Test(tpm_quote, takes_rsassa_with_sha256_alone)
{
	cr_expect_eq(signature(TPM2_ALG_RSASSA, TPM2_ALG_SHA256, 0), 0);
	cr_expect_eq(signature(TPM2_ALG_RSASSA, TPM2_ALG_SHA256, 1), -1);
	cr_expect_eq(signature(TPM2_ALG_RSASSA, TPM2_ALG_SHA256, -1), -1);
	cr_expect_eq(signature(TPM2_ALG_RSASSA, TPM2_ALG_SHA256, -262), -1);
	cr_expect_eq(signature(TPM2_ALG_RSASSA, TPM2_ALG_SHA384, 0), -1);
	cr_expect_eq(signature(TPM2_ALG_RSAPSS, TPM2_ALG_SHA256, 0), -1);
}
