/* SPDX-License-Identifier: MIT */
/*
 * A layer's bytes as they were before compression: gzip (RFC 1952, any number of members), zstd (RFC
 * 8878, any number of frames, skippable ones among them) or neither, told apart by their first bytes.
 * In pieces of any length; memory does not grow with what a stream claims: a zstd window of more than
 * 32 MiB is refused. How much comes out in all is bounded by the caller.
 */
#ifndef TEC_OCI_INFLATE_H
#define TEC_OCI_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"

/* Not empty. -1 ends the stream with err. */
typedef int (*oci_inflate_fn)(void *arg, const void *data, size_t len, struct err *err);

struct oci_inflate;
struct oci_inflate *oci_inflate_new(uint64_t max_out, oci_inflate_fn out, void *arg);
/* ERR_INVALID: it is broken, or larger than max_out. */
int oci_inflate_add(
	struct oci_inflate *z, const void *data, size_t len, struct err *err) MUST_CHECK;
/* ERR_INVALID: it ends too early. */
int oci_inflate_end(struct oci_inflate *z, struct err *err) MUST_CHECK;
uint64_t oci_inflate_total(const struct oci_inflate *z); /* bytes that came out */
void oci_inflate_free(struct oci_inflate *z);            /* NULL is fine */

#endif
