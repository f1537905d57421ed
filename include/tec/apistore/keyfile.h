/* SPDX-License-Identifier: MIT */
/*
 * Files of private keys, sealed under the sealing key: a line of text that names the format, then
 * the sealed bytes. A file is bound to its name, so that one cannot replace another. Version 0.2.0
 * wrote plain PEM.
 */
#ifndef TEC_APISTORE_KEYFILE_H
#define TEC_APISTORE_KEYFILE_H

#include <stdbool.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"

#define APISTORE_KEYFILE_MAX 65536

bool apistore_keyfile_is_sealed(const char *text, size_t len);
/* Return the content of a file of this name, of *len bytes; the caller frees it. */
char *apistore_keyfile_seal(const struct secret *sealing_key, const char *name,
	const struct secret *plain, size_t *len) MUST_CHECK;
/* Decrypt a file; the caller frees the result. NULL: another key or name, or changed bytes. */
struct secret *apistore_keyfile_open(const struct secret *sealing_key, const char *name,
	const char *text, size_t len) MUST_CHECK;

#endif
