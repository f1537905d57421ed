/* SPDX-License-Identifier: MIT */
/*
 * Init-data: a TOML text that a node sends with its evidence, bound to it by PCR 8. Stock Trustee
 * hashes the text as it came with the algorithm it names, and a digest of other than 32 bytes ends
 * its worker without an answer; so only SHA-256 passes here.
 *
 * Only the beginning is read: `version` and `algorithm`, each once, as plain strings, then the
 * table `data` or nothing. What stands in the table is Trustee's to judge.
 */
#ifndef TEC_RATS_INITDATA_H
#define TEC_RATS_INITDATA_H

#include <stddef.h>

#include "tec/base/bytes.h"
#include "tec/base/err.h"

/* ERR_INVALID with a sentence. */
int rats_initdata_check(const char *toml, size_t len, struct err *err) MUST_CHECK;
/* PCR 8 of a node that extended it with the digest of this text, and with nothing else. */
void rats_initdata_pcr8(const char *toml, size_t len, uint8_t out[SHA256_LEN]);

#endif
