/* SPDX-License-Identifier: MIT */
/*
 * The first byte chooses: 'A' auth, 'E' attestation, 'Q' a quote, 'T' a request's target, 'I'
 * init-data. What is written for an accepted message is accepted again and written in the same way;
 * an accepted quote is the same one to tss2-mu; a path that was read names itself.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <tss2/tss2_mu.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/rats/api.h"
#include "tec/rats/initdata.h"
#include "tec/rats/rcar.h"

#define MAX 65536

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refused(const struct err *err, enum rats_flaw flaw)
{
	assert(err->kind == ERR_INVALID && err->text[0] && flaw != RATS_FLAW_NONE);
}

static void auth(const char *text, size_t len)
{
	cleanup_rats_auth struct rats_auth a, b = {.o = NULL};
	cleanup_strbuf struct strbuf out = STRBUF_INIT, again = STRBUF_INIT;
	enum rats_flaw flaw = RATS_FLAW_NONE;
	struct err err = ERR_INIT;

	if (rats_auth_read(text, len, &a, &flaw, &err) < 0) {
		check_refused(&err, flaw);
		return;
	}
	rats_auth_write(&a, &out);
	if (rats_auth_read(out.data, out.len, &b, &flaw, &err) < 0)
		assert(!"what was written is refused");
	rats_auth_write(&b, &again);
	assert(strcmp(strbuf_str(&out), strbuf_str(&again)) == 0 && str_eq(a.tee, b.tee));
}

static void attest(const char *text, size_t len)
{
	cleanup_rats_attest struct rats_attest a, b = {.o = NULL};
	cleanup_strbuf struct strbuf out = STRBUF_INIT, again = STRBUF_INIT;
	enum rats_flaw flaw = RATS_FLAW_NONE;
	struct err err = ERR_INIT;

	if (rats_attest_read(text, len, MAX, &a, &flaw, &err) < 0) {
		check_refused(&err, flaw);
		return;
	}
	rats_attest_write(&a, &out);
	if (rats_attest_read(out.data, out.len, MAX * 6, &b, &flaw, &err) < 0)
		assert(!"what was written is refused");
	rats_attest_write(&b, &again);
	assert(strcmp(strbuf_str(&out), strbuf_str(&again)) == 0);
	assert(str_eq(a.nonce, b.nonce) && str_eq(a.additional, b.additional));
	if (rats_attest_verify(&a, "no session's", &flaw, &err) == 0)
		assert(str_eq(a.nonce, "no session's"));
}

static void quote(const uint8_t *data, size_t len)
{
	struct tpm_quote q;
	struct err err = ERR_INIT;
	TPMS_ATTEST t = {0};
	size_t at = 0;

	if (tpm_quote_parse(data, len, &q, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		return;
	}
	if (Tss2_MU_TPMS_ATTEST_Unmarshal(data, len, &at, &t) != 0)
		return; /* a name or extraData longer than any of its union */
	assert(at == len && t.attested.quote.pcrSelect.count == 1);
	assert(t.attested.quote.pcrSelect.pcrSelections[0].hash == TPM2_ALG_SHA256);
	assert(memcmp(t.attested.quote.pcrDigest.buffer, q.pcr_digest, SHA256_LEN) == 0);
	assert(t.extraData.size == q.extra_data_len);
	assert(memcmp(t.extraData.buffer, q.extra_data, q.extra_data_len) == 0);
}

static void target(const char *text)
{
	char path[RATS_API_PATH_MAX + 1], again[RATS_API_PATH_MAX + 1];
	cleanup_free char *plain = NULL;

	if (rats_api_read("GET", text, path) != RATS_API_GET_RESOURCE) {
		assert(!*path);
		return;
	}
	assert(!*path || rats_api_path_valid(path));
	assert(!strpbrk(path, "%?#\\; ") && !strstr(path, "//") && !strstr(path, "/."));
	plain = xasprintf(RATS_API_RESOURCE "%s", path);
	if (rats_api_read("GET", plain, again) != RATS_API_GET_RESOURCE || strcmp(path, again) != 0)
		assert(!"a path that was read is another one");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	setenv("TSS2_LOG", "all+none", 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;

	if (size < 2 || size > MAX)
		return 0;
	cleanup_free char *text = xmemdup(data + 1, size - 1); /* its end is the end */
	if (data[0] == 'A')
		auth(text, size - 1);
	else if (data[0] == 'E')
		attest(text, size - 1);
	else if (data[0] == 'Q')
		quote((const uint8_t *)text, size - 1);
	else if (data[0] == 'T')
		target(text);
	else if (rats_initdata_check(text, size - 1, &err) < 0)
		check_refused(&err, RATS_FLAW_INIT_DATA);
	return 0;
}
