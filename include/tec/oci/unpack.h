/* SPDX-License-Identifier: MIT */
/*
 * Unpacks the layers of an image, one after the other as they arrive from a registry, and writes
 * the wanted files to a directory. Until the last layer is complete, only numbered files exist, in
 * a folder ".fetch" in that directory; they are removed after a failure.
 *
 * Kept are files that are wanted by path and, because hard and symbolic links may lead to them, all
 * files that begin with `magic`, as far as there is room.
 */
#ifndef TEC_OCI_UNPACK_H
#define TEC_OCI_UNPACK_H

#include <stdint.h>

#include "tec/oci/tree.h"

#define OCI_UNPACK_FOLDER ".fetch"

struct oci_unpack_conf { /* borrowed until oci_unpack_free() */
	int into_fd;
	const struct oci_need *needs;
	size_t n_needs;
	const char *magic;  /* "MZ" */
	uint64_t max_kept;  /* bytes of files; at most half for those kept for links */
	uint64_t max_total; /* decompressed bytes of all layers */
};

struct oci_unpack;
/* ERR_INVALID: the directory is not empty, or cannot be written. */
struct oci_unpack *oci_unpack_new(const struct oci_unpack_conf *conf, struct err *err) MUST_CHECK;
int oci_unpack_layer(struct oci_unpack *u, struct err *err) MUST_CHECK; /* start the next layer */
/* Add compressed bytes of the layer. */
int oci_unpack_add(struct oci_unpack *u, const void *data, size_t len, struct err *err) MUST_CHECK;
int oci_unpack_layer_end(struct oci_unpack *u, struct err *err) MUST_CHECK;
/* Write the files. Call it after the last layer, when all layers are verified. */
int oci_unpack_finish(struct oci_unpack *u, struct err *err) MUST_CHECK;
void oci_unpack_free(struct oci_unpack *u); /* NULL is fine */

#endif
