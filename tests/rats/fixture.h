/* SPDX-License-Identifier: MIT */
/* Evidence as a TPM and its attester make it, with an RSA key of the test. */
#ifndef TEST_RATS_FIXTURE_H
#define TEST_RATS_FIXTURE_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/rats/initdata.h"
#include "tec/rats/rcar.h"

#define FIXTURE_NONCE "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
/* RFC 7517 appendix A.1 */
#define FIXTURE_X "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
#define FIXTURE_Y "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
#define FIXTURE_INIT                                                                               \
	"version = \"0.1.0\"\nalgorithm = \"sha256\"\n\n[data]\nuuid = \"11111111-2222-3333-4444-555555555555\"\n"

struct fixture_quote {
	uint8_t attest[1024], sig[1024];
	size_t attest_len, sig_len;
	uint8_t pcrs[TPM_PCR_COUNT][SHA256_LEN];
};

/* PCR i is filled with i, PCR 8 is what FIXTURE_INIT makes of it; extraData 32 bytes. */
/* The next quotes are of a node that has not finished its boot: PCR 15 is zero. */
void fixture_unseal(void);
void fixture_quote(const uint8_t extra[SHA256_LEN], struct fixture_quote *q);
/* The one selection of the quote replaced, the digest over the values stays. */
void fixture_quote_select(struct fixture_quote *q, const void *selection, size_t len);
void fixture_sign(struct fixture_quote *q);
/* primary_evidence; the caller puts it. */
struct json_object *fixture_evidence(const struct fixture_quote *q);
/* The body of an attestation that verifies with FIXTURE_NONCE; the caller puts it. */
struct json_object *fixture_attest(bool init_data);
struct json_object *fixture_attest_for(const char *nonce);

#endif
