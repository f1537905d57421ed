/* SPDX-License-Identifier: MIT */
/*
 * Fetches the required files of an image from its registry: reference -> index -> manifest of the
 * platform -> layers, which are unpacked while they arrive (oci/unpack.h). Hosts, credentials,
 * redirects and TLS are handled as in oci/registry.h. Every document is verified by its digest, a
 * layer after its last byte; no file appears in the directory before that. If a host fails, the
 * image is fetched again from the next.
 *
 * A reference may omit its digest; `done` then receives the digest that was found.
 */
#ifndef TEC_OCI_IMAGE_H
#define TEC_OCI_IMAGE_H

#include "tec/oci/registry.h"
#include "tec/oci/unpack.h"

struct oci_image_spec { /* copied; `needs` and the strings in it are borrowed */
	const char *reference;
	struct oci_unpack_conf unpack;
	bool resolve;         /* only resolve the reference; unpack is ignored */
	uint32_t deadline_ms; /* for the whole fetch */
	/* Receives a line of progress for people; or NULL. */
	void (*progress)(void *arg, const char *line);
};

/* digest: "sha256:..." of the reference, on success. Borrowed for the call. */
typedef void (*oci_image_fn)(void *arg, const struct err *err, const char *digest);
/* err: as from oci_label_get(). */
struct op *oci_image_fetch(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const struct oci_image_spec *spec,
	const struct secret *const *docker_configs, size_t n_configs, oci_image_fn done, void *arg);

#endif
