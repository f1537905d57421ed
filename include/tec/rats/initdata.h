/* SPDX-License-Identifier: MIT */
/*
 * Init-data: a TOML text that a node sends with its evidence, bound to it by PCR 8. Stock Trustee
 * hashes the text as sent with the algorithm named in it, and a digest that is not 32 bytes long
 * aborts its worker without a response; therefore only SHA-256 passes here.
 *
 * Only the beginning is read: `version` and `algorithm`, once each, as plain strings, then the
 * table `data` or nothing. Trustee judges the content of the table.
 */
#ifndef TEC_RATS_INITDATA_H
#define TEC_RATS_INITDATA_H

#include <stddef.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"

/* ERR_INVALID with a message that a node may receive. */
int rats_initdata_check(const char *toml, size_t len, struct err *err) MUST_CHECK;
/* PCR 8 of a node that extended it with the digest of this text only. */
void rats_initdata_pcr8(const char *toml, size_t len, uint8_t out[SHA256_LEN]);

#endif
