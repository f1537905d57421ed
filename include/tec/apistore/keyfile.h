/* SPDX-License-Identifier: MIT */
/*
 * A private key as a file that is sealed under the sealing key: one line that says what it is, then the
 * sealed bytes. It is bound to the name of the file, so that one cannot stand in for another. Version
 * 0.2.0 wrote the PEM text itself.
 */
#ifndef TEC_APISTORE_KEYFILE_H
#define TEC_APISTORE_KEYFILE_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

#define APISTORE_KEYFILE_MAX 65536

bool apistore_keyfile_is_sealed(const char *text, size_t len);
/* What a file of this name holds; *len: its length. The caller frees. */
char *apistore_keyfile_seal(const struct secret *sealing_key, const char *name,
	const struct secret *plain, size_t *len) MUST_CHECK;
/* NULL: another key or name, or other bytes. The caller frees. */
struct secret *apistore_keyfile_open(const struct secret *sealing_key, const char *name,
	const char *text, size_t len) MUST_CHECK;

#endif
