/* SPDX-License-Identifier: MIT */
/*
 * Layers of an image, one after the other as they come from a registry, into a directory with what is
 * needed of them. Until the last one is complete there are only numbered files in a folder ".fetch" in
 * there; a failure takes them away again.
 *
 * Kept are files that are needed by their path, and, as hard links and symbolic links may lead to
 * them, all that begin with `magic`, as far as there is room.
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
	uint64_t max_kept;  /* bytes of files; half of it for those that are kept for links */
	uint64_t max_total; /* decompressed bytes of all layers */
};

struct oci_unpack;
/* ERR_INVALID: the directory is not empty, or cannot be written. */
struct oci_unpack *oci_unpack_new(const struct oci_unpack_conf *conf, struct err *err) MUST_CHECK;
int oci_unpack_layer(struct oci_unpack *u, struct err *err) MUST_CHECK; /* the next one begins */
/* Compressed bytes of it. */
int oci_unpack_add(struct oci_unpack *u, const void *data, size_t len, struct err *err) MUST_CHECK;
int oci_unpack_layer_end(struct oci_unpack *u, struct err *err) MUST_CHECK;
/* After the last layer, each of which was verified. */
int oci_unpack_finish(struct oci_unpack *u, struct err *err) MUST_CHECK;
void oci_unpack_free(struct oci_unpack *u); /* NULL is fine */

#endif
