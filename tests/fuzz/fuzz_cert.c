/* SPDX-License-Identifier: MIT */
/*
 * The certificates of a Secret, as srv/cert reads them: a bundle that nodes shall trust, and an
 * identity, which is split from its key at the first byte 0x1e. What is taken keeps its promises,
 * what is refused has a reason, and nothing stays in OpenSSL's error queue, where the next
 * connection would find it.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include <openssl/err.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/net/tls.h"
#include "tec/pki/cert.h"
#include "tec/pki/pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exact size, so that reading one byte too many is seen. */
static void check_bundle(const uint8_t *data, size_t size)
{
	cleanup_free char *pem = xmemdup(data, size);
	cleanup_strbuf struct strbuf text = STRBUF_INIT, hashes = STRBUF_INIT, again = STRBUF_INIT,
				     same = STRBUF_INIT;
	struct err err = ERR_INIT, end_err = ERR_INIT, again_err = ERR_INIT;
	int rc = pki_cert_read_bundle(pem, size, &text, &hashes, &err);
	int64_t end;
	int end_rc = pki_cert_not_after(pem, size, &end, &end_err);

	if ((rc == 0) == err_is_set(&err) || (end_rc == 0) == err_is_set(&end_err))
		DIE("neither a result nor an error, or both");
	if (rc == 0 && memchr(pem, '\0', size))
		DIE("a bundle with a NUL byte was taken");
	if (rc == 0 && !memmem(pem, size, "-----BEGIN CERTIFICATE-----", 27))
		DIE("a bundle without a certificate was taken");
	if (rc == 0 &&
		(pki_cert_read_bundle(strbuf_str(&text), text.len, &again, &same, &again_err) < 0 ||
			!str_eq(strbuf_str(&text), strbuf_str(&again)) ||
			!str_eq(strbuf_str(&hashes), strbuf_str(&same))))
		DIE("what was read of a bundle is another bundle");
}

static void check_identity(const uint8_t *data, size_t size)
{
	const uint8_t *split = size ? memchr(data, 0x1e, size) : NULL;
	size_t cert_len = split ? (size_t)(split - data) : size;
	size_t key_len = split ? size - cert_len - 1 : 0;
	cleanup_free char *cert = xmemdup(data, cert_len);
	cleanup_free char *key = xmemdup(split ? split + 1 : data, key_len);
	struct err err = ERR_INIT;
	struct tls_ctx *tls = tls_ctx_new(cert, cert_len, key, key_len, &err);

	if (!tls == !err_is_set(&err))
		DIE("neither an identity nor an error, or both");
	if (tls && key_len == 0)
		DIE("an identity without a key was taken");
	tls_ctx_unref(tls);
}

/* The same text as identity and as CA, with everything judged. */
static void check_pair(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xstrndup((const char *)data, size);
	const struct pki_pair p = {
		.cert = text,
		.cert_len = strlen(text),
		.key = text,
		.key_len = strlen(text),
		.ca = text,
		.name = "localhost",
		.now_s = 1790000000,
	};
	cleanup_strbuf struct strbuf chain = STRBUF_INIT, again = STRBUF_INIT;
	struct err why = ERR_INIT, why_again = ERR_INIT;
	enum pki_pair_fault fault = pki_pair_judge(&p, &chain, &why);
	struct pki_pair ordered = p;

	if ((fault == PKI_PAIR_OK) == err_is_set(&why))
		DIE("neither good nor a sentence, or both");
	if (!chain.len && (fault == PKI_PAIR_OK || fault >= PKI_PAIR_EXPIRED))
		DIE("a pair that fits has no chain");
	if (!chain.len)
		return;
	ordered.cert = chain.data;
	ordered.cert_len = chain.len;
	if (pki_pair_judge(&ordered, &again, &why_again) !=
			(fault == PKI_PAIR_ORDER ? PKI_PAIR_OK : fault) ||
		!str_eq(strbuf_str(&chain), strbuf_str(&again)))
		DIE("a chain in order is put in another one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_bundle(data, size);
	check_identity(data, size);
	check_pair(data, size);
	if (ERR_peek_error() != 0)
		DIE("OpenSSL's error queue: %s", ERR_reason_error_string(ERR_peek_error()));
	return 0;
}
