/* SPDX-License-Identifier: MIT */
/*
 * A node CA's file, as --node-ca and tecctl bootstrap cert read it. What is taken can be renewed, is
 * valid now, and nothing stays in OpenSSL's error queue; a refusal says why and leaves no key.
 */
#include "config.h"

#include <stdint.h>

#include <openssl/err.h>

#include "tec/base/mem.h"
#include "tec/pki/ca.h"
#include "tec/pki/cert.h"

#define NOW_S 1795700000 /* when the corpus was made */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void renew(const struct pki_ca *ca)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;
	int64_t end_s;

	if (pki_ca_issue(ca->key, strbuf_str(&ca->cert), NOW_S, &out, &err) < 0)
		DIE("what was read cannot be renewed: %s", err.text);
	if (pki_cert_not_after(strbuf_str(&out), out.len, &end_s, &err) < 0 || end_s <= NOW_S)
		DIE("what was renewed is not valid: %s", err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exact size, so that reading one byte too many is seen. */
	cleanup_free char *pem = xmemdup(data, size);
	cleanup_pki_ca struct pki_ca ca = {.key = NULL};
	struct err err = ERR_INIT;
	int rc = pki_ca_read(pem, size, NOW_S, &ca, &err);

	if ((rc == 0) == err_is_set(&err))
		DIE("neither an authority nor an error, or both");
	if (rc < 0 && (err.kind != ERR_INVALID || !err.text[0]))
		DIE("a refusal without a reason");
	if (rc == 0 && (!ca.key || ca.end_s <= NOW_S || !ca.cert.len))
		DIE("an authority without a key, a certificate or time");
	if (rc == 0)
		renew(&ca);
	if (ERR_peek_error() != 0)
		DIE("OpenSSL's error queue: %s", ERR_reason_error_string(ERR_peek_error()));
	return 0;
}
