/* SPDX-License-Identifier: MIT */
/*
 * Signatures of programs (PKCS#7 SignedData around a SpcIndirectDataContent), verified as UEFI
 * firmware and shim do: one certificate is trusted, it need not be a root, the time of the day does
 * not matter, nor do purposes. Bytes in, an answer out.
 */
#ifndef TEC_PKI_PKCS7_H
#define TEC_PKI_PKCS7_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether the signature is good and leads to `trusted` (DER). content: what was signed, that is the
 * value of the SpcIndirectDataContent without its tag and length. False also for what is not
 * a signature or a certificate at all.
 */
bool pki_pkcs7_leads_to(const uint8_t *pkcs7, size_t len, const uint8_t *content,
	size_t content_len, const uint8_t *trusted, size_t trusted_len);

#endif
