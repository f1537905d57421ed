/* SPDX-License-Identifier: MIT */
/*
 * Decompresses a layer: gzip (RFC 1952, any number of members), zstd (RFC 8878, any number of
 * frames, including skippable ones) or neither, detected by the first bytes. Input arrives in
 * pieces of any length. Memory does not grow with what a stream claims: a zstd window above 32 MiB
 * is refused. The caller bounds the total output.
 */
#ifndef TEC_OCI_INFLATE_H
#define TEC_OCI_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

/* Receives output, never empty. -1 ends the stream with err. */
typedef int (*oci_inflate_fn)(void *arg, const void *data, size_t len, struct err *err);

struct oci_inflate;
struct oci_inflate *oci_inflate_new(uint64_t max_out, oci_inflate_fn out, void *arg);
/* ERR_INVALID: the stream is corrupt, or larger than max_out. */
int oci_inflate_add(
	struct oci_inflate *z, const void *data, size_t len, struct err *err) MUST_CHECK;
/* Call it after the last piece. ERR_INVALID: the stream is truncated. */
int oci_inflate_end(struct oci_inflate *z, struct err *err) MUST_CHECK;
uint64_t oci_inflate_total(const struct oci_inflate *z); /* bytes of output */
void oci_inflate_free(struct oci_inflate *z);            /* NULL is fine */

#endif
