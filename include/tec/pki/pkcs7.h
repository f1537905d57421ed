/* SPDX-License-Identifier: MIT */
/*
 * Verifies signatures of EFI programs (PKCS#7 SignedData around a SpcIndirectDataContent) as UEFI
 * firmware and shim do: one certificate is trusted and need not be a root; validity periods and key
 * purposes are ignored. Pure: bytes in, verdict out.
 */
#ifndef TEC_PKI_PKCS7_H
#define TEC_PKI_PKCS7_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the signature is valid and chains to `trusted` (DER). content: the signed bytes, that
 * is the value of the SpcIndirectDataContent without its tag and length. False as well for input
 * that is not a signature or a certificate. */
bool pki_pkcs7_leads_to(const uint8_t *pkcs7, size_t len, const uint8_t *content,
	size_t content_len, const uint8_t *trusted, size_t trusted_len);

#endif
